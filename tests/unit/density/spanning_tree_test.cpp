// Spanning trees of tables for which the searches in a kd-tree are hard: distances that are equal, and outliers between
// the rows of large components. Each equals the tree that is found without a kd-tree.
#include "vicinal/spanning_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal {
namespace {

void expect_tree_of_all_pairs(const TableView& table, SpanningTreeOptions options) {
  const Context ctx = Context::cpu({.threads = 3});
  options.method = Method::kdtree;
  const SpanningTree found = minimum_spanning_tree(ctx, table, options);
  options.method = Method::direct;
  const SpanningTree wanted = minimum_spanning_tree(ctx, table, options);
  EXPECT_EQ(found.a, wanted.a);
  EXPECT_EQ(found.b, wanted.b);
  EXPECT_EQ(found.lengths, wanted.lengths);
  EXPECT_EQ(found.core_distances, wanted.core_distances);
}

/// Points of a grid of `side` in each column, in a random order: most distances are equal, and boxes touch the limits.
std::vector<double> rows_of_a_grid(std::int64_t side, std::int64_t d, std::uint64_t seed) {
  const auto size = static_cast<std::int64_t>(std::llround(std::pow(side, d)));
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<double> rows;
  for (std::int64_t at : order) {
    for (std::int64_t j = 0; j < d; ++j, at /= side) rows.push_back(static_cast<double>(at % side));
  }
  return rows;
}

TEST(TreeOfAGrid, SpanningTreesAreThoseOfAllPairs) {
  for (const std::int64_t d : {1, 2, 3}) {
    for (const std::uint64_t seed : {1, 2}) {
      const std::vector<double> rows = rows_of_a_grid(d == 1 ? 1200 : (d == 2 ? 35 : 11), d, seed);
      const TableView table(rows.data(), std::ssize(rows) / d, d);
      for (const Metric metric : {Metric::euclidean, Metric::chebyshev}) {
        for (const std::int64_t least : {1, 2, 5, 12}) {
          SCOPED_TRACE(std::to_string(d) + " columns, min_samples " + std::to_string(least));
          expect_tree_of_all_pairs(table, {.min_samples = least, .metric = metric});
        }
      }
    }
  }
}

/// Some clouds of rows, whole numbers from 0 to 255, and outliers in and between them: in late rounds most boxes have
/// rows of a cloud and some outliers. Some rows are equal.
template <class T>
std::vector<T> clouds_with_outliers(std::int64_t n, std::int64_t d, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0, 255);
  std::vector<T> rows;
  for (std::int64_t row = 0; row < n; ++row) {
    const bool is_outlier = row % 40 == 0;
    const double centre = row % 3 == 0 ? 60 : (row % 3 == 1 ? 130 : 200);
    for (std::int64_t j = 0; j < d; ++j) {
      const double value = is_outlier ? uniform(random) : centre + 6 * normal(random);
      rows.push_back(static_cast<T>(std::clamp(std::round(value), 0.0, 255.0)));
    }
  }
  return rows;
}

template <class T>
class TreeOfClouds : public testing::Test {};
using Elements = testing::Types<double, float, std::uint8_t>;
TYPED_TEST_SUITE(TreeOfClouds, Elements);

TYPED_TEST(TreeOfClouds, IsThatOfAllPairs) {
  for (const std::int64_t d : {2, 5}) {
    const std::vector<TypeParam> rows = clouds_with_outliers<TypeParam>(1200, d, static_cast<std::uint64_t>(d));
    const TableView table(rows.data(), std::ssize(rows) / d, d);
    for (const Metric metric : {Metric::euclidean, Metric::manhattan}) {
      for (const std::int64_t least : {1, 4, 15}) {
        SCOPED_TRACE(std::to_string(d) + " columns, min_samples " + std::to_string(least));
        expect_tree_of_all_pairs(table, {.min_samples = least, .alpha = least == 4 ? 1.3 : 1.0, .metric = metric});
      }
    }
  }
}

/// Adds clouds of clouds of rows, of uneven sizes: components grow at uneven paces, so that in most rounds some large
/// ones are beside many small ones.
void add_clouds(std::int64_t size, std::vector<double> centre, double width, std::mt19937_64& random,
                std::vector<double>& rows) {
  std::normal_distribution<double> normal(0, width);
  while (size > 0) {
    std::vector<double> near = centre;
    for (double& value : near) value += normal(random);
    if (size < 4) {
      rows.insert(rows.end(), near.begin(), near.end());
      --size;
      continue;
    }
    const std::int64_t part = std::uniform_int_distribution<std::int64_t>(1, size - 1)(random);
    add_clouds(part, near, width / 3, random, rows);
    size -= part;
  }
}

TEST(TreeOfNestedClouds, IsThatOfAllPairs) {
  for (const std::int64_t d : {1, 2, 3}) {
    for (const std::uint64_t seed : {2, 3}) {
      std::mt19937_64 random(seed);
      std::vector<double> rows;
      add_clouds(3000, std::vector<double>(static_cast<std::size_t>(d), 0), 100, random, rows);
      const TableView table(rows.data(), std::ssize(rows) / d, d);
      for (const std::int64_t least : {1, 4}) {
        SCOPED_TRACE(std::to_string(d) + " columns, seed " + std::to_string(seed));
        expect_tree_of_all_pairs(table, {.min_samples = least});
      }
    }
  }
}

/// Normal clouds in so many columns that boxes keep no rows apart: most rows are compared by screens. Each fifth row is
/// there twice, and some are far from all others.
template <class T>
std::vector<T> clouds_of_many_columns(std::int64_t n, std::int64_t d) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0, 9);
  std::vector<T> rows;
  for (std::int64_t row = 0; row < n; ++row) {
    const bool again = row % 5 == 4;
    for (std::int64_t j = 0; j < d; ++j) {
      const double centre = row % 3 == 0 ? 90 : (row % 3 == 1 ? 110 : 160);
      const double value = again
                               ? static_cast<double>(rows[static_cast<std::size_t>((row - 1) * d + j)])
                               : std::clamp(std::round(centre + (row % 40 == 0 ? 6 : 1) * normal(random)), 0.0, 255.0);
      rows.push_back(static_cast<T>(value));
    }
  }
  return rows;
}

template <class T>
class TreeOfManyColumns : public testing::Test {};
TYPED_TEST_SUITE(TreeOfManyColumns, Elements);

TYPED_TEST(TreeOfManyColumns, IsThatOfAllPairs) {
  for (const std::int64_t d : {8, 20}) {
    const std::vector<TypeParam> rows = clouds_of_many_columns<TypeParam>(4800, d);
    const TableView table(rows.data(), std::ssize(rows) / d, d);
    for (const std::int64_t least : {1, 6}) {
      SCOPED_TRACE(std::to_string(d) + " columns, min_samples " + std::to_string(least));
      expect_tree_of_all_pairs(table, {.min_samples = least, .alpha = d == 20 ? 1.3 : 1.0});
    }
  }
}

/// Dense clusters of unequal widths and a tenth of the rows spread over all: outliers lie in the boxes of most leaves.
/// A small cluster is far from all. Small whole numbers, so that many core distances and edges are equal.
std::vector<std::uint8_t> clusters_among_outliers(std::int64_t n, std::int64_t clusters, std::int64_t d,
                                                  std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0, 60);
  std::vector<double> centres;
  for (std::int64_t i = 0; i < clusters * d; ++i) centres.push_back(uniform(random));
  std::vector<std::uint8_t> rows;
  for (std::int64_t row = 0; row < n; ++row) {
    const std::int64_t cluster = row % clusters;
    for (std::int64_t j = 0; j < d; ++j) {
      const double centre = row % 128 == 1 ? 180 : centres[static_cast<std::size_t>(cluster * d + j)];
      const double value = centre + static_cast<double>(1 + cluster % 3) * normal(random);
      rows.push_back(static_cast<std::uint8_t>(std::lround(std::abs(row % 10 == 0 ? uniform(random) : value))));
    }
  }
  return rows;
}

// These tables have edges at the limits of what is left out.
TEST(TreeOfClustersAmongOutliers, IsThatOfAllPairs) {
  struct Case {
    std::int64_t clusters;
    std::int64_t d;
    std::uint64_t seed;
    std::int64_t min_samples;
    Metric metric = Metric::euclidean;
  };
  const Case cases[] = {{5, 8, 14, 8},   {5, 12, 36, 8}, {3, 8, 6, 20},  {3, 8, 6, 60, Metric::manhattan},
                        {2, 16, 15, 60}, {3, 8, 6, 60},  {5, 33, 19, 20}};
  for (const Case& one : cases) {
    SCOPED_TRACE(std::to_string(one.d) + " columns, seed " + std::to_string(one.seed));
    const std::vector<std::uint8_t> rows = clusters_among_outliers(3000, one.clusters, one.d, one.seed);
    const TableView table(rows.data(), std::ssize(rows) / one.d, one.d);
    expect_tree_of_all_pairs(table, {.min_samples = one.min_samples, .metric = one.metric});
  }
}

}  // namespace
}  // namespace vicinal
