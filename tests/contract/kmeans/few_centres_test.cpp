// k-means with few centers of few columns, which a device screens in its own way, against the reference, bit for bit
// (contract clause 12).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "contexts.hpp"
#include "data.hpp"
#include "kmeans_check.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/kmeans_steps.hpp"

namespace vicinal::contract {
namespace {

// On both sides of the limits: steps of 16 columns, five of which are spare, and pairs of eight centers.
TEST(KMeansFewCentres, EqualTheReferenceWhereStepsBegin) {
  constexpr std::pair<std::int64_t, std::int64_t> kShapes[] = {{1, 64},  {11, 63}, {12, 17}, {18, 64}, {27, 48},
                                                               {28, 33}, {41, 23}, {43, 64}, {44, 16}, {59, 64},
                                                               {59, 15}, {60, 64}, {18, 65}};
  std::uint64_t turn = 0;
  for (const auto& [d, clusters] : kShapes) {
    const Family family = turn % 3 == 2 ? Family::integer_ties : Family::gaussian;
    const Stored stored(make_rows(family, {1100, d, 1}, turn).table, d, DType::float32, Layout::contiguous);
    KMeansOptions options;
    options.clusters = clusters;
    options.init = KMeansInit::random;
    options.seed = turn;
    options.max_iterations = 6;
    options.tolerance = 0;
    check_kmeans(stored.view(), options, text(options) + " of " + std::to_string(d) + " columns", turn++);
    if (HasFailure()) return;
  }
}

// Each row is in the middle of two centers, so that no screen decides it. On a device they are more than a block lets
// wait.
TEST(KMeansFewCentres, RowsInTheMiddleGoToTheSmallerCenter) {
  constexpr std::int64_t kRows = 300'000;
  constexpr std::int64_t kColumns = 18;
  constexpr std::int64_t kPairs = 32;
  const auto put = [](std::vector<float>& to, std::int64_t pair, float first) {
    for (std::int64_t j = 0; j < kColumns; ++j) {
      to.push_back(j == 0 ? first : j == 1 + pair % 17 ? static_cast<float>(8 + pair / 17 * 8) : 0.0F);
    }
  };
  std::vector<float> rows;
  rows.reserve(static_cast<std::size_t>(kRows * kColumns));
  for (std::int64_t i = 0; i < kRows; ++i) put(rows, i % kPairs, 0);
  std::vector<float> centres;
  for (std::int64_t pair = 0; pair < kPairs; ++pair) {
    put(centres, pair, 1);
    put(centres, pair, -1);
  }
  const TableView table(rows.data(), kRows, kColumns);
  for (const Context& ctx : contexts(1)) {
    KMeansSteps steps(ctx, table, {.clusters = 2 * kPairs});
    steps.start(TableView(centres.data(), 2 * kPairs, kColumns));
    steps.assign();
    const auto labels = steps.labels();
    for (std::int64_t i = 0; i < kRows; ++i) {
      ASSERT_EQ(labels[static_cast<std::size_t>(i)], 2 * (i % kPairs)) << ctx.device() << ", row " << i;
    }
  }
}

}  // namespace
}  // namespace vicinal::contract
