// What trees fail at: sizes around a leaf and around eight times as much, equal rows, ties without end, columns that
// say nothing, one row far away; and tables large enough to be built by several workers. See check.hpp.
// fake device: -*

#include <gtest/gtest.h>

#include "check.hpp"

namespace vicinal::contract {
namespace {

constexpr Metric kTreeMetrics[] = {Metric::euclidean, Metric::sqeuclidean, Metric::manhattan, Metric::chebyshev};
constexpr DType kTreeDTypes[] = {DType::float64, DType::float32, DType::uint8, DType::float16, DType::bfloat16};

// The tree alone, on every instruction set and on the CUDA device; `turn` varies the threads.
std::vector<Way> tree_ways(std::uint64_t turn) {
  constexpr int kThreads[] = {1, 2, 3, 7};
  std::vector<Way> ways;
  if (cuda_missing().empty()) ways.push_back({.method = Method::kdtree, .cuda = true});
  if (some_ways(0).back().cuda) return ways;
  for (const Isa isa : available_isas()) ways.push_back({isa, kThreads[turn++ % 4], Method::kdtree});
  return ways;
}

class Tree : public ::testing::TestWithParam<Family> {};

TEST_P(Tree, OfEveryWidthAndOfSizesAroundALeaf) {
  std::uint64_t turn = static_cast<std::uint64_t>(GetParam());
  for (const std::int64_t d : {1, 2, 3, 8, 9, 17, 41}) {
    for (const std::int64_t n : {1, 19, 20, 21, 39, 41, 80, 81, 319, 321, 640, 2561}) {
      if (is_left_out(++turn)) continue;
      Case c;
      c.family = GetParam();
      c.shape = {n, d, n > 1000 ? 13 : 31};
      c.seed = turn;
      c.metric = kTreeMetrics[turn % 4];
      c.dtype = kTreeDTypes[turn / 4 % 5];
      c.query_dtype = c.dtype;
      c.self = turn % 7 == 0 && n < 1000 && n > 1;
      c.filter = turn % 5 == 0 ? Filter::few : turn % 5 == 1 ? Filter::many : Filter::none;
      c.exclude = turn % 6 == 0;
      check(c, {.ks = {1, 10}, .all_rows = turn % 3 == 0}, tree_ways(turn));
    }
  }
}

TEST_P(Tree, BuiltBySeveralWorkers) {
  if (kSparse > 1 && GetParam() != Family::gaussian && GetParam() != Family::mostly_duplicates) {
    GTEST_SKIP() << "under a sanitizer two families are enough";
  }
  Case c;
  c.family = GetParam();
  c.shape = {70001, 3, 19};
  c.metric = kTreeMetrics[static_cast<std::uint64_t>(GetParam()) % 4];
  c.dtype = DType::float64;
  c.query_dtype = DType::float64;
  check(c, {.ks = {10}}, tree_ways(static_cast<std::uint64_t>(GetParam())));
}

// Radii within which boxes lie as wholes, up to all of them, at the distances of rows and just below.
TEST_P(Tree, CountsWithinLargeRadii) {
  auto turn = static_cast<std::uint64_t>(GetParam());
  for (const std::int64_t d : {1, 3, 9}) {
    for (const double p : {0.0, 1.5}) {
      if (is_left_out(++turn)) continue;
      Case c;
      c.family = GetParam();
      c.shape = {p > 0 ? 60 : 200, d, 5};
      c.seed = turn;
      c.metric = p > 0 ? Metric::minkowski : kTreeMetrics[turn % 4];
      if (p > 0) c.p = p;
      c.dtype = kTreeDTypes[turn % 5];
      c.query_dtype = c.dtype;
      c.self = turn % 3 == 0 && p == 0;
      c.filter = turn % 5 == 0 ? Filter::few : turn % 5 == 1 ? Filter::many : Filter::none;
      c.exclude = turn % 7 == 0;
      check(c, {.ks = {}, .far = true}, tree_ways(turn));
    }
  }
}

// Of trees with nodes below the root, and enough queries that their rows are counted first: those that a filter admits,
// or that are equal to others.
TEST(TreeCounts, WithinLargeRadiiOfRowsCountedByNodes) {
  for (const Family family : {Family::gaussian, Family::mostly_duplicates}) {  // one in ten of the latter is distinct
    for (const Filter filter : {Filter::none, Filter::many}) {
      Case c;
      c.family = family;
      c.shape = family == Family::gaussian ? Shape{2600, 3, 45} : Shape{4500, 3, 72};
      c.metric = Metric::euclidean;
      c.dtype = DType::float32;
      c.query_dtype = c.dtype;
      c.filter = filter;
      check(c, {.ks = {}, .far = true}, tree_ways(static_cast<std::uint64_t>(filter)));
    }
  }
}

// Enough of them to be put in the order of the leaves, where equal ones share an answer.
TEST_P(Tree, AskedByEqualQueries) {
  std::uint64_t turn = static_cast<std::uint64_t>(GetParam());
  for (const std::int64_t d : {1, 3, 9}) {
    for (const Filter filter : {Filter::none, Filter::few, Filter::many}) {
      if (is_left_out(++turn)) continue;
      Case c;
      c.family = GetParam();
      c.shape = {900, d, 200};
      c.seed = turn;
      c.metric = kTreeMetrics[turn % 4];
      c.dtype = kTreeDTypes[turn % 5];
      c.query_dtype = c.dtype;
      c.filter = filter;
      c.exclude = turn % 4 == 0;
      check(c, {.ks = {1, 10, 40}, .radii = false}, tree_ways(turn));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Search, Tree,
                         ::testing::Values(Family::gaussian, Family::duplicates, Family::mostly_duplicates,
                                           Family::grid, Family::constant, Family::constant_column, Family::on_a_line,
                                           Family::far_outlier, Family::signed_zeros, Family::offset, Family::huge,
                                           Family::subnormal, Family::clusters_1e6, Family::swiss_roll,
                                           Family::far_queries),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace vicinal::contract
