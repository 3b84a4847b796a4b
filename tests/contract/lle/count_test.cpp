// Eigenvalues are counted only where the cut between those that were found and the next is wider than rounding: the
// signs of a factor at a shift as near to an eigenvalue as that say nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "vicinal/lle.hpp"

namespace vicinal {
namespace {

// Points at equal distances on a circle: by symmetry all eigenvalues but 0 come in pairs.
TEST(LleCount, IsNotMadeWithinAPairOfEqualEigenvalues) {
  for (const int n : {24, 48, 96}) {
    std::vector<double> rows;
    for (int i = 0; i < n; ++i) {
      const double angle = 2 * std::acos(-1.0) * i / n;
      rows.push_back(std::cos(angle));
      rows.push_back(std::sin(angle));
    }
    const TableView table(rows.data(), n, 2);
    const Context ctx = Context::cpu({.threads = 1});
    const auto counted = [&](std::int64_t dim) {
      return lle(ctx, table, {.k = 4, .dim = dim, .solver = LleSolver::direct}).pieces[0].counted;
    };
    EXPECT_EQ(counted(1), -1) << n;
    EXPECT_EQ(counted(2), 2) << n;
    EXPECT_EQ(counted(3), -1) << n;
  }
}

}  // namespace
}  // namespace vicinal
