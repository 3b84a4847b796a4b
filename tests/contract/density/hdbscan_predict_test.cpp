// Prediction of HDBSCAN against the reference (contract clause 29), and the model's file.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "density_check.hpp"
#include "refused.hpp"
#include "vicinal/hdbscan_model.hpp"
#include "vicinal/knn.hpp"

namespace vicinal::contract {
namespace {

/// Rows of a table and further rows of the same kind, with the keys of all pairs of both.
struct Asked {
  PairTable all;
  std::int64_t n;

  Asked(const std::vector<double>& rows, std::int64_t cols, std::int64_t table_rows, Metric metric, double p,
        DType dtype = DType::float64)
      : all(rows, cols, metric, p, dtype), n(table_rows) {}
  [[nodiscard]] TableView table() const { return all.table.view().slice(0, n); }
  [[nodiscard]] std::int64_t size() const { return all.table.view().rows(); }
  /// Also of the table's own rows.
  [[nodiscard]] HdbscanPrediction expected(const Hdbscan& fitted) const {
    std::vector<double> keys;
    std::vector<double> distances;
    for (std::int64_t query = 0; query < size(); ++query) {
      for (std::int64_t row = 0; row < n; ++row) {
        keys.push_back(all.keys[static_cast<std::size_t>(query * size() + row)]);
        distances.push_back(reference::distance_of(all.metric, all.p, keys.back()));
      }
    }
    return reference::predict(fitted, keys, distances);
  }
};

void expect_same_places(const HdbscanPrediction& got, const HdbscanPrediction& expected, const std::string& what) {
  EXPECT_EQ(got.rows, expected.rows) << what;
  EXPECT_EQ(got.labels, expected.labels) << what;
  EXPECT_TRUE(same_bits(got.probabilities, expected.probabilities)) << what;
}

TEST(HdbscanPredict, EqualsTheReference) {
  std::uint64_t turn = 0;
  for (const Family family : all_families()) {
    const auto& [metric, p] = kAllMetrics[++turn % 8];
    if (metric == Metric::inner_product) continue;
    const Asked asked(make_rows(family, {70, 3, 1}, 3).table, 3, 50, metric, p, kAllDTypes[turn % 5]);
    if (asked.all.overflows()) continue;
    for (const std::int64_t least : {1, 3, 8}) {
      const HdbscanOptions options{
          .min_cluster_size = 2 + static_cast<std::int64_t>(turn % 4),
          .min_samples = least,
          .count_self = turn % 2 == 0,
          .alpha = turn % 3 == 0 ? 1.3 : 1,
          .selection = turn % 2 == 0 ? ClusterSelection::leaves : ClusterSelection::excess_of_mass,
          .epsilon = least == 3 ? 0.5 : 0,
          .allow_single_cluster = least == 8,
          .metric = metric,
          .p = p};
      const Index index(on(2), asked.table());
      const Hdbscan fitted = hdbscan(on(2), index, options);
      const HdbscanPrediction expected = asked.expected(fitted);
      for (const Context& ctx : contexts(turn)) {
        expect_same_places(
            predict(ctx, Index(ctx, asked.table()), fitted, asked.all.table.view()), expected,
            std::string(name_of(family)) + " " + std::string(name_of(metric)) + " " + std::to_string(least));
        if (HasFailure()) return;
        if (turn % 4 != 0) break;
      }
    }
  }
}

// Of a query in the middle of a sphere the rows on it are nearest, and their core distances are large. A dense pair
// behind all of them is reached first: lists must grow until that is certain.
TEST(HdbscanPredict, LongerListsWhereTheFirstLeaveItOpen) {
  constexpr std::int64_t kCols = 40;
  std::vector<double> rows;
  const auto add = [&](std::size_t axis, double value) {
    rows.resize(rows.size() + kCols, 0);
    rows[rows.size() - kCols + axis] = value;
  };
  for (std::size_t axis = 0; axis < kCols; ++axis) {
    add(axis, 1);
    add(axis, -1);
  }
  rows.insert(rows.end(), kCols, 0.205);  // at a distance of 1.3, and of 1.5 from all other rows
  rows.insert(rows.end(), kCols, 0.2055);
  for (std::size_t i = 0; i < 300; ++i) add(i % kCols, 50 + static_cast<double>(i));
  const auto n = static_cast<std::int64_t>(rows.size()) / kCols;
  add(0, 0);
  const Asked asked(rows, kCols, n, Metric::euclidean, 2);
  const Index index(on(2), asked.table());
  const Hdbscan fitted = hdbscan(on(2), index, {.min_cluster_size = 2, .min_samples = 2});
  const HdbscanPrediction found = predict(on(2), index, fitted, asked.all.table.view());
  expect_same_places(found, asked.expected(fitted), "sphere");
  EXPECT_EQ(found.rows.back(), 80);
}

TEST(HdbscanPredict, RowsOfTheTableKeepTheirLabels) {
  const std::vector<double> rows = make_rows(Family::clusters_1e2, {200, 2, 1}, 5).table;
  const TableView table(rows.data(), 200, 2);
  const Index index(on(2), table);
  for (const ClusterSelection selection : {ClusterSelection::excess_of_mass, ClusterSelection::leaves}) {
    const Hdbscan fitted = hdbscan(on(2), index, {.min_cluster_size = 5, .selection = selection});
    EXPECT_GT(fitted.clusters, 1);
    EXPECT_EQ(predict(on(1), index, fitted, table).labels, fitted.labels);
  }
}

TEST(HdbscanPredict, OfATreeThatWasFoundBefore) {
  const std::vector<double> rows = make_rows(Family::clusters_1e2, {120, 2, 1}, 6).table;
  const TableView table(rows.data(), 120, 2);
  const Index index(on(1), table);
  const SpanningTree tree = minimum_spanning_tree(on(1), index, {.min_samples = 4, .metric = Metric::manhattan});
  const Hdbscan fitted = hdbscan(on(1), tree, {.min_cluster_size = 6});
  EXPECT_EQ(fitted.options.min_samples, 4);
  const Hdbscan at_once = hdbscan(on(1), index, {.min_cluster_size = 6, .min_samples = 4, .metric = Metric::manhattan});
  expect_same_places(predict(on(1), index, fitted, table), predict(on(1), index, at_once, table), "tree");
  const SpanningTree plain = minimum_spanning_tree(on(1), index, {.min_samples = 0, .count_self = false});
  expect_same_places(predict(on(1), index, hdbscan(on(1), plain, {.min_cluster_size = 6}), table),
                     predict(on(1), index, hdbscan(on(1), index, {.min_cluster_size = 6, .min_samples = 1}), table),
                     "tree without core distances");
}

class HdbscanModelFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    path_ = std::filesystem::temp_directory_path() / ("vicinal_hdbscan_" + name + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::filesystem::path path_;
};

TEST_F(HdbscanModelFile, ComesBackWhole) {
  const std::vector<double> rows = make_rows(Family::clusters_1e2, {150, 2, 1}, 7).table;
  const TableView table(rows.data(), 100, 2);
  const TableView others(rows.data() + 200, 50, 2);
  const Index index(on(1), table);
  for (const double epsilon : {0.0, 0.3}) {
    for (const bool single : {false, true}) {
      const HdbscanOptions options{.min_cluster_size = 4, .epsilon = epsilon, .allow_single_cluster = single};
      const HdbscanModel model{index, hdbscan(on(1), index, options), "some notes"};
      model.save(on(1), path_);
      const HdbscanModel again = HdbscanModel::load(on(1), path_);
      EXPECT_EQ(again.notes, "some notes");
      EXPECT_EQ(again.fitted.labels, model.fitted.labels);
      EXPECT_TRUE(same_bits(again.fitted.probabilities, model.fitted.probabilities));
      EXPECT_TRUE(same_bits(again.fitted.outlier_scores, model.fitted.outlier_scores));
      EXPECT_TRUE(same_bits(again.fitted.persistences, model.fitted.persistences));
      EXPECT_EQ(again.fitted.exemplars, model.fitted.exemplars);
      EXPECT_EQ(again.fitted.sizes, model.fitted.sizes);
      expect_same_places(predict(on(1), again, others), predict(on(1), index, model.fitted, others), "loaded");
    }
  }
}

TEST_F(HdbscanModelFile, OfAnotherClusteringIsRefused) {
  const std::vector<double> rows = make_rows(Family::clusters_1e2, {40, 2, 1}, 8).table;
  const Index index(on(1), TableView(rows.data(), 40, 2));
  const Hdbscan good = hdbscan(on(1), index, {.min_cluster_size = 4});
  const auto expect = [&](const Hdbscan& fitted, const std::string& sentence) {
    refused([&] { (HdbscanModel{index, fitted}.save(on(1), path_)); }, ErrorCode::invalid_argument, sentence);
    refused([&] { predict(on(1), index, fitted, index.table()); }, ErrorCode::invalid_argument, sentence);
    EXPECT_FALSE(std::filesystem::exists(path_));
  };
  Hdbscan bad = good;
  bad.core_distances.clear();
  expect(bad, "40 rows with 0 core distances, but the index has 40 rows");
  bad = good;
  bad.tree.row_clusters[3] = 99;
  expect(bad, "rows that are in none of its clusters");
  bad = good;
  bad.tree.parents.back() = static_cast<std::int64_t>(bad.tree.parents.size());
  expect(bad, "of its condensed tree is not one of 40 rows");
  bad = good;
  bad.tree.births.pop_back();
  expect(bad, "the arrays of its condensed tree differ in length");
  ASSERT_GT(good.tree.births.size(), 1U);
  bad = good;
  bad.tree.births[1] = std::numeric_limits<double>::infinity();
  bad.tree.births[0] = 1;
  expect(bad, "of its condensed tree is not one of 40 rows");
  bad = good;
  for (double& birth : bad.tree.births) birth = 0;
  expect(bad, "leaves its cluster of the condensed tree before that begins");
  bad = good;
  bad.options.min_samples = 41;
  expect(bad, "its options are not those of a clustering of 40 rows");
  refused([&] { predict(on(1), index, good, TableView(rows.data(), 20, 4)); }, ErrorCode::invalid_argument,
          "queries: 4 columns, but the table has 2");
}

// A limit below tells a number, which is enough.
TEST_F(HdbscanModelFile, PredictionSaysHowMuchMemoryItNeeds) {
  const std::vector<double> rows = make_rows(Family::gaussian, {2000, 8, 1}, 8).table;
  const TableView table(rows.data(), 2000, 8);
  const Index index(on(1), table);
  const Hdbscan fitted = hdbscan(on(1), index, {.min_cluster_size = 20});
  const auto within = [&](std::uint64_t limit) {
    return predict(Context::cpu({.threads = 1, .memory_limit = limit}), index, fitted, table).labels;
  };
  std::uint64_t needed = 0;
  try {
    (void)within(1000);
  } catch (const Error& error) {
    const std::string sentence = error.what();
    needed = std::stoull(sentence.substr(sentence.find('(') + 1));
  }
  const std::vector<std::int64_t> labels = predict(on(1), index, fitted, table).labels;
  EXPECT_EQ(within(needed), labels);
  const Plan plan = plan_predict(on(1), index, fitted, table);
  EXPECT_GE(plan.memory, needed);
  EXPECT_EQ(within(plan.memory), labels);
  // Beside the first lists, of twice as many rows as core distances need: a row, what reaches it, and how far.
  const Plan lists = plan_knn(on(1), table, &table, {.k = 2 * 20});
  EXPECT_GE(plan.memory, lists.memory + 2000 * (8 + 2) * sizeof(double));
}

TEST_F(HdbscanModelFile, CutShortIsRefused) {
  const std::vector<double> rows = make_rows(Family::clusters_1e2, {40, 2, 1}, 8).table;
  const Index index(on(1), TableView(rows.data(), 40, 2));
  HdbscanModel{index, hdbscan(on(1), index, {.min_cluster_size = 4})}.save(on(1), path_);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 9);
  refused([&] { HdbscanModel::load(on(1), path_); }, ErrorCode::bad_data, "");
  index.save(on(1), path_);
  refused([&] { HdbscanModel::load(on(1), path_); }, ErrorCode::bad_data, "not a model of vicinal hdbscan");
}

}  // namespace
}  // namespace vicinal::contract
