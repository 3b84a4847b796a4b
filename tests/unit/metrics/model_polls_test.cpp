// Cancel polls of silhouettes and principal components, counted on one thread. The expected numbers are those of the
// loops.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "counted_polls.hpp"
#include "vicinal/error.hpp"
#include "vicinal/metrics.hpp"
#include "vicinal/pca.hpp"

namespace vicinal {
namespace {

// Labels are checked before anything is searched; another labeling is wrong, so that nothing is.
TEST(Polls, LabelsOfSilhouettes) {
  const std::vector<float> rows = polled_rows(kManyRows, 1);
  const TableView table(rows.data(), kManyRows, 1);
  const std::vector<std::int32_t> labels(rows.size());
  const Context ctx = polled_context();
  const auto polls = [&](const std::vector<Labeling>& labelings) {
    return polls_of([&] { EXPECT_THROW((void)silhouette_scores(ctx, table, labelings), Error); });
  };
  EXPECT_GE(polls({{labels, 1}, {{}, 1}}), polls({{{}, 1}}) + 2);
}

// Of each row its silhouette in each labeling.
TEST(Polls, SilhouettesOfLabelings) {
  constexpr std::int64_t kRows = 64;
  const std::vector<float> rows = polled_rows(kRows, 1);
  const TableView table(rows.data(), kRows, 1);
  std::vector<std::int32_t> labels(rows.size());
  labels[0] = 1;
  const Context ctx = polled_context();
  const auto polls = [&](std::size_t labelings) {
    const std::vector<Labeling> equal(labelings, {labels, 2});
    return polls_of([&] { (void)silhouette_scores(ctx, table, equal); });
  };
  EXPECT_GE(polls(2), polls(1) + kRows);
}

// The rows are read, centered and scaled in blocks. Each iteration makes the vectors orthogonal, multiplies each of
// them by all blocks, turns a matrix of them by 30 sweeps over its rows, and turns the vectors.
TEST(Polls, PrincipalComponents) {
  constexpr std::int64_t kColumns = 3;
  constexpr std::int64_t kRows = 2 * (kBetweenLooks / kColumns);
  constexpr std::int64_t kBlocks = 2;
  const std::vector<float> rows = polled_rows(kRows, kColumns);
  const Context ctx = polled_context();
  std::int64_t iterations = 0;
  const std::int64_t polls = polls_of([&] {
    iterations = pca(ctx, TableView(rows.data(), kRows, kColumns), {.components = 1, .max_iterations = 2}).iterations;
  });
  const std::int64_t tasks = of_tasks(ctx, kColumns);
  EXPECT_GE(polls, 3 * kBlocks + iterations * (kColumns + tasks + kColumns * kBlocks + 30 * kColumns + tasks));
}

}  // namespace
}  // namespace vicinal
