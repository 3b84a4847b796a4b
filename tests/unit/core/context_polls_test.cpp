// Cancel polls of the engine, counted: each long loop polls at least as often as its work, divided by the distance
// between two polls, says. Nothing here takes time.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "backend/index_access.hpp"
#include "backend/nearest.hpp"
#include "core/in_steps.hpp"
#include "core/parallel.hpp"
#include "counted_polls.hpp"
#include "cpu/kmeans/table_scan.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "simd/kernels.hpp"
#include "solver/tall.hpp"
#include "vicinal/cocluster.hpp"
#include "vicinal/kmeans_steps.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lof.hpp"

namespace vicinal {
namespace {

TEST(Polls, EachTaskOfAParallelLoop) {
  for (const int threads : {1, 3}) {
    const Context ctx = Context::cpu({.threads = threads});
    EXPECT_GE(polls_of([&] { core::parallel_for(ctx, 100, [](std::int64_t, int) {}); }), 100);
  }
}

// Reading in tasks of 4096 rows, and then row by row for the first value at fault.
TEST(Polls, ATableThatIsRefused) {
  constexpr std::int64_t kRows = 16 * 4096;
  std::vector<float> values(kRows, 1);
  values.back() = std::numeric_limits<float>::infinity();
  const Context ctx = Context::cpu({.threads = 1});
  const auto scan = [&] { cpu::scan_table(ctx, TableView(values.data(), kRows, 1)); };
  EXPECT_GE(polls_of([&] { EXPECT_THROW(scan(), Error); }), 2 * kRows / 4096);
}

TEST(Polls, ATreeDescent) {
  constexpr std::int64_t kRows = 1 << 16;
  const std::vector<float> rows = polled_rows(kRows, 2);
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.data(), kRows, 2);
  const Index index(ctx, table, {.tree = true});
  const std::int64_t nodes = cpu::Tree::build(ctx, kernels::prepared_of(index))->nodes();
  const TableView query = table.slice(0, 1);
  const std::vector<std::int64_t> exclude = {0};  // then boxes are not counted as wholes
  const auto polls_within = [&](double radius, Metric metric) {
    return polls_of([&] {
      count(ctx, index, query,
            {.radius = radius, .metric = metric, .p = 3, .method = Method::kdtree, .exclude = exclude});
    });
  };
  EXPECT_GE(polls_within(10, Metric::euclidean) - polls_within(0, Metric::euclidean), nodes / 16 - 1);
  // A power takes as long as a hundred products.
  EXPECT_GE(polls_within(10, Metric::minkowski), kRows);
}

// A filter: the rows that it admits are counted leaf by leaf.
TEST(Polls, RowsBelowTheNodesOfATree) {
  constexpr std::int64_t kRows = 1 << 16;
  const std::vector<float> rows = polled_rows(kRows, 2);
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.data(), kRows, 2);
  const Index index(ctx, table, {.tree = true});
  const std::vector<std::uint64_t> all(kRows / 64, ~std::uint64_t{0});
  const auto polls_with = [&](Bitmap filter) {
    const TableView queries = table.slice(0, kRows / 64);
    return polls_of([&] { count(ctx, index, queries, {.method = Method::kdtree, .filter = filter}); });
  };
  constexpr std::int64_t kMostInALeaf = 80;
  EXPECT_GE(polls_with(all) - polls_with({}), kRows / kMostInALeaf);
}

// Equal rows, all but one, share one leaf and one distinct row; those that a filter admits are counted one by one.
TEST(Polls, EqualRowsThatAFilterAdmits) {
  constexpr std::int64_t kRows = 1 << 16;
  constexpr std::int64_t kPerPoll = 256;
  std::vector<float> rows(kRows, 1);
  rows.back() = 2;
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.data(), kRows, 1);
  const Index index(ctx, table, {.tree = true});
  ASSERT_EQ(kernels::prepared_of(index).distinct_rows(), 2);
  const std::vector<std::uint64_t> all(kRows / 64, ~std::uint64_t{0});
  const auto polls_with = [&](Bitmap filter) {
    const TableView queries = table.slice(0, kRows / 64);
    return polls_of([&] { count(ctx, index, queries, {.method = Method::kdtree, .filter = filter}); });
  };
  EXPECT_GE(polls_with(all) - polls_with({}), kRows / kPerPoll);
}

// Of minkowski each box is a step, as each point is: eight of each node that a query opens, and those of one leaf at
// least lie below three nodes.
TEST(Polls, PowersOfTheBoxesOfATree) {
  constexpr std::int64_t kRows = 1 << 14;
  constexpr std::int64_t kQueries = 32;
  const std::vector<float> rows = polled_rows(kRows, 2);
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.data(), kRows, 2);
  const Index index(ctx, table, {.tree = true});
  const std::vector<std::int64_t> other_rows(kQueries, kRows - 1);
  const auto polls_beside_points = [&](std::span<const std::int64_t> exclude, Metric metric) {
    const RadiusOptions options = {.radius = 0, .metric = metric, .p = 3, .method = Method::kdtree, .exclude = exclude};
    std::int64_t points = 0;
    const std::int64_t polls =
        polls_of([&] { points = count(ctx, index, table.slice(0, kQueries), options).stats.survivors; });
    return metric == Metric::minkowski ? polls - points : polls;
  };
  const std::int64_t nearest = polls_beside_points(other_rows, Metric::minkowski);  // boxes are not counted as wholes
  EXPECT_GE(nearest - polls_beside_points(other_rows, Metric::euclidean), kQueries * 3 * 8);
  EXPECT_GE(polls_beside_points({}, Metric::minkowski) - nearest, kQueries * 3);  // the farthest keys of near boxes
}

// 2^18 neighbors take some 2^18 * 18 comparisons to sort, and then are made distances and copied.
TEST(Polls, ALongListWithinARadius) {
  constexpr std::int64_t kRows = 1 << 18;
  const std::vector<float> rows = polled_rows(kRows, 1);
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.data(), kRows, 1);
  const Index index(ctx, table);
  const RadiusOptions options = {.radius = 10, .method = Method::direct};
  const std::int64_t counting = polls_of([&] { count(ctx, index, table.slice(0, 1), options); });
  EXPECT_GE(polls_of([&] { radius(ctx, index, table.slice(0, 1), options); }) - counting, 4 * 18);
}

// Each radius is brought to a key.
TEST(Polls, ManyRadii) {
  constexpr std::int64_t kRows = 1 << 14;
  const std::vector<float> rows = polled_rows(kRows, 1);
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.data(), kRows, 1);
  const Index index(ctx, table.slice(0, 2));
  const std::vector<double> radii(kRows, 0.5);
  const auto polls = [&](const RadiusOptions& options) { return polls_of([&] { count(ctx, index, table, options); }); };
  EXPECT_GE(polls({.method = Method::direct, .radii = radii}) - polls({.radius = 0.5, .method = Method::direct}),
            kRows / 1024);
}

// A leaf of equal points may be of any size, where they are too few of the table to be made one.
TEST(Polls, ALargeLeaf) {
  constexpr std::int64_t kRows = 1 << 17;
  constexpr std::int64_t kEqual = kRows / 64;
  std::vector<float> rows = polled_rows(kRows, 2);
  for (std::int64_t i = 0; i < 2 * kEqual; ++i) rows[static_cast<std::size_t>(i)] = 0.5F;
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.data(), kRows, 2);
  const Index index(ctx, table, {.tree = true});
  const auto polls_at = [&](std::int64_t row) {
    return polls_of([&] { knn(ctx, index, table.slice(row, row + 1), {.k = 1, .method = Method::kdtree}); });
  };
  EXPECT_GE(polls_at(0) - polls_at(kRows - 1), kEqual / 256 - 2);
}

TEST(Polls, BruteForce) {
  constexpr std::int64_t kRows = 1 << 16;
  const std::vector<float> rows = polled_rows(kRows, 2);
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.data(), kRows, 2);
  const Index index(ctx, table);
  const auto polls_by = [&](Method method, std::int64_t queries, Metric metric) {
    return polls_of(
        [&] { knn(ctx, index, table.slice(0, queries), {.k = 1, .metric = metric, .p = 3, .method = method}); });
  };
  EXPECT_GE(polls_by(Method::direct, 1, Metric::euclidean), kRows / 64);
  EXPECT_GE(polls_by(Method::direct, 1, Metric::minkowski), kRows);
  // Each panel of rows is packed by a task of its own, and polls when it is screened.
  EXPECT_GE(polls_by(Method::fused, 8, Metric::euclidean), 2 * kRows / cpu::simd_kernels(ctx.isa()).tile_rows);
}

// Finding the score that a share of the rows lies above compares every score at least once.
TEST(Polls, AThresholdByContamination) {
  constexpr std::int64_t kRows = std::int64_t{1} << 18;
  constexpr std::int64_t kStep = std::int64_t{1} << 16;
  const std::vector<float> rows = polled_rows(kRows, 1);
  const Context ctx = Context::cpu({.threads = 1});
  const Index index(ctx, TableView(rows.data(), kRows, 1), {.tree = true});
  const auto polls_with = [&](double contamination) {
    return polls_of([&] {
      (void)lof(ctx, index,
                {.k = 1, .score = OutlierScore::knn, .contamination = contamination, .method = Method::kdtree});
    });
  };
  EXPECT_GE(polls_with(0.1), polls_with(0) + kRows / kStep);
}

// Memory is zeroed by one thread before the search, which takes 50 ms for each 100 MB.
TEST(Polls, ListsBeforeTheyAreFound) {
  constexpr std::int64_t kRows = 1 << 16;
  constexpr std::int64_t kNeighbors = 65;
  constexpr std::int64_t kSteps = (kRows * kNeighbors + core::kElementsPerStep - 1) / core::kElementsPerStep;
  static_assert(kSteps == 2);
  const std::vector<float> rows = polled_rows(kRows, 1);
  const Context ctx = Context::cpu({.threads = 1});
  const Index index(ctx, TableView(rows.data(), kRows, 1));
  const kernels::Prepared& prepared = kernels::prepared_of(index);
  const kernels::NearestBackend& backend = kernels::backend_of(ctx).nearest();
  const auto tree = backend.build_tree(ctx, prepared);
  kernels::NearestTask task;
  task.index = &prepared;
  task.queries = prepared.table;
  task.k = kNeighbors;
  task.method = Method::kdtree;
  task.tree = tree.get();
  SearchStats stats;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(kRows * kNeighbors));
  std::vector<double> distances(ids.size());
  std::vector<std::int64_t> none;
  kernels::NearestResult result{ids, distances, none, none, stats};
  const std::int64_t searching = polls_of([&] { backend.search(ctx, task, result); });
  const std::int64_t of_lists = polls_of([&] { (void)kernels::HostLists(ctx, backend, task, stats); });
  EXPECT_GE(of_lists, searching + 2 * kSteps);
  EXPECT_EQ(polls_of([&] {
              backend.search_into(ctx, task, {ids.data(), distances.data()}, stats);
            }),
            of_lists + 2 * kSteps);
}

TEST(Polls, LargeArraysInSteps) {
  constexpr std::int64_t kSize = 2 * core::kElementsPerStep + 1;
  const Context ctx = polled_context();
  std::vector<std::uint8_t> values;
  EXPECT_EQ(polls_of([&] { core::resize_in_steps(ctx, values, kSize); }), 3);
  std::vector<std::uint8_t> copies(values.size());
  EXPECT_EQ(polls_of([&] { core::copy_in_steps(ctx, values, copies.data()); }), 3);
  std::vector<std::int64_t> numbers;
  EXPECT_EQ(polls_of([&] { core::number_in_steps(ctx, numbers, kSize); }), 3);
  EXPECT_EQ(numbers.back(), kSize - 1);
}

// Labels and keys that a caller asks for: zeroed, read, and those of rows without weight put among the others.
TEST(Polls, StepsOfKMeans) {
  constexpr std::int64_t kRows = std::int64_t{3} << 17;
  constexpr std::int64_t kStep = std::int64_t{1} << 16;
  const std::vector<float> rows = polled_rows(kRows, 1);
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.data(), kRows, 1);
  std::vector<double> weights(kRows, 1);
  for (std::size_t i = 0; i < weights.size(); i += 2) weights[i] = 0;
  KMeansSteps all(ctx, table, {.clusters = 2});
  KMeansSteps some(ctx, table, {.clusters = 2, .weights = weights});
  for (KMeansSteps* steps : {&all, &some}) {
    steps->start(table.slice(0, 2));
    steps->assign();
  }
  EXPECT_GE(polls_of([&] { (void)all.labels(); }), 1);
  EXPECT_GE(polls_of([&] { (void)some.labels(); }), kRows / kStep + 2);
  EXPECT_GE(polls_of([&] { (void)some.keys(); }) - polls_of([&] { (void)all.keys(); }), kRows / kStep);
}

// Each column of each strip of rows costs a product of the strip and a vector.
TEST(Polls, TheTriangleOfADenseMatrix) {
  constexpr std::int64_t kSize = 200;
  const Context ctx = Context::cpu({.threads = 1});
  solver::Small matrix(kSize, kSize);
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform;
  for (double& value : matrix.values) value = uniform(random);
  EXPECT_EQ(polls_of([&] { (void)solver::triangle_of(matrix); }), 0);
  EXPECT_GE(polls_of([&] { (void)solver::triangle_of(matrix, &ctx); }), 2 * kSize);
}

// A path: every row of the first product is made.
TEST(Polls, AClosure) {
  constexpr std::int64_t kSide = 512;
  std::vector<std::int64_t> a;
  std::vector<std::int64_t> b;
  for (std::int64_t i = 0; i < kSide; ++i) {
    for (std::int64_t j = i; j <= std::min(i + 1, kSide - 1); ++j) {
      a.push_back(i);
      b.push_back(j);
    }
  }
  const Context ctx = Context::cpu({.threads = 1});
  const BipartiteEdges edges(kSide, kSide, std::span<const std::int64_t>(a), std::span<const std::int64_t>(b));
  EXPECT_GE(polls_of([&] { cocluster(ctx, edges, {.method = CoclusterMethod::closure}); }), 2 * kSide);
}

// While a tree is made, whoever waits for it looks at the token, or else waits until it is made.
TEST(Polls, ATreeThatAnotherMakes) {
  CpuOptions options{.threads = 1};
  options.cancel.cancel();
  const Context cancelled = Context::cpu(options);
  const kernels::TreeSlot slot;
  const auto none = [] { return std::shared_ptr<const kernels::Tree>(); };
  std::future<void> waiting;
  (void)slot.get_or_make(Context::cpu({.threads = 1}), [&] {
    waiting = std::async(std::launch::async, [&] { (void)slot.get_or_make(cancelled, none); });
    waiting.wait_for(std::chrono::seconds(20));
    return none();
  });
  EXPECT_THROW(waiting.get(), Error);
}

}  // namespace
}  // namespace vicinal
