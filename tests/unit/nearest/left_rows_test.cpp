// Rows that a tree leaves to screens: the lists are those of all pairs, whatever lies within reach of a row.
#include "cpu/nearest/tree/left_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "backend/index_access.hpp"
#include "core/distance.hpp"
#include "core/half.hpp"
#include "core/philox.hpp"
#include "counted_polls.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/nearest.hpp"
#include "cpu/nearest/tree/search.hpp"
#include "isas.hpp"
#include "simd/kernels.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/spanning_tree.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kCloudRows = 9001;  // the last panel has fewer rows

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

void expect_lists_of_all_pairs(const TableView& table, KnnOptions options,
                               const std::vector<Isa>& sets = {Isa::automatic}) {
  const Context usual = Context::cpu({.threads = 2});
  options.method = Method::direct;
  const NeighborGraph wanted = knn(usual, table, options);
  ASSERT_EQ(wanted.stats.distinct_rows, table.rows());  // or no row is left
  options.method = Method::kdtree;
  const auto expect_found = [&](const CpuOptions& cpu) {
    const NeighborGraph found = knn(Context::cpu(cpu), table, options);
    EXPECT_EQ(found.ids, wanted.ids) << name_of(cpu.isa) << ", " << cpu.threads << " threads";
    EXPECT_EQ(found.distances, wanted.distances);
    return found.stats.survivors;
  };
  for (const Isa isa : sets) {
    const std::int64_t survivors = expect_found({.threads = 3, .isa = isa});
    if (isa == sets.back()) {
      EXPECT_EQ(expect_found({.threads = 1, .isa = isa}), survivors);
    }
  }
}

TEST(LeftRows, ListsAreThoseOfAllPairs) {
  const std::vector<double> rows = clouds_and_noise(16, 0);
  const TableView table(rows.data(), kCloudRows, 16);
  expect_lists_of_all_pairs(table, {.k = 10}, isas());
}

TEST(LeftRows, EqualDistancesAreOrderedById) {
  const std::vector<double> rows = clouds_and_noise(12, 0.25);
  const std::vector<float> narrow(rows.begin(), rows.end());
  expect_lists_of_all_pairs(TableView(narrow.data(), kCloudRows, 12), {.k = 7, .metric = Metric::sqeuclidean}, isas());
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

TEST(LeftRows, ListsWithinARadiusMayBeShort) {
  const std::vector<double> rows = clouds_and_noise(16, 0);
  KnnOptions options{.k = 32};
  options.max_radius = 1.7;
  const TableView table(rows.data(), kCloudRows, 16);
  const NeighborGraph graph = knn(Context::cpu({.threads = 2}), table, options);
  ASSERT_LT(std::ssize(graph.ids), kCloudRows * options.k);
  expect_lists_of_all_pairs(table, options);
}

// Rows of float16 are materialised; each second column of a wider table does not lie beside the next.
TEST(LeftRows, RowsThatAreNotReadInPlace) {
  const std::vector<double> rows = clouds_and_noise(16, 0);
  std::vector<std::uint16_t> halves(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) halves[i] = core::half_bits(rows[i], core::HalfRounding::nearest_even);
  expect_lists_of_all_pairs(TableView(halves.data(), DType::float16, kCloudRows, 16, 16), {.k = 5});
  expect_lists_of_all_pairs(TableView(rows.data(), DType::float64, kCloudRows, 8, 16, 2), {.k = 5});
}

// A few rows between two clouds of so few that their rows stay in the tree.
TEST(LeftRows, FewAreSearchedForInTheTree) {
  constexpr std::int64_t kColumns = 8;
  std::vector<float> rows = polled_rows(kCloudRows, kColumns);
  for (std::int64_t i = 0; i < kCloudRows; ++i) {
    for (std::int64_t j = 1; j < kColumns; ++j) rows[static_cast<std::size_t>(i * kColumns + j)] *= 1e-3F;
    if (i % 1000 == 7) rows[static_cast<std::size_t>(i * kColumns + 1)] += 30;
  }
  expect_lists_of_all_pairs(TableView(rows.data(), kCloudRows, kColumns), {.k = 10});
}

TEST(LeftRows, SpanningTreeIsThatOfAllPairs) {
  const std::vector<double> rows = clouds_and_noise(16, 0);
  const TableView table(rows.data(), kCloudRows, 16);
  const Context ctx = Context::cpu({.threads = 2});
  const SpanningTree wanted = minimum_spanning_tree(ctx, table, {.min_samples = 5, .method = Method::fused});
  const SpanningTree found = minimum_spanning_tree(ctx, table, {.min_samples = 5, .method = Method::kdtree});
  EXPECT_EQ(found.a, wanted.a);
  EXPECT_EQ(found.b, wanted.b);
  EXPECT_EQ(found.lengths, wanted.lengths);
  EXPECT_EQ(found.core_distances, wanted.core_distances);
}

/// The reach of a row that has more than a few points within reach, before and after it was tried.
std::vector<cpu::Reach> reaches_of_tried_row(const std::vector<float>& rows, std::int64_t d) {
  const Context ctx = Context::cpu({.threads = 2});
  const Searched searched(ctx, TableView(rows.data(), std::ssize(rows) / d, d), 3);
  const cpu::Tree& tree = searched.cpu_tree();
  const cpu::TreeKeys keys(ctx, searched.task, tree);
  cpu::LeftRows left(ctx, searched.task, tree, keys, false);
  const std::int64_t row = tree.shape().order[0];
  const std::vector<double> x(rows.begin() + row * d, rows.begin() + row * d + d);
  double limit = 1e-6;
  while (left.reach_of(x.data(), limit, 0) == cpu::Reach::few) limit *= 1.05;
  const cpu::Reach before = left.reach_of(x.data(), limit, 0);
  left.try_near(0, x.data(), limit, 0);
  left.decide();
  return {before, left.reach_of(x.data(), limit, 0)};
}

// Within reach of 2,048 rows is nearly all of a table without clusters, but little of one with clusters.
TEST(LeftRows, NearRowsAreTried) {
  constexpr std::int64_t kRows = 100000;
  constexpr std::int64_t kColumns = 8;
  std::vector<float> rows = polled_rows(kRows, kColumns);
  using Reaches = std::vector<cpu::Reach>;
  EXPECT_EQ(reaches_of_tried_row(rows, kColumns), (Reaches{cpu::Reach::near, cpu::Reach::few}));
  for (std::int64_t i = 0; i < kRows; ++i) rows[static_cast<std::size_t>(i * kColumns)] += 100.0F * (i % 40);
  EXPECT_EQ(reaches_of_tried_row(rows, kColumns), (Reaches{cpu::Reach::near, cpu::Reach::near}));
}

// The tree alone would rank a third of all pairs.
TEST(LeftRows, FewPointsAreRanked) {
  const std::vector<double> rows = clouds_and_noise(16, 0);
  const TableView table(rows.data(), kCloudRows, 16);
  const Context ctx = Context::cpu({.threads = 2});
  EXPECT_LT(knn(ctx, table, {.k = 10, .method = Method::kdtree}).stats.survivors, kCloudRows * kCloudRows / 20);
}

// A list that is not full says nothing about the reach of its row.
TEST(LeftRows, FewRowsAreAdmittedByAFilter) {
  const std::vector<double> rows = clouds_and_noise(16, 0);
  const TableView table(rows.data(), kCloudRows, 16);
  const Context ctx = Context::cpu({.threads = 2});
  std::vector<std::uint64_t> bits((kCloudRows + 63) / 64, 0);
  for (std::int64_t i = 0; i < kCloudRows; i += 128) bits[static_cast<std::size_t>(i / 64)] |= 1;
  KnnOptions options{.k = 10};
  options.filter = bits;
  options.method = Method::direct;
  const NeighborGraph wanted = knn(ctx, table, options);
  options.method = Method::kdtree;
  const NeighborGraph found = knn(ctx, table, options);
  EXPECT_EQ(found.ids, wanted.ids);
  EXPECT_EQ(found.distances, wanted.distances);
}

TEST(LeftRows, ProgressGrows) {
  const std::vector<double> rows = clouds_and_noise(16, 0);
  std::vector<double> reports;
  const auto progress = [&](std::string_view stage, double done) {
    if (stage == "search") reports.push_back(done);
  };
  const Context ctx = Context::cpu({.threads = 1, .progress = progress});
  (void)knn(ctx, TableView(rows.data(), kCloudRows, 16), {.k = 10, .method = Method::kdtree});
  ASSERT_FALSE(reports.empty());
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_LE(reports.back(), 1);
}

TEST(LeftRows, ReachGrowsWithTheLimit) {
  cpu::KnownReach known;
  EXPECT_EQ(known.of(1), cpu::Reach::unknown);
  known.note(1, cpu::Reach::few);
  known.note(3, cpu::Reach::near);
  known.note(4, cpu::Reach::near);
  known.note(6, cpu::Reach::far);
  EXPECT_EQ(known.of(0.5), cpu::Reach::few);
  EXPECT_EQ(known.of(1), cpu::Reach::few);
  EXPECT_EQ(known.of(2), cpu::Reach::unknown);
  EXPECT_EQ(known.of(3.5), cpu::Reach::near);
  EXPECT_EQ(known.of(5), cpu::Reach::unknown);
  EXPECT_EQ(known.of(6), cpu::Reach::far);
  EXPECT_EQ(known.of(7), cpu::Reach::far);
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
      within += core::euclidean_key(rows.data(), rows.data() + i * 8, 8) <= reach ? 1 : 0;
    }
    EXPECT_GE(left.points_within(rows.data(), reach, kCloudRows), within) << reach;
  }
  EXPECT_LT(left.points_within(rows.data(), 0.0, kCloudRows), kCloudRows / 20);
}

TEST(LeftRows, MemoryIsPlanned) {
  constexpr std::int64_t kMore = 30000;
  constexpr std::int64_t kFewer = 20000;  // more than are searched for at once
  const std::vector<float> rows = polled_rows(kMore, 8);
  const Context ctx = Context::cpu({.threads = 2});
  const Searched more(ctx, TableView(rows.data(), kMore, 8), 10);
  const Searched fewer(ctx, TableView(rows.data(), kFewer, 8), 10);
  const auto bytes = [&](const Searched& searched) {
    return static_cast<double>(cpu::LeftRows::bytes(ctx, searched.task));
  };
  const auto packed = [&](const Searched& searched) {
    kernels::NearestTask task = searched.task;
    task.method = Method::fused;
    const std::vector<kernels::PackedNeed> needs = cpu::packed_needs(ctx, task);
    return static_cast<double>(needs.front().bytes + (needs.size() > 1 ? needs[1].bytes : 0));
  };
  // The reach of a row, its place in three arrays of an index and among those around near rows, and its packed bytes.
  constexpr double kRowBytes = 1 + 4 * 8;
  EXPECT_GE(bytes(more) - bytes(fewer), (kMore - kFewer) * kRowBytes + packed(more) - packed(fewer));
}

// All rows are counted; where some are left, all are looked through for near ones and for far ones, or for all.
TEST(Polls, RowsThatAreLeft) {
  const std::vector<float> rows = polled_rows(kManyRows, 8);
  const Context ctx = polled_context();
  Searched searched(ctx, TableView(rows.data(), kManyRows, 8), 1);
  const cpu::TreeKeys keys(ctx, searched.task, searched.cpu_tree());
  cpu::LeftRows left(ctx, searched.task, searched.cpu_tree(), keys, false);
  const auto polls = [&] { return polls_of([&] { left.search(searched.result, [](double) {}); }); };
  EXPECT_EQ(polls(), kManyRows / kBetweenLooks);
}

TEST(LeftRows, LeavesWithinReachAreTakenAsPanels) {
  const std::vector<double> rows = clouds_and_noise(8, 0);
  const Context ctx = Context::cpu({.threads = 2});
  const Searched searched(ctx, TableView(rows.data(), kCloudRows, 8), 3);
  const cpu::Tree& tree = searched.cpu_tree();
  const cpu::TreeKeys keys(ctx, searched.task, tree);
  const std::vector<std::int64_t>& order = tree.shape().order;
  for (const double limit : {0.0, 1.0, 9.0}) {
    std::vector<cpu::RowRun> runs;
    for (const std::int64_t row : {std::int64_t{5}, std::int64_t{7}, kCloudRows - 1}) {
      const std::vector<double> at(rows.begin() + row * 8, rows.begin() + row * 8 + 8);
      runs.push_back({at, at, limit});
    }
    std::vector<std::int64_t> places;
    take_leaves(ctx, tree, keys, runs, 16, places);
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
    EXPECT_LT(std::ssize(places), kCloudRows);
    for (std::size_t i = 0; i < places.size(); ++i) {  // whole panels
      const bool begins = i == 0 || places[i - 1] != places[i] - 1;
      const bool ends = i + 1 == places.size() || places[i + 1] != places[i] + 1;
      EXPECT_TRUE(!begins || places[i] % 16 == 0);
      EXPECT_TRUE(!ends || places[i] % 16 == 15 || places[i] == kCloudRows - 1);
    }
    for (std::int64_t place = 0; place < kCloudRows; ++place) {
      const double* const y = rows.data() + order[static_cast<std::size_t>(place)] * 8;
      const bool within = std::any_of(runs.begin(), runs.end(), [&](const cpu::RowRun& run) {
        return core::euclidean_key(run.low.data(), y, 8) <= limit;
      });
      EXPECT_TRUE(!within || std::binary_search(places.begin(), places.end(), place)) << place;
    }
  }
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

TEST(Polls, LeavesWithinReach) {
  const std::vector<double> rows = clouds_and_noise(8, 0);
  const Context ctx = polled_context();
  const Searched searched(ctx, TableView(rows.data(), kCloudRows, 8), 3);
  const cpu::Tree& tree = searched.cpu_tree();
  const cpu::TreeKeys keys(ctx, searched.task, tree);
  const std::vector<double> at(rows.begin(), rows.begin() + 8);
  const cpu::RowRun run{at, at, std::numeric_limits<double>::max()};
  std::vector<std::int64_t> places;
  EXPECT_GE(polls_of([&] { take_leaves(ctx, tree, keys, {&run, 1}, 16, places); }), tree.nodes());
  std::vector<std::int64_t> all(kCloudRows);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(places, all);
}

}  // namespace
}  // namespace vicinal
