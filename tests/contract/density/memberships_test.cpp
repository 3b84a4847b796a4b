// Memberships of HDBSCAN against the reference (contract clause 29).

#include "vicinal/memberships.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "density_check.hpp"
#include "refused.hpp"
#include "vicinal/hdbscan_model.hpp"

namespace vicinal::contract {
namespace {

/// Rows of a table and further rows, with the keys of all pairs of both.
struct Soft {
  PairTable all;
  std::int64_t n;

  Soft(const std::vector<double>& rows, std::int64_t cols, std::int64_t table_rows, Metric metric = Metric::euclidean,
       double p = 2, DType dtype = DType::float64)
      : all(rows, cols, metric, p, dtype), n(table_rows) {}
  [[nodiscard]] std::int64_t size() const { return all.table.view().rows(); }
  [[nodiscard]] TableView table() const { return all.table.view().slice(0, n); }
  /// Of the table's rows, or of all as new ones.
  [[nodiscard]] std::vector<double> expected(const Hdbscan& fitted, bool is_new) const {
    std::vector<double> keys;
    std::vector<double> distances;
    for (std::int64_t query = 0; query < (is_new ? size() : n); ++query) {
      for (std::int64_t row = 0; row < n; ++row) {
        keys.push_back(all.keys[static_cast<std::size_t>(query * size() + row)]);
        distances.push_back(reference::distance_of(all.metric, all.p, keys.back()));
      }
    }
    return reference::memberships(fitted, keys, distances, is_new);
  }
};

/// Each exponential is within 2^-50 of its value, relative; a score of a row that was clustered is one, at most 0.37,
/// so that a difference of two is within 2^-50, absolute. Weights are within 2^-49 or 2^-48 then, and so is their sum;
/// five more roundings of 2^-53 make less than 2^-46. A square of an exponential may be subnormal.
void expect_near(const Memberships& got, const std::vector<double>& expected, std::int64_t rows, std::int64_t clusters,
                 const std::string& what) {
  ASSERT_EQ(got.rows, rows) << what;
  ASSERT_EQ(got.clusters, clusters) << what;
  ASSERT_EQ(got.values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::fabs(got.values[i] - expected[i]);
    const double tolerance = std::ldexp(expected[i], -46) + 1e-300;
    if (!(error <= tolerance)) {
      FAIL() << what << ": row " << i / static_cast<std::size_t>(clusters) << " is " << got.values[i] << ", must be "
             << expected[i];
    }
  }
}

TEST(Memberships, EqualTheReference) {
  std::uint64_t turn = 0;
  for (const Family family : all_families()) {
    for (int i = 0; i < 2; ++i) {
      const auto& [metric, p] = kAllMetrics[++turn % 8];
      if (metric == Metric::inner_product || is_left_out(turn)) continue;
      const Soft soft(make_rows(family, {70, 3, 1}, 3).table, 3, 50, metric, p, kAllDTypes[turn % 5]);
      if (soft.all.overflows()) continue;
      for (const std::int64_t least : {1, 3, 8}) {
        const HdbscanOptions options{
            .min_cluster_size = 2 + static_cast<std::int64_t>(turn % 4),
            .min_samples = least,
            .count_self = turn % 2 == 0,
            .alpha = turn % 3 == 0 ? 1.3 : 1,
            .selection = least != 1 ? ClusterSelection::leaves : ClusterSelection::excess_of_mass,
            .epsilon = least == 3 ? 0.5 : 0,
            .max_cluster_size = turn % 5 == 0 ? 4 : 0,
            .allow_single_cluster = least == 8,
            .metric = metric,
            .p = p};
        const std::string what =
            std::string(name_of(family)) + " " + std::string(name_of(metric)) + " " + std::to_string(least);
        const Index index(on(2), soft.table());
        const Hdbscan fitted = hdbscan(on(2), index, options);
        const std::vector<double> own = soft.expected(fitted, false);
        const std::vector<double> as_new = soft.expected(fitted, true);
        for (const Context& ctx : contexts(turn)) {
          const Index indexed(ctx, soft.table());
          expect_near(memberships(ctx, indexed, fitted), own, soft.n, fitted.clusters, what);
          expect_near(memberships(ctx, indexed, fitted, soft.all.table.view()), as_new, soft.size(), fitted.clusters,
                      what + " new");
          if (HasFailure()) return;
          if (turn % 4 != 0) break;
        }
      }
    }
  }
}

TEST(Memberships, SameBitsEverywhere) {
  const std::vector<double> rows = make_rows(Family::clusters_1e2, {400, 3, 1}, 5).table;
  const TableView table(rows.data(), 300, 3);
  const TableView others(rows.data() + 900, 100, 3);
  const Index index(on(1), table);
  const Hdbscan fitted = hdbscan(on(1), index, {.min_cluster_size = 5, .selection = ClusterSelection::leaves});
  ASSERT_GT(fitted.clusters, 1);
  const Memberships own = memberships(on(1), index, fitted);
  const Memberships of_others = memberships(on(1), index, fitted, others);
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    for (const Context& ctx : contexts(turn)) {
      const Index indexed(ctx, table);
      EXPECT_TRUE(same_bits(memberships(ctx, indexed, fitted).values, own.values));
      EXPECT_TRUE(same_bits(memberships(ctx, indexed, fitted, others).values, of_others.values));
    }
  }
  for (const int threads : {2, 3, 7})
    EXPECT_TRUE(same_bits(memberships(on(threads), index, fitted).values, own.values));
  std::vector<double> joined;
  membership_batches(on(2), index, fitted, nullptr, [&](const Memberships& batch) {
    EXPECT_EQ(batch.first * batch.clusters, std::ssize(joined));
    joined.insert(joined.end(), batch.values.begin(), batch.values.end());
  });
  EXPECT_TRUE(same_bits(joined, own.values));
}

// Exemplars are in their clusters alone, all rows in the only cluster there is, and none where there is none.
TEST(Memberships, OfExemplarsAndOfOneClusterAndOfNone) {
  const std::vector<double> rows = make_rows(Family::clusters_1e2, {200, 2, 1}, 5).table;
  const TableView table(rows.data(), 200, 2);
  const Index index(on(2), table);
  const Hdbscan fitted = hdbscan(on(2), index, {.min_cluster_size = 5});
  ASSERT_GT(fitted.clusters, 1);
  const Memberships found = memberships(on(2), index, fitted);
  for (std::int64_t cluster = 0; cluster < fitted.clusters; ++cluster) {
    for (std::int64_t at = fitted.exemplar_offsets[static_cast<std::size_t>(cluster)];
         at < fitted.exemplar_offsets[static_cast<std::size_t>(cluster) + 1]; ++at) {
      const std::int64_t row = fitted.exemplars[static_cast<std::size_t>(at)];
      for (std::int64_t other = 0; other < fitted.clusters; ++other) {
        EXPECT_EQ(found.values[static_cast<std::size_t>(row * fitted.clusters + other)], other == cluster ? 1 : 0);
      }
    }
  }
  const Hdbscan none = hdbscan(on(2), index, {.min_cluster_size = 150});
  EXPECT_EQ(none.clusters, 0);
  EXPECT_TRUE(memberships(on(2), index, none).values.empty());
  EXPECT_EQ(memberships(on(2), index, none, table).rows, 200);
  const Hdbscan one = hdbscan(on(2), index, {.min_cluster_size = 150, .allow_single_cluster = true});
  ASSERT_EQ(one.clusters, 1);
  const Memberships of_one = memberships(on(2), index, one);
  for (const std::int64_t row : one.exemplars) EXPECT_EQ(of_one.values[static_cast<std::size_t>(row)], 1);
  const std::vector<double> single = {1, 2};
  const Index alone(on(1), TableView(single.data(), 1, 2));
  const Hdbscan itself = hdbscan(on(1), alone, {.min_samples = 1, .allow_single_cluster = true});
  EXPECT_EQ(memberships(on(1), alone, itself).values, std::vector<double>{1});
}

// Exemplars of large clusters are searched for; all others are compared one by one.
TEST(Memberships, OfClustersWithManyExemplars) {
  std::vector<double> rows = make_rows(Family::gaussian, {60, 2, 1}, 4).table;
  for (int i = 0; i < 300; ++i) rows.insert(rows.begin() + 2 * (i % 40), {9, 1});
  for (int i = 0; i < 270; ++i) rows.insert(rows.begin() + 4 * (i % 40), {-2, 8});
  for (const auto& [metric, p] :
       {MetricAndP{Metric::euclidean}, MetricAndP{Metric::cosine}, MetricAndP{Metric::minkowski, 3}}) {
    const Soft soft(rows, 2, 620, metric, p);
    const Index index(on(2), soft.table());
    const Hdbscan fitted = hdbscan(on(2), index, {.min_cluster_size = 4, .metric = metric, .p = p});
    ASSERT_GT(fitted.clusters, 1);
    std::int64_t most = 0;
    for (std::size_t label = 0; label + 1 < fitted.exemplar_offsets.size(); ++label) {
      most = std::max(most, fitted.exemplar_offsets[label + 1] - fitted.exemplar_offsets[label]);
    }
    EXPECT_GT(most, 256);
    for (const Method method : methods_of(metric)) {
      Hdbscan by = fitted;
      by.options.method = method;
      EXPECT_TRUE(same_bits(memberships(on(2), index, by).values, memberships(on(1), index, fitted).values));
    }
    const std::vector<double> own = soft.expected(fitted, false);
    const std::vector<double> as_new = soft.expected(fitted, true);
    for (const Context& ctx : {on(1), on(3)}) {
      const std::string what(name_of(metric));
      expect_near(memberships(ctx, index, fitted), own, soft.n, fitted.clusters, what);
      expect_near(memberships(ctx, index, fitted, soft.all.table.view()), as_new, soft.size(), fitted.clusters,
                  what + " new");
    }
  }
}

TEST(Memberships, OfAModelThatPreparesItsRows) {
  std::vector<double> rows = make_rows(Family::clusters_1e2, {150, 2, 1}, 7).table;
  for (std::size_t i = 1; i < rows.size(); i += 2) rows[i] *= 100;
  const TableView table(rows.data(), 100, 2);
  const TableView others(rows.data() + 200, 50, 2);
  const Preparation preparation = Preparation::fit(on(1), table, {.scaling = Scaling::standard});
  const Table scaled = preparation.apply(on(1), table, "table");
  const Table scaled_others = preparation.apply(on(1), others, "queries");
  const Index index(on(1), scaled.view);
  const HdbscanModel model{index, hdbscan(on(1), index, {.min_cluster_size = 4}), "", preparation};
  ASSERT_GT(model.fitted.clusters, 1);
  EXPECT_TRUE(same_bits(memberships(on(1), model, others).values,
                        memberships(on(1), index, model.fitted, scaled_others.view).values));
}

TEST(Memberships, StopWhenTheyAreCancelled) {
  const std::vector<double> rows = make_rows(Family::clusters_1e2, {3000, 3, 1}, 1).table;
  const TableView table(rows.data(), 3000, 3);
  const Index index(on(1), table);
  const Hdbscan fitted = hdbscan(on(1), index, {.min_cluster_size = 5});
  ASSERT_GT(fitted.clusters, 1);
  expect_stops("memberships", [&](const Context& ctx, const TableView&) { (void)memberships(ctx, index, fitted); });
}

TEST(Memberships, SayHowMuchMemoryTheyNeed) {
  const std::vector<double> rows = make_rows(Family::clusters_1e2, {3000, 3, 1}, 1).table;
  const TableView table(rows.data(), 3000, 3);
  const Index index(on(2), table);
  const HdbscanOptions options{.min_cluster_size = 5};
  const Hdbscan fitted = hdbscan(on(2), index, options);
  const auto all = static_cast<std::uint64_t>(3000 * fitted.clusters) * 8;
  refused([&] { (void)memberships(Context::cpu({.threads = 2, .memory_limit = all}), index, fitted); },
          ErrorCode::over_memory, "memberships");
  const Context enough = Context::cpu({.threads = 2, .memory_limit = membership_bytes(on(2), table, options)});
  std::int64_t count = 0;
  membership_batches(enough, index, fitted, nullptr, [&](const Memberships& batch) { count += batch.rows; });
  EXPECT_EQ(count, 3000);
  const TableView few = table.slice(0, 200);
  const std::uint64_t of_new_rows = membership_bytes(on(2), index, fitted, few);
  // Beside what `predict` takes these rows' memberships.
  EXPECT_GE(of_new_rows, static_cast<std::uint64_t>(200 * fitted.clusters) * 8);
  count = 0;
  membership_batches(Context::cpu({.threads = 2, .memory_limit = of_new_rows}), index, fitted, &few,
                     [&](const Memberships& batch) { count += batch.rows; });
  EXPECT_EQ(count, 200);
  // Of a row there is little besides the exemplars and the search.
  const TableView one = table.slice(0, 1);
  const std::uint64_t of_a_row = membership_bytes(on(2), index, fitted, one);
  count = 0;
  membership_batches(Context::cpu({.threads = 2, .memory_limit = of_a_row}), index, fitted, &one,
                     [&](const Memberships& batch) { count += batch.rows; });
  EXPECT_EQ(count, 1);
  refused([&] { (void)membership_bytes(on(2), table, {.min_cluster_size = 1}); }, ErrorCode::invalid_argument,
          "min_cluster_size: is 1, must be at least 2");
}

TEST(Memberships, RefuseDistancesThatOverflow) {
  std::vector<double> rows = make_rows(Family::clusters_1e2, {60, 2, 1}, 8).table;
  const Index index(on(1), TableView(rows.data(), 60, 2));
  const Hdbscan fitted = hdbscan(on(1), index, {.min_cluster_size = 4});
  ASSERT_GT(fitted.clusters, 0);
  const std::vector<double> far = {0, 0, 1e200, 0};
  refused([&] { (void)memberships(on(1), index, fitted, TableView(far.data(), 2, 2)); }, ErrorCode::bad_data,
          "overflows float64");
}

TEST(Memberships, RefuseWhatIsNoClusteringOfTheTable) {
  const std::vector<double> rows = make_rows(Family::clusters_1e2, {60, 2, 1}, 8).table;
  const Index index(on(1), TableView(rows.data(), 60, 2));
  const Hdbscan good = hdbscan(on(1), index, {.min_cluster_size = 4});
  ASSERT_GT(good.clusters, 0);
  const auto expect = [&](const Hdbscan& fitted, const std::string& sentence) {
    refused([&] { (void)memberships(on(1), index, fitted); }, ErrorCode::invalid_argument, sentence);
    refused([&] { (void)memberships(on(1), index, fitted, index.table()); }, ErrorCode::invalid_argument, sentence);
  };
  Hdbscan bad = good;
  bad.core_distances.clear();
  expect(bad, "60 rows with 0 core distances, but the index has 60 rows");
  bad = good;
  bad.exemplars.back() = 60;
  expect(bad, "its exemplars are not those of");
  bad = good;
  bad.exemplar_offsets.pop_back();
  expect(bad, "its exemplars are not those of");
  bad = good;
  bad.clusters = -1;
  expect(bad, "its exemplars are not those of");
  bad = good;
  bad.tree.labels.assign(bad.tree.labels.size(), -1);
  expect(bad, "its exemplars are not those of");
  refused([&] { (void)memberships(on(1), index, good, TableView(rows.data(), 30, 4)); }, ErrorCode::invalid_argument,
          "queries: 4 columns, but the table has 2");
  refused([&] { membership_batches(on(1), index, good, nullptr, nullptr); }, ErrorCode::invalid_argument,
          "take: is empty");
}

}  // namespace
}  // namespace vicinal::contract
