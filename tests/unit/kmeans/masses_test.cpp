// The tree of masses and the draws that go down it (contract clause 12).
#include "formulas/kmeans/masses.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace vicinal::core {
namespace {

struct Masses {
  explicit Masses(std::vector<double> all) : masses(std::move(all)), tree(static_cast<std::int64_t>(masses.size())) {
    sums.resize(static_cast<std::size_t>(tree.nodes));
    for (std::int64_t i = 0; i < tree.sizes[0]; ++i) {
      const std::int64_t first = i * kMassParts;
      sums[static_cast<std::size_t>(i)] =
          sum_of_parts(count() - first, [&](std::int64_t p) { return masses[static_cast<std::size_t>(first + p)]; });
    }
    add_levels(tree, sums.data());
  }
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(masses.size()); }
  [[nodiscard]] std::int64_t drawn(double u) const {
    return drawn_row(u, count(), tree, sums.data(),
                     [&](std::int64_t i) { return masses[static_cast<std::size_t>(i)]; });
  }

  std::vector<double> masses;
  MassTree tree;
  std::vector<double> sums;
};

TEST(Masses, TreeHasALevelForEveryFactorOf32) {
  for (const auto& [n, levels, nodes] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {32, 1, 1}, {33, 2, 3}, {1024, 2, 33}, {1025, 3, 33 + 2 + 1}, {std::int64_t{1} << 62, 13, 0}}) {
    const MassTree tree(n);
    EXPECT_EQ(tree.levels, levels) << n;
    if (nodes != 0) {
      EXPECT_EQ(tree.nodes, nodes) << n;
    }
    EXPECT_EQ(tree.sizes[tree.levels - 1], 1) << n;
  }
}

// Whole numbers add exactly: every draw is for the row that a plain running sum names.
TEST(Masses, DrawsFollowTheRunningSum) {
  for (const std::int64_t n : {1, 31, 32, 33, 1000, 1025, 40000}) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < n; ++i) all.push_back(static_cast<double>((i * 7 + 3) % 5));  // some are 0
    const Masses masses(all);
    const double total = masses.sums.back();
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double mass = all[static_cast<std::size_t>(i)];
      if (mass > 0) {
        EXPECT_EQ(masses.drawn((sum + mass / 2) / total), i) << n;
      }
      sum += mass;
    }
    EXPECT_EQ(sum, total);
  }
}

TEST(Masses, WithoutMassRowsAreEquallyLikely) {
  const Masses none(std::vector<double>(50, 0.0));
  EXPECT_EQ(none.drawn(0), 0);
  EXPECT_EQ(none.drawn(0.5), 25);
  EXPECT_EQ(none.drawn(0x1.fffffffffffffp-1), 49);
}

// A sum may be rounded to more than its parts add up to: then it is the last part that is not 0.
TEST(Masses, WhereNoPartIsAboveItIsTheLastOneWithAMass) {
  const double parts[] = {2, 0, 3, 0};
  double t = 5;
  EXPECT_EQ(part_under(
                4, [&](std::int64_t p) { return parts[p]; }, t),
            2);
  EXPECT_EQ(t, 3);
  t = 1.5;
  EXPECT_EQ(part_under(
                4, [&](std::int64_t p) { return parts[p]; }, t),
            0);
  EXPECT_EQ(t, 1.5);
  t = 2;  // not above: the next one
  EXPECT_EQ(part_under(
                4, [&](std::int64_t p) { return parts[p]; }, t),
            2);
  EXPECT_EQ(t, 0);
}

}  // namespace
}  // namespace vicinal::core
