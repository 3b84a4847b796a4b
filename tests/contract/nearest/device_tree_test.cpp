// Trees on a device: lists of every length, ties without end, tables and answers of every size, indexes that move.
// Compared with the CPU, which the other tests compare with the reference.
// fake device, sanitized: -*

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "data.hpp"
#include "device_check.hpp"
#include "device_memory.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

class CudaTree : public DeviceTest {};

TEST_F(CudaTree, ListsOfEveryLength) {
  const Shape shape = {9001, 3, 77};
  for (const Family family : {Family::gaussian, Family::grid, Family::mostly_duplicates, Family::constant}) {
    const Rows rows = make_rows(family, shape, 21);
    const TableView table(rows.table.data(), shape.n, shape.d);
    const TableView queries(rows.queries.data(), shape.m, shape.d);
    const Index here(cpu(), table);
    const Index there(cuda(), table, {.tree = true});
    for (const std::int64_t k : {1, 2, 31, 32, 33, 63, 64, 65, 500, 1024, 2048}) {
      if (is_fake() && k > 64) continue;
      const KnnOptions options = {.k = k, .method = Method::kdtree};
      const std::string what = std::string(name_of(family)) + " k=" + std::to_string(k);
      const NeighborGraph got = knn(cuda(), there, queries, options);
      EXPECT_EQ(got.plan.method, Method::kdtree);
      EXPECT_GT(got.plan.device_memory, 0U);
      expect_same(got, knn(cpu(), here, queries, options), what);
      if (k == 33) expect_same(knn(cuda(), there, options), knn(cpu(), here, options), what + " within itself");
    }
  }
}

/// Heights of one, two and three levels, and sizes around their edges.
TEST_F(CudaTree, TablesOfEverySize) {
  for (const std::int64_t n : {1, 31, 32, 33, 63, 65, 1023, 1024, 1025, 2047, 2049, 32767, 32768, 32769, 70000}) {
    for (const std::int64_t d : {1, 2, 8, 16}) {
      if (is_fake() && n > 3000 && d > 1) continue;
      const Rows rows = make_rows(d == 2 ? Family::integer_ties : Family::gaussian, {n, d, 300}, 22);
      const TableView table(rows.table.data(), n, d);
      const TableView queries(rows.queries.data(), 300, d);
      const KnnOptions options = {
          .k = std::min<std::int64_t>(n, 10), .metric = Metric::manhattan, .method = Method::kdtree};
      expect_same(knn(cuda(), table, queries, options), knn(cpu(), table, queries, options),
                  "n=" + std::to_string(n) + " d=" + std::to_string(d));
    }
  }
}

/// Rows among themselves are taken 32 at a time where they have up to 8 columns and 32 neighbors.
TEST_F(CudaTree, RowsAmongThemselvesOfEveryWidth) {
  std::uint64_t turn = 0;
  for (const Family family : {Family::gaussian, Family::grid, Family::mostly_duplicates, Family::constant,
                              Family::clusters_1e3, Family::on_a_line}) {
    for (const std::int64_t d : {1, 2, 3, 4, 5, 6, 7, 8, 9}) {
      for (const std::int64_t n : {2, 31, 33, 63, 1025, 9001}) {
        if (is_fake() && n > 1000 && d > 2) continue;
        const Rows rows = make_rows(family, {n, d, 1}, 29 + turn);
        const std::vector<float> narrow(rows.table.begin(), rows.table.end());
        const bool is_narrow = ++turn % 2 == 0;
        const TableView table = is_narrow ? TableView(narrow.data(), n, d) : TableView(rows.table.data(), n, d);
        std::vector<std::uint64_t> filter;
        if (turn % 3 == 0) {
          filter.assign(static_cast<std::size_t>((n + 63) / 64), 0xeeeeeeeeeeeeeeee);
        }
        std::vector<std::int64_t> exclude;
        exclude.reserve(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; turn % 5 == 0 && i < n; ++i) exclude.push_back((i * 7 + 1) % n);
        const Index here(cpu(), table);
        const Index there(cuda(), table, {.tree = true});
        for (const std::int64_t k : {1, 2, 15, 16, 17, 31, 32, 33}) {
          if (k > n / 2 - 2) continue;
          const KnnOptions options = {.k = k,
                                      .metric = turn % 4 < 2 ? Metric::euclidean : Metric::sqeuclidean,
                                      .method = Method::kdtree,
                                      .filter = filter,
                                      .exclude = exclude};
          expect_same(knn(cuda(), there, options), knn(cpu(), here, options),
                      std::string(name_of(family)) + " n=" + std::to_string(n) + " d=" + std::to_string(d) +
                          " k=" + std::to_string(k));
        }
      }
    }
  }
}

TEST_F(CudaTree, LittleMemoryAndManyNeighbors) {
  const std::int64_t n = is_fake() ? 3000 : 30000;
  const Rows rows = make_rows(Family::clusters_1e3, {n, 3, 1}, 23);
  const TableView table(rows.table.data(), n, 3);
  const Index here(cpu(), table);
  const Context ctx = small(24);
  const Index there(ctx, table);
  const KnnOptions options = {.k = 40, .method = Method::kdtree};
  const NeighborGraph wanted = knn(cpu(), here, options);
  expect_same(knn(ctx, there, options), wanted, "in groups");
  const KnnOptions fewer = {.k = 12, .method = Method::kdtree};
  expect_same(knn(ctx, there, fewer), knn(cpu(), here, fewer), "in groups of 32 that the memory cuts");
  EXPECT_LE(knn(ctx, there, options).plan.device_memory, 24 * kMegabyte);
  const double r = wanted.distances[39];
  const RadiusOptions within = {.radius = r, .method = Method::kdtree};
  expect_same(radius(ctx, there, within), radius(cpu(), here, within), "radius");
  EXPECT_EQ(count(ctx, there, within).counts, count(cpu(), here, within).counts);
  const TableView few = table.slice(0, 200);
  const RadiusOptions all = {.radius = 1e6, .method = Method::kdtree};
  expect_same(radius(ctx, there, few, all), radius(cpu(), here, few, all), "everything");
  try {
    (void)knn(Context::cuda({.device_memory_limit = 100000}), table, options);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
  }
}

TEST_F(CudaTree, AnIndexWithATreeMovesBetweenProcessorAndDevice) {
  const Rows rows = make_rows(Family::mostly_duplicates, {5000, 4, 60}, 24);
  const TableView table(rows.table.data(), 5000, 4);
  const TableView queries(rows.queries.data(), 60, 4);
  const KnnOptions options = {.k = 12, .method = Method::kdtree};
  const NeighborGraph wanted = knn(cpu(), table, queries, {.k = 12, .method = Method::direct});
  const auto path =
      std::filesystem::temp_directory_path() / ("vicinal-cuda-tree-" + std::to_string(getpid()) + ".index");
  const Index here(cpu(), table, {.tree = true});  // which groups equal rows
  const Index there(cuda(), table, {.tree = true});
  const Index both(cpu(), table);
  expect_same(knn(cuda(), both, queries, options), wanted, "of groups, there");
  for (const auto& [index, ctx] : {std::pair(&here, &cpu()), std::pair(&there, &cuda()), std::pair(&both, &cuda())}) {
    expect_same(knn(cuda(), *index, queries, options), wanted, "there");
    index->save(*ctx, path);
    expect_same(knn(cpu(), *index, queries, options), wanted, "here");
    const Index loaded_here = Index::load(cpu(), path);
    expect_same(knn(cpu(), loaded_here, queries, options), wanted, "loaded here");
    expect_same(knn(cuda(), loaded_here, queries, options), wanted, "loaded here, asked there");
    const Index loaded_there = Index::load(cuda(), path);
    expect_same(knn(cuda(), loaded_there, queries, options), wanted, "loaded there");
    expect_same(knn(cpu(), loaded_there, queries, options), wanted, "loaded there, asked here");
  }
  std::filesystem::remove(path);
}

TEST_F(CudaTree, OfTablesAndQueriesInDeviceMemory) {
  const Rows rows = make_rows(Family::on_a_line, {20000, 5, 400}, 25);
  const DeviceArray<double> device_table(rows.table);
  const DeviceArray<double> device_queries(rows.queries);
  const TableView table(rows.table.data(), 20000, 5);
  const TableView queries(rows.queries.data(), 400, 5);
  const TableView there(device_table.data(), DType::float64, 20000, 5, 5, 1, Memory::cuda);
  const TableView asked(device_queries.data(), DType::float64, 400, 5, 5, 1, Memory::cuda);
  for (const Metric metric : {Metric::euclidean, Metric::chebyshev}) {
    const KnnOptions options = {.k = 9, .metric = metric, .method = Method::kdtree};
    expect_same(knn(cuda(), there, asked, options), knn(cpu(), table, queries, options), "in the device's memory");
    // Every other row, backwards.
    const TableView strided(rows.table.data() + 4, DType::float64, 10000, 5, 10, -1);
    const TableView strided_there(device_table.data() + 4, DType::float64, 10000, 5, 10, -1, Memory::cuda);
    expect_same(knn(cuda(), strided_there, asked, options), knn(cpu(), strided, queries, options), "strided");
    // The planner cannot read such rows itself.
    expect_same(knn(cuda(), there, asked, {.k = 9, .metric = metric}),
                knn(cpu(), table, queries, {.k = 9, .metric = metric}), "automatic");
  }
}

/// Two thin curves: the squared distances of neighbors are far below 1e-3, and most boxes are long and flat.
TEST_F(CudaTree, AMillionRowsOnTwoMoons) {
  if (is_fake()) GTEST_SKIP() << "too many rows for it";
  constexpr std::int64_t kRows = 1000000;
  constexpr std::int64_t kAsked = 2000;
  const Generated moons = generate(cpu(), {.shape = vicinal::Shape::moons, .rows = kRows, .noise = 1e-4, .seed = 26});
  const TableView table(moons.points.data(), kRows, 2);
  constexpr std::int64_t kStep = kRows / kAsked;
  const TableView sample(moons.points.data(), DType::float64, kAsked, 2, 2 * kStep);
  std::vector<std::int64_t> own;
  for (std::int64_t i = 0; i < kAsked; ++i) own.push_back(i * kStep);
  for (const std::int64_t k : {10, 100}) {
    const KnnOptions options = {.k = k, .metric = Metric::sqeuclidean, .method = Method::kdtree, .exclude = own};
    const NeighborGraph wanted = knn(cpu(), table, sample, options);
    for (const double distance : wanted.distances) EXPECT_LT(distance, 1e-3);
    const Index index(cuda(), table, {.tree = true});
    expect_same(knn(cuda(), index, sample, options), wanted, "a sample");
    if (k > 10) continue;
    const NeighborGraph all = knn(cuda(), index, {.k = k, .metric = Metric::sqeuclidean, .method = Method::kdtree});
    std::printf("1,000,000 rows among themselves, k = 10: %.4f s, %.1f rows a query\n", all.stats.search_seconds,
                static_cast<double>(all.stats.survivors) / kRows);
    for (std::int64_t i = 0; i < kAsked; ++i) {
      const auto ids = all.ids_of(own[static_cast<std::size_t>(i)]);
      const auto wanted_ids = wanted.ids_of(i);
      ASSERT_TRUE(std::equal(ids.begin(), ids.end(), wanted_ids.begin(), wanted_ids.end())) << i;
    }
    const Plan plan = plan_knn(cuda(), table, nullptr, {.k = k});
    std::printf("automatic: %s, because %s\n", std::string(name_of(plan.method)).c_str(), plan.reason.c_str());
  }
}

TEST_F(CudaTree, AKeyThatOverflowsIsNamed) {
  Rows rows = make_rows(Family::gaussian, {3000, 3, 40}, 27);
  rows.table[3 * 1234 + 1] = 1e200;
  const TableView table(rows.table.data(), 3000, 3);
  const TableView queries(rows.queries.data(), 40, 3);
  try {
    (void)knn(cuda(), table, queries, {.k = 3, .method = Method::kdtree});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("1234"), std::string::npos) << error.what();
  }
  // Left out, it is nobody's neighbor.
  std::vector<std::uint64_t> filter(static_cast<std::size_t>((3000 + 63) / 64), ~std::uint64_t{0});
  filter[1234 / 64] &= ~(std::uint64_t{1} << (1234 % 64));
  const KnnOptions options = {.k = 3, .method = Method::kdtree, .filter = filter};
  expect_same(knn(cuda(), table, queries, options), knn(cpu(), table, queries, options), "filtered");
  const RadiusOptions within = {.radius = 1, .method = Method::kdtree, .filter = filter};
  expect_same(radius(cuda(), table, queries, within), radius(cpu(), table, queries, within), "filtered radius");
}

/// Every query meets every row: a launch of minutes, unless it is told to stop.
TEST_F(CudaTree, CancelStopsASearchSoon) {
  if (is_fake()) GTEST_SKIP() << "too many rows for it";
  constexpr std::int64_t kRows = 1000000;
  const Rows rows = make_rows(Family::gaussian, {kRows, 8, 1}, 28);
  const TableView table(rows.table.data(), kRows, 8);
  const CancelToken token;
  const Context ctx = small(4000, token);
  const Index index(ctx, table, {.tree = true});
  std::atomic<std::chrono::steady_clock::rep> cancelled_at{0};
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    cancelled_at = std::chrono::steady_clock::now().time_since_epoch().count();
    token.cancel();
  });
  try {
    (void)count(ctx, index, {.radius = 1e6, .metric = Metric::minkowski, .p = 2.5, .method = Method::kdtree});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
  }
  const auto end = std::chrono::steady_clock::now().time_since_epoch().count();
  canceller.join();
  std::printf("a cancel took %.1f ms\n", static_cast<double>(end - cancelled_at) * 1e-6);
}

}  // namespace
}  // namespace vicinal::contract
