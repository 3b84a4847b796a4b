// Cancel polls of memberships, of prediction and of validity, counted on one thread. The expected numbers are those of
// the loops.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "counted_polls.hpp"
#include "ops/density/branches.hpp"
#include "ops/density/reaching.hpp"
#include "vicinal/error.hpp"
#include "vicinal/hdbscan_model.hpp"
#include "vicinal/memberships.hpp"
#include "vicinal/validity.hpp"

namespace vicinal {
namespace {

// Each cluster is a part of the one before it.
TEST(Polls, BranchesOfATree) {
  constexpr std::int64_t kClusters = kBetweenLooks + 1;
  CondensedTree tree;
  tree.parents.resize(static_cast<std::size_t>(kClusters));
  std::iota(tree.parents.begin(), tree.parents.end(), -1);
  tree.births.assign(tree.parents.size(), 1);
  tree.labels.assign(tree.parents.size(), -1);
  const Context ctx = polled_context();
  EXPECT_EQ(polls_of([&] { const ops::Branches branches(ctx, tree, 0); }), 1);
}

// After the rows are found that new ones reach, these get their labels.
TEST(Polls, LabelsOfNewRows) {
  const std::vector<float> rows = polled_rows(kBetweenLooks, 1);
  const Context ctx = polled_context();
  const TableView queries(rows.data(), kBetweenLooks, 1);
  const Index index(ctx, queries.slice(0, 20), {.tree = true, .packed = Packing::never});  // for both calls
  const Hdbscan fitted = hdbscan(ctx, index, {.min_cluster_size = 2});
  const std::int64_t reached = polls_of([&] { (void)ops::reach_rows(ctx, index, fitted, queries, 0); });
  EXPECT_GE(polls_of([&] { (void)predict(ctx, index, fitted, queries); }), reached + 1);
}

// Labels are checked, rows too, in ranges; labels are counted, and rows placed, of which there are none here.
TEST(Polls, LabelsThatAreRated) {
  const std::vector<float> rows = polled_rows(kManyRows, 1);
  const TableView table(rows.data(), kManyRows, 1);
  const Context ctx = polled_context();
  std::vector<std::int64_t> labels(rows.size(), -1);
  constexpr std::int64_t kRanges = 19;  // of 7,281 rows
  EXPECT_EQ(polls_of([&] { (void)validity(ctx, table, labels); }), 2 + of_tasks(ctx, kRanges) + 2 + 2 + 1);
  labels.back() = kManyRows;
  EXPECT_EQ(polls_of([&] { EXPECT_THROW((void)validity(ctx, table, labels), Error); }), 2);
}

// Rows are checked and placed; of each cluster the core distances are found, row by row, its tree grows edge by edge,
// and each row is compared with those of others.
TEST(Polls, ClustersThatAreRated) {
  constexpr std::int64_t kRows = 32;  // of a cluster
  const std::vector<float> rows = polled_rows(2 * kRows, 1);
  const Context ctx = polled_context();
  std::vector<std::int64_t> labels(rows.size(), 0);
  for (std::size_t row = 0; row < rows.size(); row += 2) labels[row] = 1;
  EXPECT_EQ(polls_of([&] { (void)validity(ctx, TableView(rows.data(), 2 * kRows, 1), labels); }),
            3 + 2 * ((1 + kRows) + (kRows - 1)) + 1 + 2 * kRows);
}

// 4,096 columns, of which 16 pairs are compared between two looks: in the core distances twice, and then with the rows
// of the other cluster that are inner ones, of which each cluster has one at least.
TEST(Polls, WideRowsThatAreRated) {
  constexpr std::int64_t kRows = 16;  // of a cluster
  const Context ctx = polled_context();
  const std::vector<float> rows = polled_rows(2 * kRows, 4096);
  std::vector<std::int64_t> labels(2 * kRows, 0);
  for (std::size_t row = 0; row < labels.size(); row += 2) labels[row] = 1;
  const auto rating = [&](std::int64_t columns) {
    return polls_of([&] { (void)validity(ctx, TableView(rows.data(), 2 * kRows, columns), labels); });
  };
  const std::int64_t ranges = 3 * (of_tasks(ctx, 2) - 1);
  EXPECT_GE(rating(4096) - rating(1), 2 * kRows * 2 + ranges + 2);
}

// Each row is compared with all exemplars, 16 between two looks.
TEST(Polls, WideRowsAndExemplars) {
  constexpr std::int64_t kRows = 64;
  const Context ctx = polled_context();
  std::vector<float> rows = polled_rows(kRows, 4096);
  for (std::int64_t row = 0; row < kRows; row += 2) rows[static_cast<std::size_t>(row * 4096)] += 100;
  const TableView table(rows.data(), kRows, 4096);
  const Index index(ctx, table);
  const Hdbscan fitted = hdbscan(ctx, index, {.min_cluster_size = 8});
  const auto exemplars = std::int64_t{std::ssize(fitted.exemplars)};
  ASSERT_GE(exemplars, 16);
  EXPECT_GE(polls_of([&] { (void)memberships(ctx, index, fitted); }), of_tasks(ctx, kRows) + kRows * (exemplars / 16));
}

}  // namespace
}  // namespace vicinal
