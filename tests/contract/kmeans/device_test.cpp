// k-means on a device of tables of every number of steps that its screen multiplies in turns, and of rows that keep
// their labels in many columns. Compared with the CPU, which the other tests compare with the reference.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "data.hpp"
#include "device_check.hpp"
#include "kmeans_check.hpp"

namespace vicinal::contract {
namespace {

class CudaKMeans : public DeviceTest {};

void check_on_device(const Context& device, const Context& cpu, Family family, std::int64_t n, std::int64_t d,
                     std::int64_t clusters, int iterations) {
  const auto values = singles(make_rows(family, {n, d, 1}, static_cast<std::uint64_t>(d)).table);
  const TableView table(values.data(), n, d);
  KMeansOptions options;
  options.clusters = clusters;
  options.init = KMeansInit::random;
  options.seed = 3;
  options.max_iterations = iterations;
  options.tolerance = 0;
  options.empty = EmptyClusters::keep;
  expect_same(kmeans(device, table, options), kmeans(cpu, table, options),
              std::string(name_of(family)) + " " + text(options) + " d=" + std::to_string(d));
}

// 16 columns a step, five of which the screen has for itself, and more steps than are multiplied in turns; one tile of
// centers, two, and three of which the last is not whole.
TEST_F(CudaKMeans, CentersOfEveryNumberOfSteps) {
  if (is_fake()) GTEST_SKIP() << "the fake device has no screen";
  for (std::int64_t steps = 1; steps <= 11; ++steps) {
    for (const std::int64_t clusters : {100, 256, 300}) {
      check_on_device(cuda(), cpu(), Family::gaussian, 9001, 16 * steps - 5, clusters, 4);
      if (HasFailure()) return;
    }
  }
}

// The product of a row with its own center is made in pieces of 80 columns.
TEST_F(CudaKMeans, RowsOfManyColumnsThatKeepTheirLabels) {
  if (is_fake()) GTEST_SKIP() << "the fake device has no screen";
  for (const Family family : {Family::gaussian, Family::clusters_1e2}) {
    for (const std::int64_t d : {75, 76, 139, 155}) {
      check_on_device(cuda(), cpu(), family, 9001, d, 4100, 6);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace vicinal::contract
