// What a count of eigenvalues below a shift says of those found (contract clause 17), of spectra that are known.
#include "ops/lle/count.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace vicinal::ops {
namespace {

struct Case {
  const char* name;
  std::vector<double> spectrum;  // without the constant's
  std::vector<double> found;
  double next;  // as it was found: an upper bound
  LleCount count;
  std::int64_t counted;
};

TEST(LleCount, SaysWhatTheSignsProve) {
  const Case cases[] = {
      {"apart", {1, 2, 3}, {1, 2}, 3, LleCount::complete, 2},
      {"one between", {1, 1.5, 2, 3}, {1, 2}, 3, LleCount::skipped, 3},
      {"one before", {0.5, 1, 2, 3}, {1, 2}, 3, LleCount::skipped, 3},
      {"a double eigenvalue at the cut, the guard above both", {1, 2, 2, 3}, {1, 2}, 2.001, LleCount::clustered, 3},
      {"a double eigenvalue to the last bit", {1, 2, 2, 3}, {1, 2}, 2, LleCount::clustered, -1},
      {"a triple one that is all of what is found", {2, 2, 2, 3}, {2, 2}, 2, LleCount::clustered, -1},
      {"a cluster at the cut with one below it skipped", {1, 1.5, 2, 2}, {1, 2}, 2, LleCount::skipped, -1},
      {"the same with the guard above", {1, 1.5, 2, 2}, {1, 2}, 2.001, LleCount::skipped, 4},
      {"zeros", {0, 0, 0, 3}, {0, 0}, 0, LleCount::unresolved, -1},
      {"zeros found whole", {0, 0, 3}, {0, 0}, 3, LleCount::complete, 2},
  };
  for (const Case& one : cases) {
    solver::Smallest found;
    for (const double value : one.found) found.values.push_back(std::sqrt(value));
    found.next = std::sqrt(one.next);
    LlePiece piece;
    piece.norm = 4;
    const auto below = [&](double shift) {
      return 1 + std::count_if(one.spectrum.begin(), one.spectrum.end(), [&](double x) { return x < shift; });
    };
    count_eigenvalues(found, below, piece);
    EXPECT_EQ(piece.count, one.count) << one.name << ": " << name_of(piece.count);
    EXPECT_EQ(piece.counted, one.counted) << one.name;
  }
}

}  // namespace
}  // namespace vicinal::ops
