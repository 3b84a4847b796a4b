// Cancel polls of operations on one thread, counted: each loop over all rows or values looks at the token as often as
// core::Poll says, once in 65,536 steps. The expected numbers are those of the loops; a sort's steps are those that
// std::sort takes with the same data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include "core/parallel.hpp"
#include "core/philox.hpp"
#include "counted_polls.hpp"
#include "cpu/kmeans/lloyd.hpp"
#include "cpu/kmeans/row_masses.hpp"
#include "ops/density/hierarchy.hpp"
#include "ops/nearest/folds.hpp"
#include "vicinal/dbscan.hpp"
#include "vicinal/impute.hpp"
#include "vicinal/metrics.hpp"
#include "vicinal/sample.hpp"
#include "vicinal/shards.hpp"
#include "vicinal/symmetrize.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kBetweenLooks = std::int64_t{1} << 16;  // between two looks of a core::Poll
constexpr std::int64_t kManyRows = 2 * kBetweenLooks;          // each loop over them looks twice

Context polled_context() {
  return Context::cpu({.threads = 1});
}

/// Looks of a parallel loop itself.
std::int64_t of_tasks(const Context& ctx, std::int64_t count) {
  return polls_of([&] { core::parallel_for(ctx, count, [](std::int64_t, int) {}); });
}

std::vector<double> polled_values(std::int64_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = uniform(random);
  return values;
}

std::vector<std::int32_t> polled_codes(std::int64_t count, std::int32_t codes, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int32_t> uniform(0, codes - 1);
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (std::int32_t& value : values) value = uniform(random);
  return values;
}

/// Comparisons of std::sort.
template <class T, class Less>
std::int64_t steps_of_sort(std::vector<T> values, const Less& less) {
  std::int64_t steps = 0;
  std::sort(values.begin(), values.end(), [&](const T& a, const T& b) {
    ++steps;
    return less(a, b);
  });
  return steps;
}

TEST(Polls, FittingMissingValues) {
  const Context ctx = polled_context();
  std::vector<double> values = polled_values(kManyRows, 1);
  const TableView table(values.data(), kManyRows, 1);
  // Widening in parallel, looking for missing values, a task for the column, and its values.
  const std::int64_t others = of_tasks(ctx, kManyRows / kBetweenLooks) + 2 + of_tasks(ctx, 1);
  EXPECT_GE(polls_of([&] { (void)Imputer::fit(ctx, table, {.filling = Filling::mean}); }), others + 2);
  // The median counts its comparisons, too: to part n values takes at least n of them.
  EXPECT_GE(polls_of([&] { (void)Imputer::fit(ctx, table, {.filling = Filling::median}); }), others + 2 + 2);
}

TEST(Polls, FillingMissingValues) {
  const Context ctx = polled_context();
  std::vector<double> values = polled_values(kManyRows, 1);
  // Every row has a missing value.
  std::vector<double> gaps(static_cast<std::size_t>(2 * kManyRows), std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t i = 0; i < kManyRows; ++i)
    gaps[static_cast<std::size_t>(2 * i)] = values[static_cast<std::size_t>(i)];
  const TableView table(gaps.data(), kManyRows, 2);
  const std::int64_t widening = of_tasks(ctx, 2 * kManyRows / kBetweenLooks);
  const Imputer by_mean = Imputer::of({.filling = Filling::mean}, {1, 2});
  // Missing values are looked for among 2 kManyRows, and as many are filled.
  EXPECT_GE(polls_of([&] { (void)by_mean.apply(ctx, table); }), widening + 4 + 4);
  // With neighbors they are counted, too. The search prepares one block of donors, and visits it once in each task of
  // 32 rows.
  const Imputer near = Imputer::of({.filling = Filling::knn, .k = 1}, {1, 2}, {3, 4});
  const std::int64_t search = of_tasks(ctx, 1) + of_tasks(ctx, kManyRows / 32) + kManyRows / 32;
  EXPECT_GE(polls_of([&] { (void)near.apply(ctx, table); }), widening + 4 + 4 + search + 4);
  EXPECT_GE(polls_of([&] { (void)count_missing(ctx, table); }), widening + 4);
  Table rows;
  gaps[1] = 0;  // one row is complete
  rows.view = TableView(gaps.data(), kManyRows, 2);
  EXPECT_GE(polls_of([&] { (void)complete_rows(ctx, rows); }), widening + 4);
}

TEST(Polls, KeptIdsOfCompleteRows) {
  const Context ctx = polled_context();
  std::vector<double> values = polled_values(kManyRows + 1, 1);
  values[7] = std::numeric_limits<double>::quiet_NaN();
  Table table;
  table.view = TableView(values.data(), kManyRows + 1, 1);
  table.ids.emplace();
  for (std::int64_t i = 0; i <= kManyRows; ++i) table.ids->add("a");
  const std::int64_t widening = of_tasks(ctx, kManyRows / kBetweenLooks + 1);
  EXPECT_GE(polls_of([&] { (void)complete_rows(ctx, table); }), widening + 2 + 2);
}

TEST(Polls, ScoresOfClasses) {
  const Context ctx = polled_context();
  const std::vector<std::int32_t> truth = polled_codes(kManyRows, static_cast<std::int32_t>(kManyRows), 1);
  const std::vector<std::int32_t> predicted = polled_codes(kManyRows, static_cast<std::int32_t>(kManyRows), 2);
  // Codes are checked, then counted, then the classes are scored.
  EXPECT_GE(polls_of([&] { (void)classification_scores(ctx, truth, predicted, kManyRows); }), 2 + 2 + 2);
  const std::vector<std::int32_t> few(truth.size());
  EXPECT_GE(polls_of([&] { (void)confusion_matrix(ctx, few, few, 2); }), 2 + 2);
}

TEST(Polls, ScoresOfClusters) {
  const Context ctx = polled_context();
  const std::vector<std::int32_t> classes = polled_codes(kManyRows, static_cast<std::int32_t>(kManyRows), 1);
  const std::vector<std::int32_t> clusters = polled_codes(kManyRows, static_cast<std::int32_t>(kManyRows), 2);
  std::vector<std::uint64_t> cells(classes.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i] = static_cast<std::uint64_t>(classes[i]) << 32 | static_cast<std::uint64_t>(clusters[i]);
  }
  const std::int64_t sorting = steps_of_sort(cells, [](std::uint64_t a, std::uint64_t b) { return a < b; });
  // Two labelings are checked and their sizes counted, entropies are of as many labels; cells are made and counted.
  const std::int64_t steps = kManyRows * (2 + 2 + 2 + 1 + 1) + sorting;
  EXPECT_GE(polls_of([&] {
              (void)clustering_scores(ctx, {classes, kManyRows}, {clusters, kManyRows});
            }),
            steps / kBetweenLooks);
}

TEST(Polls, ScoresOfARanking) {
  const Context ctx = polled_context();
  const std::vector<std::int32_t> truth = polled_codes(kManyRows, 2, 1);
  const std::vector<double> scores = polled_values(kManyRows, 2);
  const std::int64_t sorting = steps_of_sort(scores, [](double a, double b) { return a > b; });
  EXPECT_GE(polls_of([&] { (void)roc_auc_score(ctx, truth, scores); }),
            (kManyRows + sorting + kManyRows) / kBetweenLooks);
}

TEST(Polls, ScoresOfNumbers) {
  const Context ctx = polled_context();
  const std::vector<double> truth = polled_values(kManyRows, 1);
  const std::vector<double> predicted = polled_values(kManyRows, 2);
  // Both are checked; then one loop for the mean and one for the errors.
  EXPECT_GE(polls_of([&] { (void)regression_scores(ctx, truth, predicted); }), 2 + 2 + 2 + 2);
}

TEST(Polls, FoldsOfRows) {
  const Context ctx = polled_context();
  // As ops/nearest/folds.cpp draws.
  std::vector<double> draws(static_cast<std::size_t>(kManyRows));
  for (std::size_t i = 0; i < draws.size(); ++i) draws[i] = core::philox_uniform(1, 0x63760000, i);
  const std::int64_t sorting = steps_of_sort(draws, [](double a, double b) { return a < b; });
  EXPECT_GE(polls_of([&] { (void)ops::make_folds(ctx, kManyRows, {}, 5, 1); }),
            (kManyRows + sorting + kManyRows) / kBetweenLooks);
}

/// Each row lists the next.
NeighborGraph polled_ring() {
  NeighborGraph graph;
  graph.rows = graph.table_rows = kManyRows;
  graph.k = 1;
  for (std::int64_t i = 0; i < kManyRows; ++i) graph.ids.push_back((i + 1) % kManyRows);
  graph.distances.assign(static_cast<std::size_t>(kManyRows), 1);
  return graph;
}

TEST(Polls, GraphsMadeSymmetric) {
  const Context ctx = polled_context();
  const NeighborGraph graph = polled_ring();
  // The lists are turned in two loops, and merged twice, in tasks of rows.
  EXPECT_GE(polls_of([&] { (void)symmetrize(ctx, graph, Symmetry::either); }),
            2 + 2 + 2 * of_tasks(ctx, kManyRows / 16384));
  EXPECT_GE(polls_of([&] { (void)with_self(ctx, graph); }), 2);
}

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

TEST(Polls, EdgesThatAreChecked) {
  SpanningTree tree;
  tree.rows = kManyRows + 1;
  tree.a.assign(static_cast<std::size_t>(kManyRows), 0);
  for (std::int64_t b = 1; b < tree.rows; ++b) tree.b.push_back(b);
  tree.lengths.assign(static_cast<std::size_t>(kManyRows), 1);
  const Context ctx = polled_context();
  EXPECT_EQ(polls_of([&] { ops::check_tree(ctx, tree); }), 2);
}

TEST(Polls, RowsOfASample) {
  const Context ctx = polled_context();
  const std::vector<double> values = polled_values(2 * kManyRows, 1);
  const TableView table(values.data(), 2 * kManyRows, 1);
  // Draws of rows until there are kManyRows, and the rows, by 256.
  EXPECT_GE(polls_of([&] { (void)sample_rows(ctx, table, kManyRows, 1); }), 2 + kManyRows / 256);
}

TEST(Polls, ScoresOfShards) {
  const Context ctx = polled_context();
  NeighborGraph graph;
  graph.rows = graph.table_rows = kManyRows;
  graph.k = 1;
  graph.ids.assign(static_cast<std::size_t>(kManyRows), 0);
  graph.ids.front() = 1;
  graph.distances = polled_values(kManyRows, 1);
  Communicator self;
  const auto looks = [&](double contamination, bool novelty) {
    LofOptions options{.k = 1, .score = OutlierScore::knn};
    options.contamination = contamination;
    options.novelty = novelty;
    return polls_of([&] { (void)lof(ctx, self, graph, 0, options); });
  };
  const std::int64_t others = looks(0, false);
  // Of each row its k-distance is kept.
  EXPECT_GE(looks(0, true), others + 2);
  // Scores are negated; their eight bytes are counted in a pass each, which looks before it begins, too; the next score
  // is looked for.
  EXPECT_GE(looks(0.1, false), others + 2 + 8 * (1 + 2) + 2);
}

TEST(Polls, RowsOfADrawnCenter) {
  const Context ctx = polled_context();
  constexpr std::int64_t kGroup = 32;  // rows whose changes are looked at in one step
  const std::vector<float> values(static_cast<std::size_t>(kGroup * kManyRows), 1);
  const kernels::ClusterTask task = {TableView(values.data(), kGroup * kManyRows, 1), {}, 1, false};
  const auto lloyd = cpu::make_lloyd(ctx, task);
  cpu::RowMasses masses(ctx, task, *lloyd, 1, 0);
  masses.attempt(std::vector<double>{1});
  EXPECT_GE(polls_of([&] { masses.take(0); }), 2);
}

}  // namespace
}  // namespace vicinal
