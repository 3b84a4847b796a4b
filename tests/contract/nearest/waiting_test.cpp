// Few queries of an index with packed rows of whole numbers: keys are computed when the screen's bounds have lowered
// the limits (cpu/nearest/waiting.cpp). All are compared with the keys of every row (Method::direct), which the other
// tests compare with the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "check.hpp"
#include "core/philox.hpp"
#include "data.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

constexpr std::int64_t kWaitingRows = 20'011;
constexpr std::int64_t kWaitingCols = 24;

class WaitingRows : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    const char* const device = getenv("VICINAL_TEST_DEVICE");
    if (device != nullptr && std::string(device) == "cuda") GTEST_SKIP() << "packed rows are the CPU's";
  }
};

/// Whole numbers below `values`.
std::vector<double> whole_rows(std::int64_t rows, std::int64_t values, std::uint64_t stream) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < rows * kWaitingCols; ++i) {
    numbers.push_back(
        std::floor(static_cast<double>(values) * core::philox_uniform(7, stream, static_cast<std::uint64_t>(i))));
  }
  return numbers;
}

TEST_P(WaitingRows, HaveTheNeighborsOfBruteForce) {
  constexpr std::int64_t kQueries = 29;
  for (const std::int64_t values : {256, 100, 3}) {  // with 3, more rows are as near than can wait
    const Stored table(whole_rows(kWaitingRows, values, 1), kWaitingCols, GetParam(), Layout::padded);
    const Stored asked(whole_rows(kQueries, values, 2), kWaitingCols, GetParam(), Layout::contiguous);
    for (const Isa isa : available_isas()) {
      const Context& ctx = context_of(isa, kFewestThreads);
      const Index index(ctx, table.view(), {.packed = Packing::now});
      for (const Metric metric : {Metric::euclidean, Metric::sqeuclidean}) {
        for (const std::int64_t k : {1, 10, 100}) {
          for (const std::int64_t queries : {std::int64_t{1}, std::int64_t{5}, kQueries}) {
            const TableView some = asked.view().slice(0, queries);
            const NeighborGraph found =
                knn(ctx, index, some, {.k = k, .metric = metric, .method = Method::fused, .screen = ScreenType::int8});
            const NeighborGraph wanted =
                knn(ctx, table.view(), some, {.k = k, .metric = metric, .method = Method::direct});
            EXPECT_EQ(found.ids, wanted.ids) << values << " " << k << " " << queries << " " << name_of(isa);
            EXPECT_EQ(found.distances, wanted.distances) << values << " " << k << " " << queries;
            if (values == 256 && k > 1) {
              EXPECT_LE(found.stats.survivors, queries * 5 * k / 4) << "keys";
            }
          }
        }
      }
    }
  }
}

// Of the first blocks one row alone is near: fewer bounds than neighbors are no limit.
TEST_P(WaitingRows, FewAreNearInTheFirstRound) {
  std::vector<double> rows = whole_rows(kWaitingRows, 100, 1);
  for (std::int64_t i = 0; i < 3000 * kWaitingCols; ++i) rows[i] = i < kWaitingCols ? 50 : rows[i] + 150;
  const Stored table(rows, kWaitingCols, GetParam(), Layout::contiguous);
  const Stored asked(std::vector<double>(static_cast<std::size_t>(kWaitingCols), 50), kWaitingCols, GetParam(),
                     Layout::contiguous);
  const Context& ctx = context_of(available_isas().back(), 2);
  const Index index(ctx, table.view(), {.packed = Packing::now});
  const NeighborGraph found =
      knn(ctx, index, asked.view(), {.k = 10, .method = Method::fused, .screen = ScreenType::int8});
  const NeighborGraph wanted = knn(ctx, table.view(), asked.view(), {.k = 10, .method = Method::direct});
  EXPECT_EQ(found.ids, wanted.ids);
  EXPECT_EQ(found.distances, wanted.distances);
}

TEST_P(WaitingRows, NoneIsItsOwnNeighbor) {
  constexpr std::int64_t kSome = 2300;
  const Stored table(whole_rows(kSome, 256, 3), kWaitingCols, GetParam(), Layout::contiguous);
  const Context& ctx = context_of(available_isas().back(), 2);
  const Index index(ctx, table.view(), {.packed = Packing::now});
  for (const std::int64_t k : {1, 3}) {
    const NeighborGraph found = knn(ctx, index, {.k = k, .method = Method::fused, .screen = ScreenType::int8});
    const NeighborGraph wanted = knn(ctx, table.view(), {.k = k, .method = Method::direct});
    EXPECT_EQ(found.ids, wanted.ids) << k;
    EXPECT_EQ(found.distances, wanted.distances) << k;
  }
}

TEST_P(WaitingRows, SameStatisticsForEveryNumberOfThreads) {
  const Stored table(whole_rows(kWaitingRows, 256, 1), kWaitingCols, GetParam(), Layout::contiguous);
  const Stored asked(whole_rows(9, 256, 2), kWaitingCols, GetParam(), Layout::contiguous);
  std::vector<SearchStats> stats;
  for (const int threads : {1, 2, 3, 7}) {
    const Context& ctx = context_of(available_isas().back(), threads);
    const Index index(ctx, table.view(), {.packed = Packing::now});
    stats.push_back(knn(ctx, index, asked.view(), {.k = 7, .method = Method::fused, .screen = ScreenType::int8}).stats);
    EXPECT_EQ(stats.back().survivors, stats.front().survivors) << threads;
    EXPECT_EQ(stats.back().uncertified, stats.front().uncertified) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Search, WaitingRows, ::testing::Values(DType::uint8, DType::float32),
                         [](const auto& of) { return std::string(name_of(of.param)); });

}  // namespace
}  // namespace vicinal::contract
