// Cancel polls of what a search prepares and of the papers' methods, counted on one thread. Nothing here takes time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/index_access.hpp"
#include "backend/nearest.hpp"
#include "counted_polls.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/tree/search.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "ops/nearest/index_check.hpp"
#include "ops/nearest/regress.hpp"
#include "simd/kernels.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

TableView source_to_prepare(const std::vector<float>& rows, std::int64_t d) {
  return TableView::blocks(DType::float32, std::ssize(rows) / d, d,
                           [&rows, d](std::int64_t begin, std::int64_t end, void* to) {
                             std::memcpy(to, rows.data() + begin * d, static_cast<std::size_t>((end - begin) * d) * 4);
                           });
}

/// Polls while a table is prepared.
std::int64_t preparing(const TableView& table) {
  const Context ctx = polled_context();
  return polls_of([&] { (void)Index(ctx, table); });
}

// The median is of up to 1,024 rows; of wide ones every 256 columns are a step.
TEST(Polls, TheMedianOfATable) {
  const std::vector<float> rows = polled_rows(2048, 1);
  const auto preparing_rows = [&](std::int64_t n) { return preparing(TableView(rows.data(), n, 1)); };
  EXPECT_GE(preparing_rows(1024) - preparing_rows(512), 512);
  EXPECT_GE(preparing(TableView(rows.data(), 1, 2048)) - preparing_rows(1), 2048 / 256 - 1);
}

// Rows are looked up among those of their bucket; where rows are equal, groups are made of them.
TEST(Polls, EqualRowsOfATable) {
  constexpr std::int64_t kRows = 4096;
  constexpr std::int64_t kBuckets = 2;
  const std::vector<float> rows = polled_rows(kRows, 1);
  std::vector<float> equal = rows;
  for (std::size_t i = 0; i < kRows / 2; ++i) equal[2 * i] = rows[i];
  // The median, a task for the largest value, two to fill the buckets, one for each of them and what it does.
  const std::int64_t distinct = preparing(TableView(rows.data(), kRows, 1));
  EXPECT_GE(distinct, 1024 + 1 + 1 + 2 + 2 * kBuckets);
  // Sizes of groups, their first rows, their members.
  EXPECT_GE(preparing(TableView(equal.data(), kRows, 1)), distinct + kBuckets + 1 + kBuckets);
}

TEST(Polls, QueriesOfASearch) {
  constexpr std::int64_t kQueries = 4096;
  const std::vector<float> rows = polled_rows(kQueries, 2);
  const Context ctx = polled_context();
  const TableView table(rows.data(), kQueries, 2);
  const auto polls_by = [&](Method method, std::int64_t n, std::int64_t queries, std::int64_t k) {
    const Index index(ctx, table.slice(0, n));
    return polls_of([&] { knn(ctx, index, table.slice(0, queries), {.k = k, .method = method}); });
  };
  // Each is screened or looked up in the tree, and its list is finished.
  for (const Method method : {Method::fused, Method::kdtree}) {
    const std::int64_t looks = method == Method::fused ? 2 : 1;
    EXPECT_GE(polls_by(method, 8, kQueries, 1) - polls_by(method, 8, kQueries / 2, 1), looks * kQueries / 2);
  }
}

// A source is asked by one thread, for as many rows as a task has.
TEST(Polls, ABlockSourceThatIsPrepared) {
  constexpr std::int64_t kRows = 1 << 16;
  const std::vector<float> rows = polled_rows(kRows, 1);
  EXPECT_GE(preparing(source_to_prepare(rows, 1)), 1024 + 1 + kRows / 32768);
}

// Of int8 a sample of rows is read, and two centres are tried with twelve scales each.
TEST(Polls, TheScaleOfBytes) {
  const std::vector<float> rows = polled_rows(1024, 2);
  const Context ctx = polled_context();
  const TableView table(rows.data(), 1024, 2);
  const Index index(ctx, table);
  kernels::NearestTask task;
  task.index = &kernels::prepared_of(index);
  task.queries = table;
  task.k = 1;
  task.method = Method::fused;
  EXPECT_GE(polls_of([&] { (void)cpu::make_ladder(ctx, task, {ScreenType::int8}); }), 256 + 2 * 12);
}

// Every part that is divided; of a tree whose shape is known, 16 nodes are a task, then boxes are made of boxes.
TEST(Polls, ATree) {
  constexpr std::int64_t kRows = 1 << 16;
  const std::vector<float> rows = polled_rows(kRows, 2);
  const Context ctx = polled_context();
  const Index index(ctx, TableView(rows.data(), kRows, 2));
  const kernels::Prepared& prepared = kernels::prepared_of(index);
  std::shared_ptr<const cpu::Tree> tree;
  const std::int64_t building = polls_of([&] { tree = cpu::Tree::build(ctx, prepared); });
  EXPECT_GE(building, tree->nodes());
  EXPECT_GE(polls_of([&] { (void)cpu::Tree::restore(ctx, prepared, tree->shape()); }),
            (tree->nodes() + 15) / 16 + (tree->nodes() + 1023) / 1024);
}

// Rows of positive and negative zeros differ in their bytes, not in their numbers: no part of them can be divided.
TEST(Polls, ATreeOfEqualPoints) {
  constexpr std::int64_t kColumns = 17;
  constexpr std::int64_t kRows = std::int64_t{1} << kColumns;
  constexpr std::int64_t kDealt = 16384;  // points of a task
  std::vector<float> rows;
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t j = 0; j < kColumns; ++j) rows.push_back((i >> j & 1) != 0 ? -0.0F : 0.0F);
  }
  const Context ctx = polled_context();
  const auto building = [&](std::int64_t n) {
    const Index index(ctx, TableView(rows.data(), n, kColumns));
    return polls_of([&] { (void)cpu::Tree::build(ctx, kernels::prepared_of(index)); });
  };
  // Points are read, looked at for their box, and put into a leaf.
  EXPECT_GE(building(kRows) - building(kRows / 2), kRows / 2 / kDealt + kRows / 2 / 65536 + kRows / 2 / 1024);
}

// A table is written, and a source copied, in blocks of 4 MiB.
TEST(Polls, AnIndexInAFile) {
  constexpr std::int64_t kRows = 3 << 20;
  const std::vector<float> rows = polled_rows(kRows, 1);
  const Context ctx = polled_context();
  const Index index(ctx, TableView(rows.data(), kRows, 1));
  const std::string path = ::testing::TempDir() + "vicinal_polls_index";
  EXPECT_GE(polls_of([&] { index.save(ctx, path); }), 3);
  std::filesystem::remove(path);
}

TEST(Polls, MethodsOfThePapers) {
  constexpr std::int64_t kRows = 1024;
  constexpr std::int64_t kQuery = kRows / 64 + 1;  // rows whose keys are computed between two polls, and the selection
  const std::vector<float> rows = polled_rows(kRows, 2);
  const Context ctx = polled_context();
  const TableView table(rows.data(), kRows, 2);
  const Index index(ctx, table);
  const auto polls_by = [&](Method method, std::int64_t queries, std::int64_t k) {
    return polls_of([&] { knn(ctx, index, table.slice(0, queries), {.k = k, .method = method}); });
  };
  const std::int64_t insertion = polls_by(Method::insertion, 1, 1);
  EXPECT_GE(polls_by(Method::insertion, 33, 1) - insertion, 32 * (1 + kQuery));  // each is a task
  // A product of all rows, and each row that is taken; the sort goes over the row 55 times.
  const std::int64_t kmin = polls_by(Method::product_kmin, 1, 1);
  EXPECT_GE(kmin, insertion - kQuery + 1 + 1);
  EXPECT_GE(polls_by(Method::product_kmin, 1, 9) - kmin, 8);
  EXPECT_GE(polls_by(Method::product_bitonic, 1, 1) - kmin, 10 * 11 / 2);
}

// A source is copied in blocks of 4 MiB, of which a row is one here.
TEST(Polls, ABlockSourceThatIsCopied) {
  constexpr std::int64_t kRows = 2;
  constexpr std::int64_t kColumns = 1 << 19;
  const std::vector<double> rows = polled_values(kRows * kColumns, 1);
  const Context ctx = polled_context();
  const auto copying = [&](const TableView& table) {
    return polls_of([&] { (void)Index(ctx, table, {.copy = true}); });
  };
  const std::int64_t of_memory = copying(TableView(rows.data(), kRows, kColumns));
  const TableView source =
      TableView::blocks(DType::float64, kRows, kColumns, [&rows](std::int64_t begin, std::int64_t end, void* to) {
        std::copy(rows.data() + begin * kColumns, rows.data() + end * kColumns, static_cast<double*>(to));
      });
  EXPECT_GE(copying(source), of_memory - of_tasks(ctx, kRows) + kRows);
}

// Values are looked at in tasks of 32,768, groups of equal rows in tasks of 4,096, and their members by as many.
TEST(Polls, EqualRowsOfAnIndexFile) {
  constexpr std::int64_t kRows = 2 * 4096 + 1;
  const std::vector<float> rows(static_cast<std::size_t>(kRows), 1);
  const Context ctx = polled_context();
  const Index index(ctx, TableView(rows.data(), kRows, 1));
  EXPECT_GE(polls_of([&] { ops::check_rows(ctx, ops::kIndexFile, "x", kernels::prepared_of(index)); }),
            of_tasks(ctx, 1) + of_tasks(ctx, 1) + 2);
}

TEST(Polls, ListsCutToADistance) {
  constexpr std::int64_t kListed = 8;
  constexpr std::int64_t kQueries = kBetweenLooks / kListed;
  const std::vector<float> rows = polled_rows(kQueries, 1);
  const Context ctx = polled_context();
  const Index index(ctx, TableView(rows.data(), 2 * kListed, 1));
  const auto polls_within = [&](double distance) {
    const KnnOptions options = {.k = kListed, .method = Method::direct, .max_radius = distance};
    return polls_of([&] { (void)knn(ctx, index, TableView(rows.data(), kQueries, 1), options); });
  };
  EXPECT_GE(polls_within(2), polls_within(std::numeric_limits<double>::infinity()) + 1);
}

TEST(Polls, TargetsOfARegression) {
  const std::vector<float> targets = polled_rows(3 * 4096, 1);
  const Context ctx = polled_context();
  EXPECT_GE(polls_of([&] { (void)ops::read_targets(ctx, TableView(targets.data(), 3 * 4096, 1), 3 * 4096); }), 3);
}

// Of each query what another worker found is added; then a list is sorted, its keys are made distances, and it is
// copied.
TEST(Polls, ListsOfTwoWorkers) {
  constexpr std::int64_t kQueries = 4;
  const std::vector<float> rows = polled_rows(2 * kBetweenLooks, 1);
  const Context ctx = polled_context();
  const TableView table(rows.data(), 2 * kBetweenLooks, 1);
  const Index index(ctx, table);
  kernels::NearestTask task;
  task.index = &kernels::prepared_of(index);
  task.queries = table.slice(0, kQueries);
  task.collect = kernels::Collect::radius;
  task.radius = 2;
  const cpu::Candidates candidates(task);
  NeighborGraph graph;
  std::vector<std::int64_t> counts;
  kernels::NearestResult result{graph.ids, graph.distances, graph.offsets, counts, graph.stats};
  std::atomic<std::uint64_t> bytes{0};
  const auto all = cpu::make_collector(ctx, task, candidates, result, bytes);
  NeighborGraph other;
  kernels::NearestResult others{other.ids, other.distances, other.offsets, counts, other.stats};
  const auto more = cpu::make_collector(ctx, task, candidates, others, bytes);
  std::vector<std::pair<double, std::int64_t>> list;
  for (cpu::Collector* const each : {all.get(), more.get()}) each->begin(0, kQueries);
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    list.emplace_back(1, row);
    (row < kBetweenLooks ? all : more)->offer(0, 1, row);
  }
  EXPECT_GE(polls_of([&] { all->absorb(*more); }), kQueries);
  const std::int64_t sorting = steps_of_sort(list, std::less<>());
  EXPECT_GE(polls_of([&] { all->finish(0); }), (sorting + 2 * kBetweenLooks) / kBetweenLooks);
  EXPECT_GE(polls_of([&] { all->end(); }), kQueries + 2);
}

// A tree of one node: each batch of rows looks once, and once more for the node.
TEST(Polls, ListsOfATableWithinItself) {
  constexpr std::int64_t kRows = 200;
  const std::vector<float> rows = polled_rows(kRows, 1);
  const Context ctx = polled_context();
  const TableView table(rows.data(), kRows, 1);
  const Index index(ctx, table);
  const auto tree = kernels::backend_of(ctx).nearest().build_tree(ctx, kernels::prepared_of(index));
  const auto shape = tree->shape_of(ctx, kernels::prepared_of(index));
  ASSERT_EQ(shape->nodes.size(), 1 + shape->leaf_sizes.size());  // one node and its leaves
  std::int64_t batches = 0;
  for (const std::int64_t size : shape->leaf_sizes) batches += (size + 31) / 32;
  kernels::NearestTask task;
  task.index = &kernels::prepared_of(index);
  task.queries = table;
  task.self = true;
  task.k = 3;
  task.method = Method::kdtree;
  task.tree = tree.get();
  std::vector<std::int64_t> ids(static_cast<std::size_t>(kRows * task.k));
  std::vector<double> distances(ids.size());
  std::vector<std::int64_t> unused;
  SearchStats stats;
  kernels::NearestResult result{ids, distances, unused, unused, stats};
  EXPECT_GE(polls_of([&] { cpu::nearest_in_tree(ctx, task, result); }), of_tasks(ctx, batches) + 2 * batches);
}

}  // namespace
}  // namespace vicinal
