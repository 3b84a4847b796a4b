// DBSCAN on a CUDA device beside the CPU's, on tables that are larger than those that the reference ranks: the same
// labels and core rows, whatever the metric, the type of values, the method and the weights.
// fake device: *
// fake device, threads: DbscanOnDevice.StopsWhenItIsCancelled
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "data.hpp"
#include "device_check.hpp"
#include "refused.hpp"
#include "vicinal/dbscan.hpp"
#include "vicinal/generate.hpp"

namespace vicinal::contract {
namespace {

class DbscanOnDevice : public DeviceTest {
 protected:
  /// A device has more rows than one that is not there.
  static std::int64_t rows(std::int64_t real) {
    return is_fake() ? std::min<std::int64_t>(real, sanitized<std::int64_t>(1500, 300)) : real;
  }
  static std::vector<double> blobs(std::int64_t n, std::int64_t d) {
    return generate(cpu(), {.shape = vicinal::Shape::blobs, .rows = n, .cols = d, .centers = 40, .noise = 0.8}).points;
  }
  static void expect_the_cpus(const TableView& table, const DbscanOptions& options, const std::string& what,
                              const std::vector<Method>& methods) {
    const Dbscan wanted = dbscan(cpu(), table, options);
    for (const Method method : methods) {
      DbscanOptions by = options;
      by.method = method;
      const Dbscan got = dbscan(cuda(), table, by);
      const std::string with = what + ", " + std::string(name_of(method));
      EXPECT_EQ(got.core, wanted.core) << with;
      EXPECT_EQ(got.labels, wanted.labels) << with;
      EXPECT_EQ(got.clusters, wanted.clusters) << with;
      EXPECT_EQ(got.sizes, wanted.sizes) << with;
    }
  }
};

TEST_F(DbscanOnDevice, FindsTheCpusClusters) {
  const std::int64_t n = rows(40000);
  const std::vector<double> points = blobs(n, 3);
  const std::vector<float> narrow = singles(points);
  std::vector<double> weights;
  weights.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) weights.push_back(std::exp(static_cast<double>(i * 37 % 101) * 0.3 - 15));
  std::vector<double> mixed = weights;
  for (std::size_t i = 0; i < mixed.size(); i += 7) mixed[i] = -0.25;
  for (const double eps : {1e-9, 0.05, 0.2, 0.7, 3.0, 1e6}) {
    for (const std::int64_t min_samples : {std::int64_t{1}, std::int64_t{4}, std::int64_t{60}, n / 2, n + 1}) {
      const std::string what = "eps " + std::to_string(eps) + ", min_samples " + std::to_string(min_samples);
      const std::vector<Method> methods = {Method::automatic, Method::kdtree, Method::direct};
      expect_the_cpus(TableView(narrow.data(), n, 3), {.eps = eps, .min_samples = min_samples}, what, methods);
      if (min_samples > 60 || eps > 1) continue;  // on the CPU each pair would be weighed
      const DbscanOptions weighted = {.eps = eps, .min_samples = min_samples, .weights = weights};
      expect_the_cpus(TableView(points.data(), n, 3), weighted, what + ", weights", methods);
      const DbscanOptions shrinking = {.eps = eps, .min_samples = min_samples, .weights = mixed};
      expect_the_cpus(TableView(points.data(), n, 3), shrinking, what + ", weights below 0", methods);
      if (HasFailure()) return;
    }
  }
}

TEST_F(DbscanOnDevice, ByEachMetricAndMethod) {
  const std::int64_t n = rows(6000);
  const std::vector<double> points = blobs(n, 9);
  const TableView table(points.data(), n, 9);
  struct Case {
    Metric metric;
    double eps;
  };
  for (const auto& [metric, eps] :
       {Case{Metric::euclidean, 2.0}, Case{Metric::sqeuclidean, 4.0}, Case{Metric::inner_product, -150.0},
        Case{Metric::cosine, 0.002}, Case{Metric::manhattan, 5.0}, Case{Metric::chebyshev, 1.0},
        Case{Metric::minkowski, 1.7}, Case{Metric::hamming, 0.9}}) {
    std::vector<Method> methods = {Method::automatic, Method::direct};
    for (const Method method : {Method::fused, Method::kdtree}) {
      if (serves(method, metric)) methods.push_back(method);
    }
    expect_the_cpus(table, {.eps = eps, .min_samples = 6, .metric = metric, .p = 3}, std::string(name_of(metric)),
                    methods);
  }
}

TEST_F(DbscanOnDevice, OfEqualRowsByTheThousand) {
  const std::int64_t n = rows(30000);
  std::vector<std::uint8_t> grid;
  grid.reserve(static_cast<std::size_t>(2 * n));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t cell = i % 3 == 0 ? 5 : i * 7919 % 4096;
    grid.push_back(static_cast<std::uint8_t>(cell % 64));
    grid.push_back(static_cast<std::uint8_t>(cell / 64));
  }
  const TableView table(grid.data(), n, 2);
  for (const double eps : {0.5, std::nextafter(1.0, 0.0), 1.0, std::nextafter(std::sqrt(2.0), 0.0), std::sqrt(2.0)}) {
    for (const std::int64_t min_samples : {2, 8, 30}) {
      expect_the_cpus(table, {.eps = eps, .min_samples = min_samples}, std::to_string(eps),
                      {Method::direct, Method::kdtree});
    }
    if (HasFailure()) return;
  }
}

// Labels do not depend on the order in which warps run.
TEST_F(DbscanOnDevice, RepeatsItself) {
  const std::int64_t n = rows(20000);
  const std::vector<double> points = blobs(n, 2);
  const TableView table(points.data(), n, 2);
  const DbscanOptions options = {.eps = 0.1, .min_samples = 5, .method = Method::kdtree};
  const Dbscan first = dbscan(cuda(), table, options);
  for (int turn = 0; turn < 5; ++turn) {
    const Dbscan again = dbscan(cuda(), table, options);
    EXPECT_EQ(again.labels, first.labels);
    EXPECT_EQ(again.core, first.core);
  }
}

TEST_F(DbscanOnDevice, MemoryDoesNotDependOnEps) {
  const std::int64_t n = rows(50000);
  const std::vector<double> points = blobs(n, 3);
  const TableView table(points.data(), n, 3);
  for (const Method method : {Method::direct, Method::kdtree}) {
    const Plan plan = plan_dbscan(cuda(), table, {.eps = 0.1, .method = method});
    EXPECT_EQ(plan_dbscan(cuda(), table, {.eps = 1e6, .method = method}).device_memory, plan.device_memory);
    EXPECT_GT(plan.device_memory, 0U);
  }
  if (is_fake()) return;
  // All rows are neighbors of each other: ids and distances of all pairs would take 40 GB.
  const Context small = DeviceTest::small(64);
  for (const Method method : {Method::direct, Method::kdtree}) {
    EXPECT_EQ(dbscan(small, table, {.eps = 1e6, .method = method}).clusters, 1);
  }
}

TEST_F(DbscanOnDevice, RefusesATableThatDoesNotStay) {
  const std::int64_t n = 60000;
  const std::vector<double> points(static_cast<std::size_t>(n * 16), 1.0);
  const Context small = DeviceTest::small(4);
  for (const Method method : {Method::direct, Method::fused}) {
    refused([&] { dbscan(small, TableView(points.data(), n, 16), {.method = method}); }, ErrorCode::over_memory,
            "dbscan");
  }
}

TEST_F(DbscanOnDevice, StopsWhenItIsCancelled) {
  const std::int64_t n = rows(50000);
  const std::vector<double> points = blobs(n, 3);
  const TableView table(points.data(), n, 3);
  for (const std::string_view stage : {"core rows", "clusters", "border rows"}) {
    CancelToken token;
    const auto progress = [&](std::string_view now, double) {
      if (now == stage) token.cancel();
    };
    const Context ctx = DeviceTest::small(256, token, progress);
    refused([&] { dbscan(ctx, table, {.eps = 0.2, .min_samples = 5, .method = Method::kdtree}); }, ErrorCode::cancelled,
            "");
  }
}

}  // namespace
}  // namespace vicinal::contract
