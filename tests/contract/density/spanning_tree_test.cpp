// Minimum spanning trees against the reference (contract clause 27): every edge and its bits, on hard data.

#include "vicinal/spanning_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "density_check.hpp"
#include "refused.hpp"
#include "vicinal/generate.hpp"

namespace vicinal::contract {
namespace {

constexpr double kNoEnd = std::numeric_limits<double>::infinity();

std::string text_of(const SpanningTreeOptions& options) {
  return std::string(name_of(options.metric)) + " " + std::string(name_of(options.method)) +
         " min_samples=" + std::to_string(options.min_samples) + (options.count_self ? "" : " without itself") +
         " alpha=" + std::to_string(options.alpha);
}

void expect_same_tree(const SpanningTree& got, const SpanningTree& expected, const std::string& what) {
  EXPECT_EQ(got.rows, expected.rows) << what;
  ASSERT_EQ(got.a.size(), expected.a.size()) << what;
  for (std::size_t i = 0; i < got.a.size(); ++i) {
    if (got.a[i] == expected.a[i] && got.b[i] == expected.b[i] && got.lengths[i] == expected.lengths[i]) continue;
    ADD_FAILURE() << what << ": edge " << i << " is " << got.a[i] << "-" << got.b[i] << " " << got.lengths[i]
                  << " instead of " << expected.a[i] << "-" << expected.b[i] << " " << expected.lengths[i];
    return;
  }
  EXPECT_TRUE(same_bits(got.lengths, expected.lengths)) << what;
  EXPECT_TRUE(same_bits(got.core_distances, expected.core_distances)) << what;
}

// The tree of some options by every method, in all contexts or in one, which `turn` varies.
void check_tree(const PairTable& data, SpanningTreeOptions options, const std::string& what, std::uint64_t turn,
                bool in_all) {
  options.metric = data.metric;
  options.p = data.p;
  const SpanningTree expected = reference::minimum_spanning_tree(data.keys, options);
  const auto check = [&](const Context& ctx, Method method) {
    options.method = method;
    if (!runs(ctx, [&](const Context& on) { return plan_spanning_tree(on, data.table.view(), options); })) return;
    const SpanningTree got = minimum_spanning_tree(ctx, data.table.view(), options);
    expect_same_tree(got, expected,
                     what + " " + text_of(options) + " " + ctx.device() + " threads=" + std::to_string(ctx.threads()));
  };
  check_each_way(data.metric, turn, in_all, check, Where::everywhere);
}

std::vector<SpanningTreeOptions> every_reach(std::int64_t n) {
  std::vector<SpanningTreeOptions> all = {{.min_samples = 1},
                                          {.min_samples = 0, .count_self = false, .alpha = 3},
                                          {.min_samples = 2},
                                          {.min_samples = 2, .alpha = 2},
                                          {.min_samples = 5},
                                          {.min_samples = 5, .count_self = false, .alpha = 1.3},
                                          {.min_samples = 31, .alpha = 0.7},
                                          {.min_samples = n}};
  std::erase_if(
      all, [&](const SpanningTreeOptions& options) { return options.min_samples > n - (options.count_self ? 0 : 1); });
  return all;
}

void check_every_reach(const PairTable& data, const std::string& what, std::uint64_t turn) {
  for (SpanningTreeOptions options : every_reach(data.table.view().rows())) {
    if (is_left_out(++turn)) continue;
    if (data.metric == Metric::inner_product) options.alpha = 1;
    check_tree(data, options, what, turn, turn % 5 == 0);
    if (::testing::Test::HasFailure()) return;
  }
}

class SpanningTreeOfFamily : public ::testing::TestWithParam<Family> {};

TEST_P(SpanningTreeOfFamily, EqualsTheReference) {
  check_each_metric(GetParam(), 150, check_every_reach);
}

INSTANTIATE_TEST_SUITE_P(All, SpanningTreeOfFamily, ::testing::ValuesIn(all_families()),
                         [](const auto& of) { return std::string(name_of(of.param)); });

TEST(SpanningTree, Sizes) {
  std::uint64_t turn = 0;
  for (const auto& [n, d] : {std::pair<std::int64_t, std::int64_t>{2, 1}, {3, 2}, {9, 1}, {11, 3}, {12, 2}, {65, 17}}) {
    for (const Family family : {Family::gaussian, Family::integer_ties, Family::duplicates, Family::constant}) {
      const PairTable data(make_rows(family, {n, d, 1}, ++turn).table, d);
      check_every_reach(data, std::string(name_of(family)) + " n=" + std::to_string(n), turn);
      if (HasFailure()) return;
    }
  }
}

TEST(SpanningTree, OneRow) {
  const std::vector<double> row = {1, 2};
  const SpanningTree tree = minimum_spanning_tree(on(1), TableView(row.data(), 1, 2));
  EXPECT_EQ(tree.rows, 1);
  EXPECT_TRUE(tree.a.empty());
  EXPECT_EQ(tree.core_distances, std::vector<double>{0});
}

/// Tables that join late: the lists know no edge between their parts.
std::vector<double> two_far_clusters(std::int64_t n, std::int64_t d) {
  std::vector<double> rows = make_rows(Family::gaussian, {n, d, 1}, 5).table;
  for (std::int64_t i = 0; i < n; i += 2) rows[static_cast<std::size_t>(i * d)] += 1e6;
  return rows;
}
std::vector<double> many_small_clusters(std::int64_t n, std::int64_t d, std::int64_t size) {
  std::vector<double> rows = make_rows(Family::gaussian, {n, d, 1}, 6).table;
  const std::vector<double> centers = make_rows(Family::gaussian, {n / size + 1, d, 1}, 7).table;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      double& x = rows[static_cast<std::size_t>(i * d + j)];
      x = 1e-4 * x + centers[static_cast<std::size_t>(i / size * d + j)];
    }
  }
  return rows;
}
std::vector<double> on_a_sphere(std::int64_t n, std::int64_t d) {
  std::vector<double> rows = make_rows(Family::gaussian, {n, d, 1}, 8).table;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto row = rows.begin() + i * d;
    const double length = std::sqrt(std::inner_product(row, row + d, row, 0.0));
    std::for_each(row, row + d, [&](double& x) { x /= length; });
  }
  return rows;
}
std::vector<double> a_grid(std::int64_t side) {
  std::vector<double> rows;
  for (std::int64_t i = 0; i < side * side; ++i) {
    rows.push_back(static_cast<double>(i * 7 % (side * side) % side));
    rows.push_back(static_cast<double>(i * 7 % (side * side) / side));
  }
  return rows;
}
std::vector<double> thousands_of_duplicates(std::int64_t n, std::int64_t d) {
  std::vector<double> rows = make_rows(Family::gaussian, {n, d, 1}, 9).table;
  for (std::int64_t i = 0; i < n; ++i) {  // two groups of a third each, between rows that differ
    if (i % 3 == 2) continue;
    std::copy_n(rows.begin() + i % 3 * d, d, rows.begin() + i * d);
  }
  return rows;
}
std::vector<double> one_far_outlier(std::int64_t n, std::int64_t d) {
  std::vector<double> rows = make_rows(Family::gaussian, {n, d, 1}, 10).table;
  rows[static_cast<std::size_t>(n / 2 * d)] = 1e30;
  return rows;
}

TEST(SpanningTree, OfTablesWhosePartsJoinLate) {
  const std::int64_t n = sanitized<std::int64_t>(2000, 400);
  const struct {
    const char* name;
    std::vector<double> rows;
    std::int64_t d;
  } kTables[] = {{"two far clusters", two_far_clusters(n, 3), 3},
                 {"two far clusters, 20 columns", two_far_clusters(n, 20), 20},
                 {"small clusters", many_small_clusters(n, 2, 12), 2},
                 {"small clusters, 30 columns", many_small_clusters(n, 30, 14), 30},
                 {"sphere", on_a_sphere(n, 3), 3},
                 {"grid", a_grid(sanitized<std::int64_t>(44, 20)), 2},
                 {"duplicates", thousands_of_duplicates(n, 3), 3},
                 {"outlier", one_far_outlier(n, 4), 4}};
  std::uint64_t turn = 0;
  for (const auto& [name, rows, d] : kTables) {
    const PairTable data(rows, d);
    for (const SpanningTreeOptions& options :
         {SpanningTreeOptions{}, SpanningTreeOptions{.min_samples = 5}, SpanningTreeOptions{.min_samples = 20}}) {
      check_tree(data, options, name, ++turn, true);
      if (HasFailure()) return;
    }
  }
}

/// Two clouds, of which the smaller one has more distinct rows than screens search for among all rows. Each fifth row
/// is there twice.
std::vector<double> two_large_clusters(std::int64_t d) {
  constexpr std::int64_t kRows = 3100;
  std::vector<double> rows = make_rows(Family::gaussian, {kRows, d, 1}, 12).table;
  for (std::int64_t i = 0; i < kRows; ++i) {
    const auto row = rows.begin() + i * d;
    if (i < 1500) *row += 100;
    if (i % 5 == 4) std::copy_n(row - d, d, row);
  }
  return rows;
}

TEST(SpanningTree, OfLargeComponents) {
  const struct {
    std::int64_t d;
    Metric metric;
    SpanningTreeOptions options;
  } kCases[] = {{8, Metric::euclidean, {}},
                {20, Metric::cosine, {.min_samples = 5}},
                {8, Metric::inner_product, {.min_samples = 5}}};
  std::uint64_t turn = 0;
  for (const auto& [d, metric, options] : kCases) {
    check_tree(PairTable(two_large_clusters(d), d, metric), options, "two large clusters", ++turn, false);
    if (HasFailure()) return;
  }
}

// Lists are in the order of the pairs' keys; of edges whose keys the division makes equal rows decide.
TEST(SpanningTree, OfPairsThatDivisionMakesEqual) {
  check_tree(PairTable({1.5 + 0x1p-51, 0, 1.5 + 0x1p-52}, 1, Metric::manhattan), {.alpha = 3}, "three rows", 0, true);
  std::vector<double> two_places;
  for (int i = 0; i < 80; ++i) two_places.push_back((i % 2 == 0 ? 0 : 1.5) + i * 7 % 50 * 0x1p-52);
  check_tree(PairTable(two_places, 1, Metric::manhattan), {.alpha = 3}, "two places", 1, true);
  // Edges of no length between rows that differ, more than lists have.
  std::vector<double> tiny = make_rows(Family::gaussian, {200, 2, 1}, 11).table;
  for (double& x : tiny) x *= 1e-300;
  check_tree(PairTable(tiny, 2, Metric::manhattan), {.alpha = 1e100}, "all equal", 2, true);
  for (double& x : tiny) x *= 1e-20;
  check_tree(PairTable(tiny, 2, Metric::manhattan), {.alpha = 5}, "few lengths", 3, true);
  check_tree(PairTable(tiny, 2, Metric::manhattan), {.alpha = 0.3}, "tiny", 4, true);
}

TEST(SpanningTree, OfTablesOfEqualRows) {
  const std::int64_t n = sanitized<std::int64_t>(2000, 400);
  const PairTable data(std::vector<double>(static_cast<std::size_t>(n * 3), 1.5), 3);
  check_tree(data, {}, "all equal", 0, true);
  check_tree(data, {.min_samples = 12}, "all equal", 1, true);
}

// Beyond what the reference can rank: whatever the tree leaves out is no lighter than the path between its ends.
TEST(SpanningTree, OfALargeTableHasTheCycleProperty) {
  const std::int64_t n = sanitized<std::int64_t>(30000, 3000);
  const Generated made = generate(on(2), {.shape = vicinal::Shape::blobs, .rows = n, .cols = 6, .centers = 30});
  const TableView table(made.points.data(), n, 6);
  const SpanningTree tree = minimum_spanning_tree(on(2), table, {.min_samples = 4});
  ASSERT_EQ(static_cast<std::int64_t>(tree.a.size()), n - 1);
  std::vector<std::vector<std::pair<std::int64_t, std::size_t>>> next(static_cast<std::size_t>(n));
  for (std::size_t e = 0; e < tree.a.size(); ++e) {
    next[static_cast<std::size_t>(tree.a[e])].emplace_back(tree.b[e], e);
    next[static_cast<std::size_t>(tree.b[e])].emplace_back(tree.a[e], e);
  }
  for (std::int64_t from = 0; from < n; from += n / 20) {
    // The last edge, in the order of the tree, on the path to every row.
    std::vector<std::int64_t> last(static_cast<std::size_t>(n), -2);
    std::vector<std::int64_t> stack = {from};
    last[static_cast<std::size_t>(from)] = -1;
    while (!stack.empty()) {
      const std::int64_t at = stack.back();
      stack.pop_back();
      for (const auto& [to, edge] : next[static_cast<std::size_t>(at)]) {
        if (last[static_cast<std::size_t>(to)] != -2) continue;
        last[static_cast<std::size_t>(to)] =
            std::max(last[static_cast<std::size_t>(at)], static_cast<std::int64_t>(edge));
        stack.push_back(to);
      }
    }
    for (std::int64_t to = 0; to < n; ++to) {
      ASSERT_NE(last[static_cast<std::size_t>(to)], -2) << "row " << to << " is not in the tree";
      if (to == from) continue;
      const auto row = [&](std::int64_t i) { return std::span<const double>(made.points.data() + i * 6, 6); };
      const double distance = std::sqrt(reference::key(Metric::euclidean, 2, row(from), row(to)));
      const double length = std::max({distance, tree.core_distances[static_cast<std::size_t>(from)],
                                      tree.core_distances[static_cast<std::size_t>(to)]});
      EXPECT_LE(tree.lengths[static_cast<std::size_t>(last[static_cast<std::size_t>(to)])], length);
    }
  }
}

TEST(SpanningTree, RefusesWhatItCannotDo) {
  const std::vector<double> rows = {0, 1, 2, 3, 4, 5, 6, 7};
  const TableView table(rows.data(), 4, 2);
  const auto expect = [&](const SpanningTreeOptions& options, const std::string& sentence) {
    refused([&] { minimum_spanning_tree(on(1), table, options); }, ErrorCode::invalid_argument, sentence);
    refused([&] { plan_spanning_tree(on(1), table, options); }, ErrorCode::invalid_argument, sentence);
  };
  expect({.min_samples = 0}, "min_samples: is 0, must be from 1 to 4 for 4 rows that count themselves");
  expect({.min_samples = 5}, "min_samples: is 5, must be from 1 to 4 for 4 rows that count themselves");
  expect({.min_samples = 4, .count_self = false},
         "min_samples: is 4, must be from 0 to 3 for 4 rows that do not count themselves");
  for (const double alpha : {0.0, -1.0, kNoEnd, std::numeric_limits<double>::quiet_NaN()}) {
    expect({.alpha = alpha}, "alpha: must be above 0 and finite");
  }
  expect({.alpha = 2, .metric = Metric::inner_product},
         "alpha: must be 1 for the metric inner_product, whose distances may be below 0");
  for (const double alpha : {1e200, 1e-170}) {
    expect({.alpha = alpha},
           "alpha: keys of the metric euclidean are divided by alpha * alpha, which must be above 0 and finite");
    expect({.alpha = alpha, .metric = Metric::minkowski, .p = 3},
           "alpha: keys of the metric minkowski are divided by power(alpha, p), which must be above 0 and finite");
  }
  expect({.metric = Metric::minkowski, .p = 0.5}, "p: must be finite and at least 1 for the minkowski metric");
  expect(
      {.method = Method::insertion},
      "method: insertion finds the k nearest neighbors only; spanning tree takes automatic, fused, direct or kdtree");
  expect({.metric = Metric::cosine, .method = Method::kdtree}, "method: kdtree does not serve the metric cosine");
  const auto blocks = TableView::blocks(DType::float64, 4, 2, [&](std::int64_t begin, std::int64_t end, void* to) {
    std::copy(rows.begin() + begin * 2, rows.begin() + end * 2, static_cast<double*>(to));
  });
  refused([&] { minimum_spanning_tree(on(1), blocks); }, ErrorCode::invalid_argument,
          "table: comes in blocks; spanning tree needs it in memory");
}

TEST(SpanningTree, RefusesValuesThatHaveNoDistance) {
  std::vector<double> rows = make_rows(Family::gaussian, {40, 3, 1}, 1).table;
  const TableView table(rows.data(), 40, 3);
  const auto expect = [&](double value, double alpha, const std::string& sentence) {
    rows[7 * 3 + 1] = value;
    refused([&] { minimum_spanning_tree(on(2), table, {.min_samples = 2, .alpha = alpha}); }, ErrorCode::bad_data,
            sentence);
  };
  expect(std::numeric_limits<double>::quiet_NaN(), 1, "row 7, column 1");
  expect(kNoEnd, 1, "row 7, column 1");
  expect(1e200, 1, "overflows float64");
  expect(1e150, 1e-10, "divided by alpha, overflows float64");
}

TEST(SpanningTree, SaysHowMuchMemoryItNeeds) {
  const std::vector<double> rows = make_rows(Family::gaussian, {3000, 3, 1}, 1).table;
  const TableView table(rows.data(), 3000, 3);
  const Context small = Context::cpu({.threads = 2, .memory_limit = 760000});
  refused([&] { minimum_spanning_tree(small, table, {.min_samples = 5}); }, ErrorCode::over_memory, "spanning tree");
  const std::uint64_t needed = plan_spanning_tree(on(2), table, {.min_samples = 5}).memory;
  const Context enough = Context::cpu({.threads = 2, .memory_limit = needed});
  EXPECT_EQ(minimum_spanning_tree(enough, table, {.min_samples = 5}).rows, 3000);
}

TEST(SpanningTree, StopsWhenItIsCancelled) {
  for (const char* const stage : {"search", "tree"}) {
    expect_stops(stage, [](const Context& ctx, const TableView& table) { minimum_spanning_tree(ctx, table); });
    expect_stops(stage, [](const Context& ctx, const TableView& table) { hdbscan(ctx, table); });
  }
}

}  // namespace
}  // namespace vicinal::contract
