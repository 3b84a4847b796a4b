// Clause 26: parts are searched and merged in the memory that was planned, in blocks, with progress, until cancelled.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "data.hpp"
#include "device_check.hpp"
#include "parts_check.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

/// Two shards of random rows.
class LargeParts : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 3001;
  static constexpr std::int64_t kCols = 6;

  [[nodiscard]] TableView table() const { return {rows_.table.data(), kRows, kCols}; }
  [[nodiscard]] std::vector<NeighborPart> knn_parts() const {
    std::vector<NeighborPart> parts;
    for (const auto& [begin, end] : {std::pair(1501, 3001), std::pair(0, 1501)}) {
      parts.push_back(knn_part(ctx_, table().slice(begin, end), table(), {.k = 20}, {.first_id = begin, .self = true}));
    }
    return parts;
  }
  [[nodiscard]] std::vector<NeighborPart> radius_parts() const {
    std::vector<NeighborPart> parts;
    for (const auto& [begin, end] : {std::pair(1501, 3001), std::pair(0, 1501)}) {
      parts.push_back(
          radius_part(ctx_, table().slice(begin, end), table(), {.radius = 2}, {.first_id = begin, .self = true}));
    }
    return parts;
  }

  Rows rows_ = make_rows(Family::gaussian, {kRows, kCols, 1}, 11);
  Context ctx_ = Context::cpu({.threads = 2});
};

/// The number of bytes that a refusal names, which is enough and no more.
std::uint64_t bytes_needed(const Context& ctx, const std::function<void(const Context&)>& work) {
  std::uint64_t low = 1;
  std::uint64_t high = std::uint64_t{1} << 30;
  while (low + 1 < high) {
    const std::uint64_t middle = (low + high) / 2;
    try {
      work(ctx.with_memory_limit(middle));
      high = middle;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
      low = middle;
    }
  }
  return high;
}

TEST_F(LargeParts, AreMergedInTheMemoryThatIsThere) {
  const auto parts = knn_parts();
  const NeighborGraph whole = knn(ctx_, table(), {.k = 20});
  const NeighborGraph graph = merge(ctx_, parts);
  expect_same(graph, whole, "in memory");
  EXPECT_GE(graph.plan.memory, static_cast<std::uint64_t>(kRows) * 20 * 16);
  refused([&] { merge(ctx_.with_memory_limit(graph.plan.memory - 1), parts); }, ErrorCode::over_memory, "merge needs");
  expect_same(merge(ctx_.with_memory_limit(graph.plan.memory), parts), whole, "in just enough memory");

  // Sources: blocks of some queries, however few fit.
  auto sources = sources_of(parts);
  std::int64_t longest = 0;
  for (PartSource& source : sources) {
    source.read = [read = source.read, &longest](std::int64_t begin, std::int64_t end) {
      longest = std::max(longest, end - begin);
      return read(begin, end);
    };
  }
  const std::uint64_t least = bytes_needed(ctx_, [&](const Context& ctx) { merge(ctx, sources); });
  EXPECT_LT(least, graph.plan.memory + 4096);
  longest = 0;
  expect_same(merge(ctx_.with_memory_limit(least + 40000), sources), whole, "in blocks");
  EXPECT_GT(longest, 1);
  EXPECT_LT(longest, kRows);

  const auto within = radius_parts();
  const NeighborGraph near = radius(ctx_, table(), {.radius = 2});
  expect_same(merge(ctx_, within), near, "within a radius");
  const auto near_sources = sources_of(within);
  NeighborGraph joined;
  joined.offsets = {0};
  std::int64_t blocks = 0;
  const auto take = [&](std::int64_t first, const NeighborGraph& lists) {
    EXPECT_EQ(first, joined.rows);
    const std::int64_t before = joined.offsets.back();
    joined.rows += lists.rows;
    ++blocks;
    joined.ids.insert(joined.ids.end(), lists.ids.begin(), lists.ids.end());
    joined.distances.insert(joined.distances.end(), lists.distances.begin(), lists.distances.end());
    for (std::size_t i = 1; i < lists.offsets.size(); ++i) joined.offsets.push_back(before + lists.offsets[i]);
  };
  const RadiusSummary summary = merge_batches(ctx_.with_memory_limit(300000), near_sources, take);
  expect_same(joined, near, "in batches");
  EXPECT_GT(blocks, 3);
  EXPECT_EQ(summary.neighbors, std::ssize(near.ids));
  EXPECT_EQ(summary.rows, kRows);
  refused([&] { merge_batches(ctx_.with_memory_limit(2000), near_sources, take); }, ErrorCode::over_memory,
          "merge needs");
  refused([&] { merge_batches(ctx_, near_sources, {}); }, ErrorCode::invalid_argument, "take: must be a function");
}

// Lists of some queries are in one part, and those of others in two, whose blocks are larger.
TEST_F(LargeParts, AreRefusedBeforeTheyAreRead) {
  const auto part = [&](std::int64_t begin, std::int64_t end, std::int64_t first_query) {
    return knn_part(ctx_, table().slice(begin, end), table().slice(first_query, first_query + 10), {.k = 20},
                    {.first_id = begin, .first_query = first_query});
  };
  const std::vector<NeighborPart> parts = {part(0, kRows, 0), part(0, 1501, 10), part(1501, kRows, 10)};
  auto sources = sources_of(parts);
  std::int64_t reads = 0;
  for (PartSource& source : sources) {
    source.read = [read = source.read, &reads](std::int64_t begin, std::int64_t end) {
      ++reads;
      return read(begin, end);
    };
  }
  const std::uint64_t least = bytes_needed(ctx_, [&](const Context& ctx) { merge(ctx, sources); });
  expect_same(merge(ctx_.with_memory_limit(least), sources), knn(ctx_, table(), table().slice(0, 20), {.k = 20}),
              "least");
  reads = 0;
  refused([&] { merge(ctx_.with_memory_limit(least - 1), sources); }, ErrorCode::over_memory, "merge needs");
  EXPECT_EQ(reads, 0);
}

TEST_F(LargeParts, ArePlannedAsTheyAreSearched) {
  const PartOptions place = {.first_id = 7, .self = true};
  const TableView queries = table().slice(0, 100);
  for (const std::int64_t k : {5, 2999, 3001, 4000}) {
    const KnnOptions options = {.k = k};
    const std::uint64_t planned = plan_knn_part(ctx_, table(), queries, options, place).memory;
    EXPECT_NO_THROW(knn_part(ctx_.with_memory_limit(planned), table(), queries, options, place)) << k;
    refused([&] { knn_part(ctx_.with_memory_limit(planned / 8), table(), queries, options, place); },
            ErrorCode::over_memory, "needs");
  }
  const RadiusOptions options = {.radius = 1};
  EXPECT_NO_THROW(count_part(ctx_.with_memory_limit(plan_radius_part(ctx_, table(), queries, options, place).memory),
                             table(), queries, options, place));
}

TEST_F(LargeParts, OneShardFindsWhatTheTableDoes) {
  const NeighborPart part = knn_part(ctx_, table(), table(), {.k = 20}, {.self = true});
  EXPECT_TRUE(part.offsets.empty());
  expect_same(merge(ctx_, std::span(&part, 1)), knn(ctx_, table(), {.k = 20}), "one shard");
}

TEST_F(LargeParts, MergingStopsAndReports) {
  const auto parts = knn_parts();
  const auto sources = sources_of(parts);
  CancelToken token;
  double last = 0;
  const Context ctx = Context::cpu({.threads = 2,
                                    .progress =
                                        [&](std::string_view stage, double fraction) {
                                          EXPECT_EQ(stage, "merge");
                                          EXPECT_GE(fraction, last);
                                          last = fraction;
                                        },
                                    .cancel = token});
  merge(ctx, parts);
  EXPECT_EQ(last, 1);
  last = 0;
  merge(ctx, sources);
  EXPECT_EQ(last, 1);
  token.cancel();
  refused([&] { merge(ctx, parts); }, ErrorCode::cancelled, "");
  refused([&] { merge(ctx, sources); }, ErrorCode::cancelled, "");
  refused([&] { merge_counts(ctx, std::vector{count_part(ctx_, table(), table(), {.radius = 1}, {})}); },
          ErrorCode::cancelled, "");
  refused([&] { knn_part(ctx, table(), table(), {.k = 4000}, {}); }, ErrorCode::cancelled, "");
}

}  // namespace
}  // namespace vicinal::contract
