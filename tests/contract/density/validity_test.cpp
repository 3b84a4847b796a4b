// Density-based validity against the reference (contract clause 21).

#include "vicinal/validity.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "density_check.hpp"
#include "refused.hpp"
#include "vicinal/dbscan.hpp"
#include "vicinal/hdbscan.hpp"

namespace vicinal::contract {
namespace {

void expect_same_validity(const Validity& got, const Validity& expected, const std::string& what) {
  EXPECT_EQ(got.sizes, expected.sizes) << what;
  EXPECT_TRUE(same_bits(got.sparseness, expected.sparseness)) << what;
  EXPECT_TRUE(same_bits(got.separations, expected.separations)) << what;
  EXPECT_TRUE(same_bits(got.clusters, expected.clusters)) << what;
  ASSERT_EQ(got.index.has_value(), expected.index.has_value()) << what;
  EXPECT_TRUE(same_bits({got.index.value_or(0)}, {expected.index.value_or(0)})) << what;
}

/// Clusters of any kind, some of them of one row, or of two, or empty, and noise.
std::vector<std::vector<std::int64_t>> labelings(std::int64_t n) {
  std::vector<std::vector<std::int64_t>> all(4);
  for (std::int64_t row = 0; row < n; ++row) {
    all[0].push_back(row % 4 - 1);
    all[1].push_back(row < 2 ? 3 : row == 2 ? 1 : row % 3 == 0 ? -1 : 5);
    all[2].push_back(row == 0 ? 0 : -1);
    all[3].push_back(row / 2);
  }
  return all;
}

class ValidityOfFamily : public ::testing::TestWithParam<Family> {};

TEST_P(ValidityOfFamily, EqualsTheReference) {
  check_each_metric(GetParam(), 60, [](const PairTable& data, const std::string& what, std::uint64_t turn) {
    if (data.metric == Metric::inner_product) return;
    const TableView view = data.table.view();
    const ValidityOptions options{.metric = data.metric, .p = data.p};
    std::vector<std::vector<std::int64_t>> all = labelings(view.rows());
    all.push_back(hdbscan(on(1), view, {.min_cluster_size = 3, .metric = data.metric, .p = data.p}).labels);
    for (const std::vector<std::int64_t>& labels : all) {
      const Validity expected = reference::validity(data.keys, view.cols(), labels, options);
      for (const Context& ctx : cpu_contexts(turn)) {
        expect_same_validity(validity(ctx, view, labels, options), expected,
                             what + " " + std::string(name_of(data.metric)));
        if (::testing::Test::HasFailure()) return;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, ValidityOfFamily, ::testing::ValuesIn(all_families()),
                         [](const auto& of) { return std::string(name_of(of.param)); });

TEST(Validity, SameBitsOnEveryNumberOfThreads) {
  const std::vector<double> rows = make_rows(Family::clusters_1e2, {1500, 3, 1}, 5).table;
  const TableView table(rows.data(), 1500, 3);
  const std::vector<std::int64_t> labels = hdbscan(on(2), table, {.min_cluster_size = 20}).labels;
  const Validity expected = validity(on(1), table, labels);
  EXPECT_TRUE(expected.index.has_value());
  for (const int threads : {2, 3, 7}) expect_same_validity(validity(on(threads), table, labels), expected, "threads");
}

// 0, 1, 2 and 10, 11, 12: each row has the core distance 1 / mean(1 / distance).
TEST(Validity, OfTwoLines) {
  const std::vector<double> rows = {0, 1, 2, 10, 11, 12};
  const TableView table(rows.data(), 6, 1);
  const std::vector<std::int64_t> labels = {0, 0, 0, 1, 1, 1};
  const Validity found = validity(on(1), table, labels);
  const double outer = 2 / (1 + 0.5);
  EXPECT_EQ(found.sparseness, (std::vector<double>{outer, outer}));
  EXPECT_EQ(found.separations, (std::vector<double>{10, 10}));
  EXPECT_EQ(found.clusters, (std::vector<double>{(10 - outer) / 10, (10 - outer) / 10}));
  EXPECT_EQ(found.index, 3 * ((10 - outer) / 10) * 2 / 6);
}

TEST(Validity, OfEqualRowsAndOfOneCluster) {
  const std::vector<double> rows = {1, 1, 1, 1, 5, 5};
  const TableView table(rows.data(), 6, 1);
  const Validity found = validity(on(1), table, std::vector<std::int64_t>{0, 0, 0, 0, 1, 1});
  EXPECT_EQ(found.sparseness, (std::vector<double>{0, 0}));
  EXPECT_EQ(found.clusters, (std::vector<double>{1, 1}));
  EXPECT_EQ(found.index, 1);
  const Validity apart = validity(on(1), table, std::vector<std::int64_t>{0, 0, 1, 1, -1, -1});
  EXPECT_EQ(apart.clusters, (std::vector<double>{0, 0}));
  EXPECT_EQ(apart.index, 0);
  const Validity one = validity(on(1), table, std::vector<std::int64_t>{0, 0, 0, 0, 0, 1});
  EXPECT_FALSE(one.index.has_value());
  EXPECT_EQ(one.clusters, (std::vector<double>{0, 0}));
  const Validity none = validity(on(1), table, std::vector<std::int64_t>(6, -1));
  EXPECT_FALSE(none.index.has_value());
  EXPECT_TRUE(none.clusters.empty());
}

// Every distance is finite, but not the core distances of the first rows, which lie in two places far apart.
TEST(Validity, OfACoreDistanceThatOverflows) {
  std::vector<double> rows(1000, 0.0);
  rows.insert(rows.end(), {1e306, 1e306 + 1e292, 1e306 + 2e292, 1.5e308, 1.5e308 + 1e294});
  std::vector<std::int64_t> labels(rows.size(), 0);
  labels[1003] = labels[1004] = 1;
  const TableView table(rows.data(), std::ssize(rows), 1);
  const Validity found = validity(on(2), table, labels, {.metric = Metric::manhattan});
  EXPECT_TRUE(std::isinf(found.sparseness[0]));
  EXPECT_EQ(found.clusters[0], 0);
  ASSERT_TRUE(found.index.has_value());
  EXPECT_EQ(*found.index, 2 * found.clusters[1] / 1005);
}

TEST(Validity, RefusesWhatItCannotDo) {
  std::vector<double> rows = {0, 1, 2, 3, 4, 5, 6, 7};
  const TableView table(rows.data(), 4, 2);
  const std::vector<std::int64_t> labels = {0, 0, 1, 1};
  const auto expect = [&](const std::vector<std::int64_t>& given, const ValidityOptions& options,
                          const std::string& sentence) {
    refused([&] { (void)validity(on(1), table, given, options); }, ErrorCode::invalid_argument, sentence);
  };
  expect({0, 0, 1}, {}, "labels: there are 3 of them, but the table has 4 rows");
  expect({0, 0, 1, 4}, {}, "labels: row 3 has label 4, must be from 0 to 3, or -1 for noise");
  expect({0, -2, 1, 1}, {}, "labels: row 1 has label -2");
  expect(labels, {.metric = Metric::inner_product}, "metric: inner_product");
  expect(labels, {.metric = Metric::minkowski, .p = 0.5}, "p: must be finite and at least 1");
  refused([&] { (void)validity(on(1), TableView(rows.data(), 0, 2), {}); }, ErrorCode::invalid_argument,
          "table: is empty");
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    rows[5] = value;
    refused([&] { (void)validity(on(2), table, labels); }, ErrorCode::bad_data, "table: row 2, column 1");
  }
  rows[5] = 1e200;
  refused([&] { (void)validity(on(2), table, labels); }, ErrorCode::bad_data,
          "the distance of rows 2 and 3 overflows float64");
}

TEST(Validity, StopsWhenItIsCancelled) {
  expect_stops("validity", [](const Context& ctx, const TableView& table) {
    (void)validity(ctx, table, std::vector<std::int64_t>(3000, 0));
  });
}

TEST(Validity, SaysHowMuchMemoryItNeeds) {
  const std::vector<double> rows = make_rows(Family::gaussian, {3000, 3, 1}, 1).table;
  const TableView table(rows.data(), 3000, 3);
  std::vector<std::int64_t> labels;
  for (std::int64_t row = 0; row < 3000; ++row) labels.push_back(row % 7);
  const std::uint64_t needed = validity_bytes(on(2), table);
  refused([&] { (void)validity(Context::cpu({.threads = 2, .memory_limit = needed - 1}), table, labels); },
          ErrorCode::over_memory, "validity");
  EXPECT_TRUE(validity(Context::cpu({.threads = 2, .memory_limit = needed}), table, labels).index.has_value());
}

}  // namespace
}  // namespace vicinal::contract
