// Rows that a tree leaves to screens: the lists are those of all pairs, whatever lies within reach of a row.
#include "cpu/nearest/tree/left_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/index_access.hpp"
#include "core/philox.hpp"
#include "counted_polls.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/nearest.hpp"
#include "cpu/nearest/tree/search.hpp"
#include "isas.hpp"
#include "simd/kernels.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kCloudRows = 12000;

/// Five clouds of one to five eighths of the rows each, and an eighth of noise. Coordinates are multiples of `step`,
/// of which many pairs of rows have the same distance, or any numbers (0).
std::vector<double> clouds_and_noise(std::int64_t d, double step) {
  std::vector<double> rows(static_cast<std::size_t>(kCloudRows * d));
  for (std::int64_t i = 0; i < kCloudRows; ++i) {
    const std::int64_t cloud = i % 8;
    for (std::int64_t j = 0; j < d; ++j) {
      const double u = core::philox_uniform(11, 0, static_cast<std::uint64_t>(i * d + j));
      double x = 20 * u - 10;
      if (cloud < 7) {
        const auto middle = static_cast<double>(cloud % 5 * (j + 3) % 7 * 2 - 6);
        x = middle + (u - 0.5) * (2 + 0.4 * static_cast<double>(cloud));
      }
      rows[static_cast<std::size_t>(i * d + j)] = step > 0 ? step * std::nearbyint(x / step) : x;
    }
  }
  return rows;
}

/// Searches of the table within itself by its tree.
struct Searched {
  Searched(const Context& ctx, const TableView& table, std::int64_t k) : index(ctx, table) {
    const kernels::Prepared& prepared = kernels::prepared_of(index);
    tree = kernels::backend_of(ctx).nearest().build_tree(ctx, prepared);
    task.index = &prepared;
    task.queries = table;
    task.self = true;
    task.k = k;
    task.method = Method::kdtree;
    task.tree = tree.get();
    ids.resize(static_cast<std::size_t>(table.rows() * k));
    distances.resize(ids.size());
  }
  [[nodiscard]] const cpu::Tree& cpu_tree() const { return static_cast<const cpu::Tree&>(*tree); }

  Index index;
  std::shared_ptr<const kernels::Tree> tree;
  kernels::NearestTask task;
  std::vector<std::int64_t> ids;
  std::vector<double> distances;
  std::vector<std::int64_t> unused;
  SearchStats stats;
  kernels::NearestResult result{ids, distances, unused, unused, stats};
};

void expect_lists_of_all_pairs(const TableView& table, KnnOptions options) {
  const Context usual = Context::cpu({.threads = 2});
  options.method = Method::direct;
  const NeighborGraph wanted = knn(usual, table, options);
  ASSERT_EQ(wanted.stats.distinct_rows, table.rows());  // or no row is left
  options.method = Method::kdtree;
  for (const Isa isa : isas()) {
    for (const int threads : {1, 3}) {
      const NeighborGraph found = knn(Context::cpu({.threads = threads, .isa = isa}), table, options);
      EXPECT_EQ(found.ids, wanted.ids) << name_of(isa) << ", " << threads << " threads";
      EXPECT_EQ(found.distances, wanted.distances);
    }
  }
}

TEST(LeftRows, ListsAreThoseOfAllPairs) {
  const std::vector<double> rows = clouds_and_noise(16, 0);
  const TableView table(rows.data(), kCloudRows, 16);
  expect_lists_of_all_pairs(table, {.k = 10});
}

TEST(LeftRows, EqualDistancesAreOrderedById) {
  const std::vector<double> rows = clouds_and_noise(12, 0.25);
  const std::vector<float> narrow(rows.begin(), rows.end());
  expect_lists_of_all_pairs(TableView(narrow.data(), kCloudRows, 12), {.k = 7, .metric = Metric::sqeuclidean});
}

TEST(LeftRows, Bytes) {
  const std::vector<double> rows = clouds_and_noise(24, 0);
  std::vector<std::uint8_t> bytes(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) bytes[i] = static_cast<std::uint8_t>(12 * (rows[i] + 10));
  expect_lists_of_all_pairs(TableView(bytes.data(), kCloudRows, 24), {.k = 1});
}

TEST(LeftRows, SomeRowsAreLeftOutByAFilter) {
  const std::vector<double> rows = clouds_and_noise(9, 0);
  const std::vector<std::uint64_t> bits((kCloudRows + 63) / 64, 0xB7B7B7B7B7B7B7B7U);  // of three quarters of the rows
  KnnOptions options{.k = 32};
  options.filter = bits;
  expect_lists_of_all_pairs(TableView(rows.data(), kCloudRows, 9), options);
}

// Keys are close to the largest number, or to the smallest one that has all its digits.
TEST(LeftRows, LargeAndSmallNumbers) {
  for (const double scale : {1e140, 1e152, 1e-150}) {
    std::vector<double> rows = clouds_and_noise(8, 0);
    for (double& x : rows) x *= scale;
    expect_lists_of_all_pairs(TableView(rows.data(), kCloudRows, 8), {.k = 3});
  }
}

// The tree alone would rank a third of all pairs.
TEST(LeftRows, FewPointsAreRanked) {
  const std::vector<double> rows = clouds_and_noise(16, 0);
  const TableView table(rows.data(), kCloudRows, 16);
  const Context ctx = Context::cpu({.threads = 2});
  const SearchStats stats = knn(ctx, table, {.k = 10, .method = Method::kdtree}).stats;
  EXPECT_LT(stats.survivors, kCloudRows * kCloudRows / 20);
}

TEST(LeftRows, PointsWithinReachAreCounted) {
  const std::vector<double> rows = clouds_and_noise(8, 0);
  const Context ctx = Context::cpu({.threads = 2});
  const Searched searched(ctx, TableView(rows.data(), kCloudRows, 8), 3);
  const cpu::Tree& tree = searched.cpu_tree();
  const cpu::TreeKeys keys(ctx, searched.task, tree);
  ASSERT_TRUE(cpu::LeftRows::serve(ctx, searched.task));
  const cpu::LeftRows left(ctx, searched.task, tree, keys, false);
  EXPECT_EQ(left.points_within(rows.data(), std::numeric_limits<double>::infinity(), kCloudRows), kCloudRows);
  EXPECT_GT(left.points_within(rows.data(), std::numeric_limits<double>::infinity(), 100), 100);
  // Those within the reach are among those that are counted.
  for (const double reach : {0.0, 1.0, 4.0}) {
    std::int64_t within = 0;
    for (std::int64_t i = 0; i < kCloudRows; ++i) {
      double key = 0;
      for (std::int64_t j = 0; j < 8; ++j) {
        const double x = rows[static_cast<std::size_t>(i * 8 + j)] - rows[static_cast<std::size_t>(j)];
        key = std::fma(x, x, key);
      }
      within += key <= reach ? 1 : 0;
    }
    EXPECT_GE(left.points_within(rows.data(), reach, kCloudRows), within) << reach;
  }
  EXPECT_LT(left.points_within(rows.data(), 0.0, kCloudRows), kCloudRows / 20);
}

TEST(LeftRows, MemoryIsPlanned) {
  const std::vector<double> rows = clouds_and_noise(8, 0);
  const Context ctx = Context::cpu({.threads = 2});
  const Searched all(ctx, TableView(rows.data(), kCloudRows, 8), 10);
  const Searched some(ctx, TableView(rows.data(), kCloudRows - 2000, 8), 10);
  const auto bytes = [&](const Searched& searched) {
    return static_cast<double>(cpu::LeftRows::bytes(ctx, searched.task));
  };
  // What is left of a row, its place in three arrays of an index and among those around near rows, and its bytes as
  // the coarsest screen packs them.
  EXPECT_GE(bytes(all) - bytes(some), 2000.0 * (1 + 4 * 8 + 8));
}

// Rows are looked through twice: for near ones and for far ones.
TEST(Polls, RowsThatAreLeft) {
  const std::vector<float> rows = polled_rows(kManyRows, 8);
  const Context ctx = polled_context();
  Searched searched(ctx, TableView(rows.data(), kManyRows, 8), 1);
  const cpu::TreeKeys keys(ctx, searched.task, searched.cpu_tree());
  cpu::LeftRows left(ctx, searched.task, searched.cpu_tree(), keys, false);
  EXPECT_GE(polls_of([&] { left.search(searched.result, [](std::int64_t) {}); }), 4);
}

TEST(Polls, PointsWithinReach) {
  const std::vector<double> rows = clouds_and_noise(8, 0);
  const Context ctx = polled_context();
  const Searched searched(ctx, TableView(rows.data(), kCloudRows, 8), 3);
  const cpu::Tree& tree = searched.cpu_tree();
  const cpu::TreeKeys keys(ctx, searched.task, tree);
  const cpu::LeftRows left(ctx, searched.task, tree, keys, false);
  const double all = std::numeric_limits<double>::infinity();
  EXPECT_GE(polls_of([&] { (void)left.points_within(rows.data(), all, kCloudRows); }), tree.nodes());
}

// A near row that reaches all points looks into all nodes, one that reaches none into the root alone; what else they
// take is the search by screens, once with all rows of the table and once with none.
TEST(Polls, LeavesAroundNearRows) {
  const std::vector<double> rows = clouds_and_noise(8, 0);
  const Context ctx = polled_context();
  const auto polls_with = [&](double limit) {
    Searched searched(ctx, TableView(rows.data(), kCloudRows, 8), 3);
    const cpu::TreeKeys keys(ctx, searched.task, searched.cpu_tree());
    cpu::LeftRows left(ctx, searched.task, searched.cpu_tree(), keys, false);
    left.add(0, false, limit, searched.result);
    return polls_of([&] { left.search(searched.result, [](std::int64_t) {}); });
  };
  const auto polls_of_screens = [&](std::int64_t count) {
    Searched searched(ctx, TableView(rows.data(), kCloudRows, 8), 3);
    kernels::NearestTask task = searched.task;
    std::vector<std::int64_t> some(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) some[static_cast<std::size_t>(i)] = i;
    task.method = Method::fused;
    task.self = false;
    task.queries = task.queries.slice(0, 1);
    task.some_rows = some;
    return polls_of([&] { cpu::nearest(ctx, task, searched.result); });
  };
  const Searched searched(ctx, TableView(rows.data(), kCloudRows, 8), 3);
  const std::int64_t nodes = searched.cpu_tree().nodes();
  const std::int64_t width = cpu::simd_kernels(ctx.isa()).tile_rows;
  const std::int64_t difference = polls_of_screens(kCloudRows) - polls_of_screens(width);
  EXPECT_GE(polls_with(std::numeric_limits<double>::max()) - polls_with(0), difference + nodes / 2);
}

}  // namespace
}  // namespace vicinal
