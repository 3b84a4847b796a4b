// HDBSCAN against the reference (contract clause 29): every number of a clustering, on hard data.

#include "vicinal/hdbscan.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "density_check.hpp"
#include "refused.hpp"
#include "vicinal/generate.hpp"

namespace vicinal::contract {
namespace {

std::string text_of(const HdbscanOptions& options) {
  return std::string(name_of(options.metric)) + " " + std::string(name_of(options.selection)) +
         " min_cluster_size=" + std::to_string(options.min_cluster_size) +
         " min_samples=" + std::to_string(options.min_samples) + " epsilon=" + std::to_string(options.epsilon) +
         " max=" + std::to_string(options.max_cluster_size) + (options.allow_single_cluster ? " or one" : "");
}

void expect_same_clusters(const Hdbscan& got, const Hdbscan& expected, const std::string& what) {
  EXPECT_EQ(got.tree.parents, expected.tree.parents) << what;
  EXPECT_EQ(got.tree.sizes, expected.tree.sizes) << what;
  EXPECT_EQ(got.tree.labels, expected.tree.labels) << what;
  EXPECT_EQ(got.tree.row_clusters, expected.tree.row_clusters) << what;
  EXPECT_TRUE(same_bits(got.tree.births, expected.tree.births)) << what;
  EXPECT_TRUE(same_bits(got.tree.stabilities, expected.tree.stabilities)) << what;
  EXPECT_TRUE(same_bits(got.tree.row_distances, expected.tree.row_distances)) << what;
  EXPECT_EQ(got.labels, expected.labels) << what;
  EXPECT_EQ(got.clusters, expected.clusters) << what;
  EXPECT_EQ(got.noise, expected.noise) << what;
  EXPECT_EQ(got.sizes, expected.sizes) << what;
  EXPECT_TRUE(same_bits(got.probabilities, expected.probabilities)) << what;
  EXPECT_TRUE(same_bits(got.outlier_scores, expected.outlier_scores)) << what;
  EXPECT_TRUE(same_bits(got.persistences, expected.persistences)) << what;
  EXPECT_EQ(got.exemplar_offsets, expected.exemplar_offsets) << what;
  EXPECT_EQ(got.exemplars, expected.exemplars) << what;
}

std::vector<HdbscanOptions> every_choice(const SpanningTree& tree) {
  std::vector<HdbscanOptions> all;
  const double middle = tree.lengths[tree.lengths.size() / 2];
  const double long_one = tree.lengths[tree.lengths.size() * 9 / 10];
  for (const ClusterSelection selection : {ClusterSelection::excess_of_mass, ClusterSelection::leaves}) {
    for (const bool single : {false, true}) {
      for (const double epsilon : {0.0, middle, long_one}) {
        for (const std::int64_t largest : {0, 12}) {
          all.push_back({.selection = selection,
                         .epsilon = epsilon,
                         .max_cluster_size = largest,
                         .allow_single_cluster = single});
        }
      }
    }
  }
  return all;
}

void check_every_choice(const PairTable& data, const std::string& what, std::uint64_t turn) {
  const SpanningTreeOptions reach{
      .min_samples = std::int64_t{1} + static_cast<std::int64_t>(turn % 3) * 2, .metric = data.metric, .p = data.p};
  const SpanningTree tree = reference::minimum_spanning_tree(data.keys, reach);
  for (HdbscanOptions options : every_choice(tree)) {
    if (is_left_out(++turn)) continue;
    options.min_cluster_size = std::int64_t{2} + static_cast<std::int64_t>(turn % 5);
    options.min_samples = reach.min_samples;
    options.metric = data.metric;
    options.p = data.p;
    const Hdbscan expected = reference::hdbscan(tree, options);
    for (const Context& ctx : contexts(turn)) {
      expect_same_clusters(hdbscan(ctx, tree, options), expected, what + " of a tree " + text_of(options));
      if (turn % 4 == 0) {
        expect_same_clusters(hdbscan(ctx, data.table.view(), options), expected, what + " " + text_of(options));
      }
      if (::testing::Test::HasFailure()) return;
      if (turn % 8 != 0) break;
    }
  }
}

class HdbscanOfFamily : public ::testing::TestWithParam<Family> {};

TEST_P(HdbscanOfFamily, EqualsTheReference) {
  std::uint64_t turn = static_cast<std::uint64_t>(GetParam());
  for (int i = 0; i < 3; ++i) {
    const auto& [metric, p] = kAllMetrics[(turn + static_cast<std::uint64_t>(i) * 3) % 8];
    if (metric == Metric::inner_product) continue;
    const PairTable data(make_rows(GetParam(), {60, 3, 1}, 3).table, 3, metric, p, kAllDTypes[turn % 5]);
    ++turn;
    if (data.overflows()) continue;
    check_every_choice(data, std::string(name_of(GetParam())), turn);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HdbscanOfFamily, ::testing::ValuesIn(all_families()),
                         [](const auto& of) { return std::string(name_of(of.param)); });

TEST(Hdbscan, Sizes) {
  std::uint64_t turn = 0;
  for (const std::int64_t n : {2, 3, 7, 8, 40}) {
    for (const Family family : {Family::gaussian, Family::integer_ties, Family::duplicates, Family::constant}) {
      const PairTable data(make_rows(family, {n, 2, 1}, ++turn).table, 2);
      const SpanningTreeOptions reach{.min_samples = 2};
      const SpanningTree tree = reference::minimum_spanning_tree(data.keys, reach);
      for (const std::int64_t size : {std::int64_t{2}, std::int64_t{3}, n, n + 1}) {
        for (const bool single : {false, true}) {
          if (size < 2) continue;
          const HdbscanOptions options{.min_cluster_size = size, .min_samples = 2, .allow_single_cluster = single};
          expect_same_clusters(hdbscan(on(1), data.table.view(), options), reference::hdbscan(tree, options),
                               std::string(name_of(family)) + " n=" + std::to_string(n) + " " + text_of(options));
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(Hdbscan, BlobsOfDifferentDensities) {
  const std::int64_t n = sanitized<std::int64_t>(240, 120);
  Generated made = generate(on(2), {.shape = vicinal::Shape::blobs, .rows = n, .cols = 2, .centers = 5, .seed = 2});
  for (std::int64_t i = 0; i < n; ++i) made.points[static_cast<std::size_t>(2 * i)] *= 1.0 + static_cast<double>(i % 5);
  const PairTable data(made.points, 2);
  check_every_choice(data, "blobs", 1);
  check_every_choice(data, "blobs", 2);
}

TEST(Hdbscan, OneRow) {
  const std::vector<double> row = {1, 2};
  const Hdbscan found = hdbscan(on(1), TableView(row.data(), 1, 2), {.min_samples = 1});
  EXPECT_EQ(found.labels, std::vector<std::int64_t>{-1});
  EXPECT_EQ(found.clusters, 0);
  EXPECT_EQ(found.noise, 1);
  EXPECT_EQ(found.outlier_scores, std::vector<double>{0});
  const Hdbscan alone = hdbscan(on(1), TableView(row.data(), 1, 2), {.min_samples = 1, .allow_single_cluster = true});
  EXPECT_EQ(alone.labels, std::vector<std::int64_t>{0});
  EXPECT_EQ(alone.probabilities, std::vector<double>{1});
  EXPECT_EQ(alone.persistences, std::vector<double>{1});
}

// Clusters that are born with an infinite lambda, with which their rows leave: no tree of ours has them, one of others
// may.
TEST(Hdbscan, PartsOfEqualRows) {
  SpanningTree tree;
  tree.rows = 5;
  tree.a = {0, 2, 1, 0};
  tree.b = {1, 3, 2, 4};
  tree.lengths = {0, 0, 0, 1};
  for (const bool single : {false, true}) {
    const HdbscanOptions options = {.min_cluster_size = 2, .allow_single_cluster = single};
    const Hdbscan found = hdbscan(on(1), tree, options);
    EXPECT_EQ(found.tree.stabilities[1], 0);
    expect_same_clusters(found, reference::hdbscan(tree, options), text_of(options));
  }
}

TEST(Hdbscan, RefusesWhatItCannotDo) {
  const std::vector<double> rows = {0, 1, 2, 3, 4, 5, 6, 7};
  const TableView table(rows.data(), 4, 2);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto expect = [&](const HdbscanOptions& options, const std::string& sentence) {
    refused([&] { hdbscan(on(1), table, options); }, ErrorCode::invalid_argument, sentence);
    refused([&] { plan_hdbscan(on(1), table, options); }, ErrorCode::invalid_argument, sentence);
  };
  expect({.min_cluster_size = 1}, "min_cluster_size: is 1, must be at least 2");
  expect({.min_cluster_size = 0}, "min_cluster_size: is 0, must be at least 2");
  expect({.min_cluster_size = 5}, "min_samples: is 5, must be from 1 to 4 for 4 rows");
  expect({.min_cluster_size = 2, .epsilon = -1}, "epsilon: must be at least 0 and finite");
  expect({.min_cluster_size = 2, .epsilon = kNan}, "epsilon: must be at least 0 and finite");
  expect({.min_cluster_size = 2, .max_cluster_size = -1}, "max_cluster_size: is -1");
  expect({.min_cluster_size = 2, .metric = Metric::inner_product}, "metric: inner_product may be below 0");
  expect({.min_cluster_size = 2, .alpha = 0}, "alpha: must be above 0 and finite");
}

TEST(Hdbscan, RefusesValuesThatHaveNoDistance) {
  std::vector<double> rows = make_rows(Family::gaussian, {40, 3, 1}, 1).table;
  const TableView table(rows.data(), 40, 3);
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    rows[7 * 3 + 1] = value;
    refused([&] { hdbscan(on(2), table, {}); }, ErrorCode::bad_data, "row 7, column 1");
  }
  rows[7 * 3 + 1] = 1e200;
  refused([&] { hdbscan(on(2), table, {}); }, ErrorCode::bad_data, "overflows float64");
}

// Reading clusters from a tree polls, too.
TEST(Hdbscan, StopsWhenItIsCancelled) {
  SpanningTree chain;
  chain.rows = 70000;
  for (std::int64_t row = 1; row < chain.rows; ++row) {
    chain.a.push_back(row - 1);
    chain.b.push_back(row);
    chain.lengths.push_back(static_cast<double>(row));
  }
  CancelToken token;
  const Context ctx = Context::cpu({.threads = 1, .cancel = token});
  EXPECT_EQ(hdbscan(ctx, chain).clusters, 0);
  token.cancel();
  refused([&] { hdbscan(ctx, chain); }, ErrorCode::cancelled, "");
}

TEST(Hdbscan, RefusesWhatIsNoSpanningTree) {
  const auto expect = [](const SpanningTree& tree, const std::string& sentence) {
    refused([&] { hdbscan(on(1), tree, {}); }, ErrorCode::invalid_argument, sentence);
  };
  SpanningTree tree;
  tree.rows = 3;
  tree.a = {0, 1};
  tree.b = {1, 2};
  tree.lengths = {1, 2};
  EXPECT_EQ(hdbscan(on(1), tree, {}).noise, 3);
  SpanningTree other = tree;
  other.rows = 4;
  expect(other, "no spanning tree of 4 rows");
  other.rows = -1;
  expect(other, "no spanning tree of -1 rows");
  other.rows = std::numeric_limits<std::int64_t>::max();
  expect(other, "no spanning tree of 9223372036854775807 rows");
  other = tree;
  other.b = {1, 3};
  expect(other, "edge 1 has an end that is no row");
  other.b = {1, -1};
  expect(other, "edge 1 has an end that is no row");
  other.b = {1, 0};
  expect(other, "edge 1 closes a cycle");
  for (const double length :
       {0.5, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    other = tree;
    other.lengths[1] = length;
    expect(other, "that of edge 1 is");
  }
}

TEST(Hdbscan, SaysHowMuchMemoryItNeeds) {
  const std::vector<double> rows = make_rows(Family::gaussian, {3000, 3, 1}, 1).table;
  const TableView table(rows.data(), 3000, 3);
  refused([&] { hdbscan(Context::cpu({.threads = 2, .memory_limit = 760000}), table); }, ErrorCode::over_memory,
          "hdbscan");
  const Context enough = Context::cpu({.threads = 2, .memory_limit = plan_hdbscan(on(2), table).memory});
  EXPECT_EQ(hdbscan(enough, table).labels.size(), 3000U);
}

}  // namespace
}  // namespace vicinal::contract
