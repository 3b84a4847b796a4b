// OPTICS against the reference (contract clause 30): the order and its distances on hard data, and the clusters that
// are read from it.

#include "vicinal/optics.hpp"

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

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::string text_of(const OpticsOptions& options) {
  return std::string(name_of(options.metric)) + " " + std::string(name_of(options.method)) +
         " min_samples=" + std::to_string(options.min_samples) + " max_eps=" + std::to_string(options.max_eps);
}

void expect_same_clusters(const OpticsClusters& got, const OpticsClusters& expected, const std::string& what) {
  EXPECT_EQ(got.labels, expected.labels) << what;
  EXPECT_EQ(got.clusters, expected.clusters) << what;
  EXPECT_EQ(got.starts, expected.starts) << what;
  EXPECT_EQ(got.ends, expected.ends) << what;
  EXPECT_EQ(got.noise, std::count(got.labels.begin(), got.labels.end(), -1)) << what;
  for (std::size_t label = 0; label < got.sizes.size(); ++label) {
    EXPECT_EQ(got.sizes[label], std::count(got.labels.begin(), got.labels.end(), static_cast<std::int64_t>(label)));
  }
  EXPECT_EQ(std::ssize(got.sizes), got.clusters) << what;
}

// Clusters that are read from an order in every way.
void check_clusters(const Optics& order, const std::string& what) {
  for (const double xi : {0.0, 0.01, 0.05, 0.3, 0.95}) {
    for (const std::int64_t fewest : {0, 2, 15}) {
      if (fewest > std::ssize(order.ordering)) continue;
      for (const bool correction : {true, false}) {
        const OpticsXiOptions options{.xi = xi, .min_cluster_size = fewest, .predecessor_correction = correction};
        expect_same_clusters(optics_xi(on(1), order, options), reference::optics_xi(order, options),
                             what + " xi=" + std::to_string(xi) + " fewest=" + std::to_string(fewest));
      }
    }
  }
  std::vector<double> reached = order.reachability;
  std::sort(reached.begin(), reached.end());
  for (const double share : {0.0, 0.3, 0.7, 0.95}) {
    const double eps = at_share(reached, share);
    if (!(eps <= order.options.max_eps)) continue;
    for (const double at : {eps, std::nextafter(eps, 0)}) {
      expect_same_clusters(optics_dbscan(on(1), order, at), reference::optics_dbscan(order, at), what);
    }
  }
}

void check_order(const PairTable& data, OpticsOptions options, const std::string& what, std::uint64_t turn) {
  options.metric = data.metric;
  options.p = data.p;
  const Optics expected = reference::optics(data.keys, options);
  const std::vector<Context> made = cpu_contexts(turn);
  if (made.empty()) return;
  for (const Method method : methods_of(data.metric)) {
    options.method = method;
    const Context& ctx = made[turn++ % made.size()];
    const Optics got = optics(ctx, data.table.view(), options);
    const std::string where = what + " " + text_of(options) + " threads=" + std::to_string(ctx.threads());
    EXPECT_EQ(got.ordering, expected.ordering) << where;
    EXPECT_EQ(got.predecessors, expected.predecessors) << where;
    EXPECT_TRUE(same_bits(got.reachability, expected.reachability)) << where;
    EXPECT_TRUE(same_bits(got.core_distances, expected.core_distances)) << where;
    if (::testing::Test::HasFailure()) return;
  }
  Optics order = expected;
  order.options = options;
  check_clusters(order, what + " " + text_of(options));
}

// No limit, and distances of the table that leave some rows, most rows or hardly any without neighbors.
std::vector<double> telling_limits(const PairTable& data) {
  const std::vector<double> distances = pair_distances(data);
  std::vector<double> limits = {kNoLimit};
  for (const double share : {0.005, 0.05, 0.5}) {
    const double limit = at_share(distances, share);
    if (limit > 0) limits.push_back(limit);
  }
  return limits;
}

class OpticsOfFamily : public ::testing::TestWithParam<Family> {};

TEST_P(OpticsOfFamily, EqualsTheReference) {
  check_each_metric(GetParam(), 130, [](const PairTable& data, const std::string& what, std::uint64_t turn) {
    if (data.metric == Metric::inner_product) return;
    for (const double limit : telling_limits(data)) {
      if (is_left_out(++turn)) continue;
      check_order(data, {.min_samples = std::int64_t{2} + static_cast<std::int64_t>(turn % 4) * 5, .max_eps = limit},
                  what, turn);
      if (HasFailure()) return;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, OpticsOfFamily, ::testing::ValuesIn(all_families()),
                         [](const auto& of) { return std::string(name_of(of.param)); });

TEST(Optics, Sizes) {
  check_each_size([](const PairTable& data, const std::string& what, std::uint64_t turn) {
    const std::int64_t n = data.table.view().rows();
    for (const std::int64_t min_samples : {std::int64_t{2}, std::int64_t{7}, n}) {
      if (min_samples > n) continue;
      for (const double limit : telling_limits(data)) {
        check_order(data, {.min_samples = min_samples, .max_eps = limit}, what, ++turn);
        if (HasFailure()) return;
      }
    }
  });
}

// Lists know no row of the next cluster, and a row that reaches it may have been placed long before.
TEST(Optics, ClustersThatLieFarApart) {
  const std::int64_t n = sanitized<std::int64_t>(1200, 300);
  std::vector<double> rows = make_rows(Family::gaussian, {n, 3, 1}, 5).table;
  for (std::int64_t i = 0; i < n; ++i) rows[static_cast<std::size_t>(3 * i)] += static_cast<double>(i % 7 * i % 5) * 9;
  const PairTable data(rows, 3);
  check_order(data, {.min_samples = 3}, "far apart", 0);
  check_order(data, {.min_samples = 12}, "far apart", 1);
  check_order(data, {.min_samples = 5, .max_eps = 3}, "far apart", 2);
  const Generated made =
      generate(on(2), {.shape = vicinal::Shape::blobs, .rows = n, .cols = 2, .centers = 9, .noise = 1.1});
  check_order(PairTable(made.points, 2), {.min_samples = 6}, "blobs", 3);
}

TEST(Optics, RefusesWhatItCannotDo) {
  const std::vector<double> rows = {0, 1, 2, 3, 4, 5, 6, 7};
  const TableView table(rows.data(), 4, 2);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto expect = [&](const OpticsOptions& options, const std::string& sentence) {
    refused([&] { optics(on(1), table, options); }, ErrorCode::invalid_argument, sentence);
    refused([&] { plan_optics(on(1), table, options); }, ErrorCode::invalid_argument, sentence);
  };
  for (const std::int64_t few : {-3, 0, 1, 5}) {
    expect({.min_samples = few},
           "min_samples: is " + std::to_string(few) + ", must be from 2 to the number of rows, 4");
  }
  for (const double eps : {0.0, -1.0, kNan}) {
    expect({.min_samples = 2, .max_eps = eps}, "max_eps: must be above 0");
  }
  expect({.min_samples = 2, .metric = Metric::inner_product}, "metric: inner_product may be below 0");
  expect({.min_samples = 2, .metric = Metric::minkowski, .p = 0}, "p: must be finite and at least 1");
  expect({.min_samples = 2, .method = Method::block_heap}, "method: block_heap finds the k nearest neighbors only");
  expect({.min_samples = 2, .metric = Metric::cosine, .method = Method::kdtree}, "method: kdtree does not serve");
  refused([&] { optics(on(1), TableView(rows.data(), 1, 2), {.min_samples = 2}); }, ErrorCode::invalid_argument,
          "min_samples: is 2, must be from 2 to the number of rows, 1");
}

TEST(Optics, RefusesValuesThatHaveNoDistance) {
  std::vector<double> rows = make_rows(Family::gaussian, {40, 3, 1}, 1).table;
  const TableView table(rows.data(), 40, 3);
  rows[7 * 3 + 1] = std::numeric_limits<double>::quiet_NaN();
  refused([&] { optics(on(2), table, {}); }, ErrorCode::bad_data, "row 7, column 1");
  rows[7 * 3 + 1] = 1e200;
  for (const Method method : {Method::automatic, Method::fused, Method::direct, Method::kdtree}) {
    refused([&] { optics(on(2), table, {.max_eps = 1, .method = method}); }, ErrorCode::bad_data, "overflows float64");
  }
}

TEST(Optics, RefusesWhatIsNoOrder) {
  const std::vector<double> rows = {0, 1, 2, 4};
  const Optics order = optics(on(1), TableView(rows.data(), 4, 1), {.min_samples = 2, .max_eps = 3});
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto expect = [](const Optics& changed, const std::string& sentence) {
    refused([&] { optics_xi(on(1), changed, {}); }, ErrorCode::invalid_argument, sentence);
    refused([&] { optics_dbscan(on(1), changed, 1); }, ErrorCode::invalid_argument, sentence);
  };
  expect({}, "0 places");
  Optics changed = order;
  changed.predecessors.pop_back();
  expect(changed, "3 predecessors are no order of rows");
  for (const std::int64_t row : {-1, 1, 4}) {
    changed = order;
    changed.ordering[0] = row;
    expect(changed, "must have each row from 0 to 3 once");
  }
  changed = order;
  changed.predecessors[2] = 4;
  expect(changed, "row 2 has a predecessor that is no row");
  changed = order;
  changed.reachability[1] = kNan;
  expect(changed, "the distances of row 1 must be at least 0");
  for (const double xi : {-0.1, 1.0, kNan}) {
    refused([&] { optics_xi(on(1), order, {.xi = xi}); }, ErrorCode::invalid_argument,
            "xi: must be at least 0 and below 1");
  }
  for (const std::int64_t size : {-1, 1, 5}) {
    refused([&] { optics_xi(on(1), order, {.min_cluster_size = size}); }, ErrorCode::invalid_argument,
            "min_cluster_size: is " + std::to_string(size) + ", must be from 2 to the number of rows, 4");
  }
  for (const double eps : {-1.0, kNan}) {
    refused([&] { optics_dbscan(on(1), order, eps); }, ErrorCode::invalid_argument, "eps: must be at least 0");
  }
  refused([&] { optics_dbscan(on(1), order, 3.5); }, ErrorCode::invalid_argument, "eps: is above max_eps");
}

TEST(Optics, SaysHowMuchMemoryItNeeds) {
  const std::vector<double> rows = make_rows(Family::gaussian, {3000, 3, 1}, 1).table;
  const TableView table(rows.data(), 3000, 3);
  refused([&] { optics(Context::cpu({.threads = 2, .memory_limit = 760000}), table); }, ErrorCode::over_memory,
          "optics");
  const Context enough = Context::cpu({.threads = 2, .memory_limit = plan_optics(on(2), table).memory});
  const Optics order = optics(enough, table);
  EXPECT_EQ(order.ordering.size(), 3000U);
  refused([&] { optics_xi(Context::cpu({.threads = 1, .memory_limit = 1000}), order); }, ErrorCode::over_memory,
          "optics");
}

TEST(Optics, StopsWhenItIsCancelled) {
  for (const auto& [stage, method] :
       {std::pair{"search", Method::direct}, {"order", Method::direct}, {"order", Method::kdtree}}) {
    const OpticsOptions options{.method = method};
    expect_stops(stage, [&](const Context& ctx, const TableView& table) { optics(ctx, table, options); });
  }
}

}  // namespace
}  // namespace vicinal::contract
