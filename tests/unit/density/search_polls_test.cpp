// Cancel polls of density clustering and the minimum spanning tree, counted on one thread: those of searches, and of
// what is made of them.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"
#include "backend/density.hpp"
#include "backend/index_access.hpp"
#include "counted_polls.hpp"
#include "cpu/density/dbscan.hpp"
#include "cpu/density/optics.hpp"
#include "cpu/density/other_rows.hpp"
#include "cpu/density/spanning_tree.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "vicinal/dbscan.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/optics.hpp"
#include "vicinal/spanning_tree.hpp"

namespace vicinal {
namespace {

// Between the last row that is found to be core and the first search that joins.
TEST(Polls, BoxesThatDbscanJoins) {
  constexpr std::int64_t kScattered = 20000;
  const std::vector<double> values = polled_values(2 * kScattered, 1);
  std::int64_t after_core_rows = 0;
  std::int64_t at_clusters = 0;
  const Context ctx = Context::cpu({.threads = 1, .progress = [&](std::string_view stage, double) {
                                      if (stage == "core rows") after_core_rows = polls_so_far();
                                      if (stage == "clusters" && at_clusters == 0) at_clusters = polls_so_far();
                                    }});
  // So near are no rows: every box is opened.
  (void)dbscan(ctx, TableView(values.data(), kScattered, 2), {.eps = 1e-9, .min_samples = 1, .method = Method::kdtree});
  constexpr std::int64_t kMostInALeaf = 80;
  EXPECT_GE(at_clusters - after_core_rows, kScattered / kMostInALeaf / 16);
}

// Members of groups of equal rows: they are joined, numbered and counted, and large components are found five times.
TEST(Polls, EqualRowsThatDbscanJoins) {
  std::vector<float> rows(static_cast<std::size_t>(2 * kManyRows));
  for (std::size_t i = 0; i < rows.size(); i += 2) rows[i] = 1;
  const Context ctx = polled_context();
  const auto polls = [&](std::int64_t n) {
    const Index index(ctx, TableView(rows.data(), n, 1), {.tree = true});
    const DbscanOptions options = {.eps = 0.5, .min_samples = 2, .method = Method::kdtree};
    return polls_of([&] { (void)dbscan(ctx, index, options); });
  };
  EXPECT_GE(polls(2 * kManyRows) - polls(kManyRows), 2 + 2 + 2 + 5 * 2);
}

// The same of the search by screens, one search after the other.
TEST(Polls, EqualRowsThatDbscanJoinsByScreens) {
  const std::vector<float> rows(static_cast<std::size_t>(kManyRows), 1);
  const Context ctx = polled_context();
  const TableView table(rows.data(), kManyRows, 1);
  const Index index(ctx, table);
  kernels::DbscanTask task;
  task.search.index = &kernels::prepared_of(index);
  task.search.queries = table;
  task.search.method = Method::fused;
  task.limit = 1;
  std::vector<std::uint8_t> core(rows.size());
  std::vector<std::int64_t> labels(rows.size());
  kernels::DbscanResult result{core, labels};
  cpu::DbscanRun run{ctx, task, result, cpu::SharedForest(kManyRows), cpu::WeighingRule(1, {}, kManyRows)};
  const auto searches = cpu::dbscan_by_screens(run);
  const std::int64_t searching = polls_of([&] { searches->find_core_rows(); });
  EXPECT_GE(polls_of([&] { searches->join_core_rows(); }), 2);
  EXPECT_GE(polls_of([&] { searches->label_border_rows(); }), searching + 2);
}

// Distinct rows: their groups, rows below the root's box, which is small enough, and what boxes hold, once for each of
// six turns and once for numbers; before five of the turns large components are found, and the rows that are in one.
// Then rows are numbered and counted.
TEST(Polls, DistinctRowsThatDbscanJoins) {
  const std::vector<double> values = polled_values(2 * kManyRows, 1);
  const std::vector<float> rows(values.begin(), values.end());
  const Context ctx = polled_context();
  const auto polls = [&](std::int64_t n) {
    const Index index(ctx, TableView(rows.data(), n, 1), {.tree = true});
    const DbscanOptions options = {.eps = 10, .min_samples = 1, .method = Method::kdtree};
    return polls_of([&] { (void)dbscan(ctx, index, options); });
  };
  const auto tasks = [](std::int64_t n) {
    std::int64_t sum = 3 * (n / 64);  // core rows, those that wait to the last, and border rows
    for (const std::int64_t places : {1, 3, 12, 48, 192}) {
      const std::int64_t a_task = 64 * 256 / places;
      sum += (n + a_task - 1) / a_task;
    }
    return sum;
  };
  EXPECT_GE(polls(2 * kManyRows) - polls(kManyRows),
            tasks(2 * kManyRows) - tasks(kManyRows) + 2 + 2 + 7 * 2 + 5 * (2 + 2) + 2 + 2);
}

// No row is a core row, and with weights each query visits the whole tree.
TEST(Polls, WalksOfATree) {
  constexpr std::int64_t kFew = 1 << 11;
  constexpr std::int64_t kMostInALeaf = 80;
  const std::vector<double> values = polled_values(kFew, 1);
  const Context ctx = polled_context();
  const Index index(ctx, TableView(values.data(), kFew, 1), {.tree = true});
  const std::vector<double> weights(kFew, 1);
  const DbscanOptions options = {.eps = 10, .min_samples = kFew + 1, .weights = weights, .method = Method::kdtree};
  EXPECT_GE(polls_of([&] { (void)dbscan(ctx, index, options); }), kFew * (kFew / kMostInALeaf / 16));
}

/// A path of rows in d columns, of which so many are equal each time: each row lists the one before it.
struct PolledPath {
  PolledPath(std::int64_t n, std::int64_t d, Metric metric, std::int64_t equal = 1)
      : rows(static_cast<std::size_t>(n * d)), keys(static_cast<std::size_t>(n), 1) {
    for (std::int64_t i = 0; i < n; ++i) {
      rows[static_cast<std::size_t>(i * d)] = static_cast<double>(i / equal);
      ids.push_back(i > 0 ? i - 1 : 1);
    }
    const TableView table(rows.data(), n, d);
    index.emplace(ctx, table);
    tree = kernels::backend_of(ctx).nearest().build_tree(ctx, kernels::prepared_of(*index));
    task.search.index = &kernels::prepared_of(*index);
    task.search.queries = table;
    task.search.k = 1;
    task.search.metric = metric;
    task.search.p = 3;
    task.search.method = Method::kdtree;
    task.search.tree = tree.get();
    task.ids = ids;
    task.keys = keys;
  }
  std::int64_t polls_of_tree() {
    std::vector<kernels::TreeEdge> edges;
    std::vector<double> core_keys;
    SearchStats stats;
    kernels::SpanningResult result{edges, core_keys, stats};
    return polls_of([&] { cpu::spanning_tree(ctx, task, result); });
  }

  /// Of the order of OPTICS, where rows are neighbors up to this key.
  std::int64_t polls_of_order(Method method, double limit) {
    kernels::OpticsTask optics;
    optics.search = task.search;
    optics.search.method = method;
    optics.limit = limit;
    optics.ids = ids;
    optics.keys = keys;
    std::vector<std::int64_t> ordering(ids.size());
    std::vector<std::int64_t> predecessors(ids.size());
    std::vector<double> reach_keys(ids.size());
    kernels::OpticsResult result{ordering, reach_keys, predecessors};
    return polls_of([&] { cpu::optics(ctx, optics, result); });
  }

  Context ctx = polled_context();
  std::vector<double> rows;
  std::vector<std::int64_t> ids;
  std::vector<double> keys;
  std::optional<Index> index;
  std::shared_ptr<const kernels::Tree> tree;
  kernels::SpanningTask task;
};

// One round joins the path. Rows are looked at by tasks: for their floors, labels, groups, edges (twice) and
// searches. Edges, which are equal, are ordered by halves and then sorted.
TEST(Polls, ASpanningTree) {
  constexpr std::int64_t kTask = 4096;
  std::vector<std::int64_t> edges(static_cast<std::size_t>(kManyRows - 1));
  std::iota(edges.begin(), edges.end(), 0);
  const std::int64_t sorting = steps_of_sort(edges, std::less<>());
  EXPECT_GE(PolledPath(kManyRows, 1, Metric::euclidean).polls_of_tree(),
            (6 + 2) * (kManyRows / kTask) + 3 * 2 * (kManyRows - 1) / kBetweenLooks + sorting / kBetweenLooks);
}

// Of minkowski keys are computed again: of wide rows each is a step.
TEST(Polls, KeysOfASpanningTree) {
  EXPECT_GE(
      PolledPath(100, 65, Metric::minkowski).polls_of_tree() - PolledPath(100, 64, Metric::minkowski).polls_of_tree(),
      100);
}

TEST(Polls, ComponentsBelowBoxes) {
  const PolledPath path(kManyRows, 1, Metric::euclidean);
  const cpu::Places places(path.ctx, *path.task.search.index,
                           path.tree->shape_of(path.ctx, *path.task.search.index)->order);
  cpu::Growth growth{path.task, places, {}, cpu::Components(path.ctx, kManyRows), cpu::LightestEdges(kManyRows),
                     {},        {}};
  const auto others = cpu::other_rows_in_tree(path.ctx, growth);
  const std::int64_t nodes = static_cast<const cpu::Tree&>(*path.tree).nodes();
  EXPECT_GE(polls_of([&] { others->relabel(); }), nodes);
  EXPECT_GE(polls_of([&] { others->leave_out(1); }), 9 * nodes);  // a node and its leaves once more
}

// In the order of a tree the groups are made an index: each is a step, and each of its rows.
TEST(Polls, GroupsThatScreensCompare) {
  const PolledPath path(kManyRows, 1, Metric::euclidean);
  const std::vector<std::int64_t> rows = {0, kManyRows / 2};
  const auto polls = [&](const cpu::Places& places) {
    cpu::Growth growth{path.task, places, {}, cpu::Components(path.ctx, kManyRows), cpu::LightestEdges(kManyRows),
                       {},        {}};
    for (core::RawVector<double>* bounds : {&growth.bounds.floor, &growth.bounds.other_key}) {
      bounds->resize(static_cast<std::size_t>(kManyRows));
      std::fill(bounds->begin(), bounds->end(), 0.0);
    }
    growth.bounds.other.resize(static_cast<std::size_t>(kManyRows));
    for (std::int64_t row = 0; row < kManyRows; ++row) growth.edges.forget(row);
    const auto others = cpu::other_rows_by_screens(path.ctx, growth);
    return polls_of([&] { others->search(rows); });
  };
  const kernels::Prepared& index = *path.task.search.index;
  const cpu::Places in_tree(path.ctx, index, path.tree->shape_of(path.ctx, index)->order);
  EXPECT_GE(polls(in_tree) - polls(cpu::Places(index)), 2 * kManyRows / kBetweenLooks);
}

// No row is a core row. Distinct rows get their leaf, and rows the number of their group; then each row is placed.
TEST(Polls, AnOrderInATree) {
  PolledPath path(kManyRows, 1, Metric::euclidean, 2);
  EXPECT_GE(path.polls_of_order(Method::kdtree, -1), (1 + 2) + 2);
}

// Every row reaches the next one: that is looked for when the row is placed, and once more when the next one is, but
// for the last two.
TEST(Polls, ReachesOfAnOrder) {
  constexpr std::int64_t kRows = 64;
  PolledPath path(kRows, 1, Metric::euclidean);
  EXPECT_GE(path.polls_of_order(Method::kdtree, 1), kRows + kRows - 2);
}

// Each placed row has a key with every open one that is not reached yet. Of minkowski each key is a step.
TEST(Polls, KeysOfAnOrderByAllPairs) {
  constexpr std::int64_t kRows = 64;
  const auto polls = [](Metric metric) { return PolledPath(kRows, 1, metric).polls_of_order(Method::direct, 1); };
  EXPECT_GE(polls(Metric::minkowski) - polls(Metric::euclidean), kRows * (kRows - 1) / 2);
}

/// Looks after the last report of a stage.
template <class Body>
std::int64_t polls_after_last(std::string_view stage, const Body& body) {
  std::int64_t at_report = 0;
  body(Context::cpu({.threads = 1, .progress = [&](std::string_view reported, double) {
                       if (reported == stage) at_report = polls_so_far();
                     }}));
  return polls_so_far() - at_report;
}

/// Rows that lie side by side. Of a step for each of them and one for all but one there is one look.
std::vector<double> rows_of_one_look() {
  std::vector<double> rows(static_cast<std::size_t>(kBetweenLooks / 2 + 1));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// The last row to be placed is told of. Then reaches and core distances are made distances.
TEST(Polls, DistancesOfAnOrder) {
  const std::vector<double> rows = rows_of_one_look();
  const TableView table(rows.data(), std::ssize(rows), 1);
  EXPECT_GE(polls_after_last("order",
                             [&](const Context& ctx) {
                               (void)optics(ctx, table, {.min_samples = 2, .max_eps = 0.5, .method = Method::kdtree});
                             }),
            1);
}

// The only round is reported. Then edges, which are equal, are sorted: halves are made and ordered, edges follow them,
// runs are looked at, and edges are sorted as wholes. Edges and core distances are made distances.
TEST(Polls, DistancesOfASpanningTree) {
  const std::vector<double> rows = rows_of_one_look();
  const std::int64_t n = std::ssize(rows);
  std::vector<std::int64_t> edges(static_cast<std::size_t>(n - 1));
  std::iota(edges.begin(), edges.end(), 0);
  const std::int64_t sorting = steps_of_sort(edges, std::less<>());
  const Context one_thread = polled_context();
  const std::int64_t tasks =
      2 * of_tasks(one_thread, n / 4096) + of_tasks(one_thread, n / 16384) + of_tasks(one_thread, 1);
  const SpanningTreeOptions options = {.min_samples = 1, .count_self = true, .method = Method::kdtree};
  EXPECT_GE(
      polls_after_last(
          "tree", [&](const Context& ctx) { (void)minimum_spanning_tree(ctx, TableView(rows.data(), n, 1), options); }),
      tasks + 3 * 2 * (n - 1) / kBetweenLooks + sorting / kBetweenLooks + 1);
}

}  // namespace
}  // namespace vicinal
