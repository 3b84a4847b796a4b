// DBSCAN against the reference (contract clause 28): labels and core rows on hard data, for every eps that tells
// something apart.

#include "vicinal/dbscan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "density_check.hpp"
#include "refused.hpp"
#include "vicinal/generate.hpp"

namespace vicinal::contract {
namespace {

std::string text_of(const DbscanOptions& options) {
  return std::string(name_of(options.metric)) + " " + std::string(name_of(options.method)) +
         " eps=" + std::to_string(options.eps) + " min_samples=" + std::to_string(options.min_samples) +
         (options.weights.empty() ? "" : " weighted");
}

// What must hold of any result.
void expect_sound(const Dbscan& found, const std::string& what) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(found.clusters), 0);
  std::int64_t noise = 0;
  for (const std::int64_t label : found.labels) {
    label < 0 ? ++noise : ++sizes[static_cast<std::size_t>(label)];
  }
  EXPECT_EQ(found.sizes, sizes) << what;
  EXPECT_EQ(found.noise, noise) << what;
  EXPECT_EQ(found.core_rows, std::count(found.core.begin(), found.core.end(), 1)) << what;
}

void check_clusters(const PairTable& data, DbscanOptions options, const std::string& what, std::uint64_t turn,
                    bool in_all) {
  options.metric = data.metric;
  options.p = data.p;
  const Dbscan expected = reference::dbscan(data.keys, options);
  const auto check = [&](const Context& ctx, Method method) {
    options.method = method;
    if (!runs(ctx, [&](const Context& on) { return plan_dbscan(on, data.table.view(), options); })) return;
    const Dbscan got = dbscan(ctx, data.table.view(), options);
    const std::string where =
        what + " " + text_of(options) + " " + ctx.device() + " threads=" + std::to_string(ctx.threads());
    EXPECT_EQ(got.core, expected.core) << where;
    EXPECT_EQ(got.labels, expected.labels) << where;
    EXPECT_EQ(got.clusters, expected.clusters) << where;
    expect_sound(got, where);
  };
  check_each_way(data.metric, turn, in_all, check, Where::everywhere);
}

// Distances of the table that are worth a try, and one just below each.
std::vector<double> telling_eps(const PairTable& data) {
  const std::vector<double> distances = pair_distances(data);
  std::vector<double> eps;
  for (const double share : {0.0, 0.002, 0.01, 0.03, 0.1, 0.3, 1.0}) {
    const double distance = at_share(distances, share);
    for (const double radius : {std::nextafter(distance, -1e308), distance}) {
      if (radius > 0 || data.metric == Metric::inner_product) eps.push_back(radius);
    }
  }
  eps.push_back(1e300);
  return eps;
}

std::vector<double> some_weights(std::int64_t n, bool negative) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < n; ++i) {
    weights.push_back(static_cast<double>(i * 37 % 11) * 0.25);
    if (negative && i % 5 == 2) weights.back() = -1.5;
  }
  return weights;
}

class DbscanOfFamily : public ::testing::TestWithParam<Family> {};

TEST_P(DbscanOfFamily, EqualsTheReference) {
  check_each_metric(GetParam(), 130, [](const PairTable& data, const std::string& what, std::uint64_t turn) {
    const std::vector<double> positive = some_weights(data.table.view().rows(), false);
    const std::vector<double> mixed = some_weights(data.table.view().rows(), true);
    for (const double eps : telling_eps(data)) {
      if (is_left_out(++turn)) continue;
      DbscanOptions options{.eps = eps, .min_samples = std::int64_t{1} + static_cast<std::int64_t>(turn % 4) * 3};
      if (turn % 3 == 1) options.weights = positive;
      if (turn % 6 == 2) options.weights = mixed;
      check_clusters(data, options, what, turn, turn % 5 == 0);
      if (HasFailure()) return;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, DbscanOfFamily, ::testing::ValuesIn(all_families()),
                         [](const auto& of) { return std::string(name_of(of.param)); });

TEST(Dbscan, Sizes) {
  check_each_size([](const PairTable& data, const std::string& what, std::uint64_t turn) {
    const std::int64_t n = data.table.view().rows();
    for (const std::int64_t min_samples : {std::int64_t{1}, std::int64_t{2}, std::int64_t{7}, n, n + 1}) {
      for (const double eps : telling_eps(data)) {
        check_clusters(data, {.eps = eps, .min_samples = min_samples}, what, turn, turn % 9 == 0);
        ++turn;
        if (HasFailure()) return;
      }
    }
  });
}

TEST(Dbscan, ClustersThatMeetInBorderRows) {
  const std::int64_t n = sanitized<std::int64_t>(1500, 300);
  const Generated made =
      generate(on(2), {.shape = vicinal::Shape::blobs, .rows = n, .cols = 3, .centers = 9, .noise = 1.1});
  const PairTable data(made.points, 3);
  const std::vector<double> weights = some_weights(n, false);
  std::uint64_t turn = 0;
  for (const double eps : {0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 3.0, 40.0}) {
    for (const std::int64_t min_samples : {2, 5, 40, 200}) {
      check_clusters(data, {.eps = eps, .min_samples = min_samples}, "blobs", turn, turn % 4 == 0);
      check_clusters(data, {.eps = eps, .min_samples = min_samples, .weights = weights}, "blobs", turn++, false);
      if (HasFailure()) return;
    }
  }
}

TEST(Dbscan, OneRow) {
  const std::vector<double> row = {1, 2};
  const std::vector<double> heavy = {3.5};
  const TableView table(row.data(), 1, 2);
  EXPECT_EQ(dbscan(on(1), table, {.min_samples = 1}).labels, std::vector<std::int64_t>{0});
  EXPECT_EQ(dbscan(on(1), table, {.min_samples = 2}).labels, std::vector<std::int64_t>{-1});
  EXPECT_EQ(dbscan(on(1), table, {.min_samples = 3, .weights = heavy}).labels, std::vector<std::int64_t>{0});
  EXPECT_EQ(dbscan(on(1), table, {.min_samples = 4, .weights = heavy}).labels, std::vector<std::int64_t>{-1});
}

TEST(Dbscan, WeightsAreAddedExactly) {
  // 0.1 + 0.2 + 0.7 is 1 exactly rounded, and less when it is added from the left.
  const std::vector<double> rows = {0, 0.1, 0.2, 50, 60};
  const std::vector<double> weights = {0.7, 0.1, 0.2, 1, 0x1.fffffffffffffp-1};
  for (const Method method : {Method::direct, Method::fused, Method::kdtree}) {
    const Dbscan found =
        dbscan(on(2), TableView(rows.data(), 5, 1), {.eps = 1, .min_samples = 1, .weights = weights, .method = method});
    EXPECT_EQ(found.labels, (std::vector<std::int64_t>{0, 0, 0, 1, -1}));
  }
  // Only row 0 has both others around it. Added to its weight one by one, each half is lost.
  const std::vector<double> line = {0, -1, 1};
  const std::vector<double> halves = {0x1p52, 0.5, 0.5};
  for (const Method method : {Method::direct, Method::fused, Method::kdtree}) {
    const DbscanOptions options = {
        .eps = 1, .min_samples = (std::int64_t{1} << 52) + 1, .weights = halves, .method = method};
    EXPECT_EQ(dbscan(on(2), TableView(line.data(), 3, 1), options).labels, (std::vector<std::int64_t>{0, 0, 0}));
  }
}

TEST(Dbscan, RefusesWhatItCannotDo) {
  const std::vector<double> rows = {0, 1, 2, 3, 4, 5, 6, 7};
  const TableView table(rows.data(), 4, 2);
  const auto expect = [&](const DbscanOptions& options, const std::string& sentence) {
    refused([&] { dbscan(on(1), table, options); }, ErrorCode::invalid_argument, sentence);
    refused([&] { plan_dbscan(on(1), table, options); }, ErrorCode::invalid_argument, sentence);
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const double eps : {0.0, -1.0, kNan, kInfinite}) {
    expect({.eps = eps}, "eps: must be above 0 and finite");
  }
  expect({.eps = kNan, .metric = Metric::inner_product}, "eps: must be finite");
  expect({.min_samples = 0}, "min_samples: is 0, must be at least 1");
  expect({.min_samples = -3}, "min_samples: is -3, must be at least 1");
  const std::vector<double> few = {1, 1, 1};
  expect({.weights = few}, "weights: 3 for 4 rows");
  const std::vector<double> no_number = {1, 1, kNan, 1};
  expect({.weights = no_number}, "weights: that of row 2 is not finite");
  expect({.metric = Metric::minkowski, .p = kNan}, "p: must be finite and at least 1 for the minkowski metric");
  expect({.method = Method::block_heap}, "method: block_heap finds the k nearest neighbors only; dbscan takes");
  expect({.metric = Metric::hamming, .method = Method::fused}, "method: fused does not serve the metric hamming");
}

TEST(Dbscan, RefusesValuesThatHaveNoDistance) {
  std::vector<double> rows = make_rows(Family::gaussian, {40, 3, 1}, 1).table;
  const TableView table(rows.data(), 40, 3);
  rows[7 * 3 + 1] = std::numeric_limits<double>::quiet_NaN();
  refused([&] { dbscan(on(2), table, {}); }, ErrorCode::bad_data, "row 7, column 1");
  rows[7 * 3 + 1] = 1e200;
  for (const Method method : {Method::automatic, Method::fused, Method::direct, Method::kdtree}) {
    refused([&] { dbscan(on(2), table, {.eps = 1e300, .min_samples = 1, .method = method}); }, ErrorCode::bad_data,
            "overflows float64");
  }
}

TEST(Dbscan, MemoryDoesNotDependOnEps) {
  const std::int64_t n = 4000;
  const std::vector<double> rows = make_rows(Family::gaussian, {n, 3, 1}, 1).table;
  const TableView table(rows.data(), n, 3);
  refused([&] { dbscan(Context::cpu({.threads = 2, .memory_limit = 850000}), table, {}); }, ErrorCode::over_memory,
          "dbscan");
  const std::uint64_t needed = plan_dbscan(on(2), table, {.eps = 0.1}).memory;
  EXPECT_EQ(plan_dbscan(on(2), table, {.eps = 1e6}).memory, needed);
  const Context enough = Context::cpu({.threads = 2, .memory_limit = needed});
  EXPECT_EQ(dbscan(enough, table, {.eps = 1e6}).clusters, 1);
}

TEST(Dbscan, StopsWhenItIsCancelled) {
  for (const auto& [stage, method] : {std::pair{"core rows", Method::kdtree},
                                      {"clusters", Method::kdtree},
                                      {"border rows", Method::kdtree},
                                      {"search", Method::direct}}) {
    const DbscanOptions options{.eps = 0.2, .method = method};
    expect_stops(stage, [&](const Context& ctx, const TableView& table) { dbscan(ctx, table, options); });
  }
}

}  // namespace
}  // namespace vicinal::contract
