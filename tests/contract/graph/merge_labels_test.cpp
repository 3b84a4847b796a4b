// merge_labels against a search of the whole graph: edges dealt out to shards in any way (contract clause 16).
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "contexts.hpp"
#include "ranks.hpp"
#include "refused.hpp"
#include "vicinal/shards.hpp"

namespace vicinal::contract {
namespace {

using Edges = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// The smallest number of each vertex's group, found by going along the edges until nothing changes.
std::vector<std::int64_t> smallest_of_groups(std::int64_t n, const Edges& edges) {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(n));
  for (std::int64_t v = 0; v < n; ++v) labels[static_cast<std::size_t>(v)] = v;
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [a, b] : edges) {
      std::int64_t& x = labels[static_cast<std::size_t>(a)];
      std::int64_t& y = labels[static_cast<std::size_t>(b)];
      changed = changed || x != y;
      x = y = std::min(x, y);
    }
  }
  return labels;
}

TEST(MergeLabels, GiveTheComponentsOfTheWholeGraph) {
  std::uint64_t state = 7;
  const auto below = [&](std::int64_t limit) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(limit));
  };
  for (const std::int64_t n : {1, 2, 17, 300, 40000}) {
    for (const std::int64_t edges_of : {n / 4, n / 2, 2 * n}) {
      for (const int shards : {1, 2, 3, 7}) {
        std::vector<Edges> edges(static_cast<std::size_t>(shards));
        Edges all;
        const bool chain = n == 300 && edges_of == 2 * n;  // one group, no two neighboring edges in one shard
        for (std::int64_t e = 0; e < (chain ? n - 1 : edges_of); ++e) {
          all.emplace_back(chain ? e : below(n), chain ? e + 1 : below(n));
          edges[static_cast<std::size_t>(chain ? e % shards : below(shards))].push_back(all.back());
        }
        const std::vector<std::int64_t> expected = smallest_of_groups(n, all);
        std::vector<std::vector<std::int64_t>> labels;
        for (const Edges& own : edges) labels.push_back(smallest_of_groups(n, own));
        const std::vector<std::span<const std::int64_t>> views(labels.begin(), labels.end());
        for (const Context& ctx : contexts(static_cast<std::uint64_t>(n))) {
          EXPECT_EQ(merge_labels(ctx, views), expected) << n << " " << edges_of << " " << shards;
        }
        expect_no_error(run_ranks(shards,
                                  [&](Communicator& own) {
                                    const auto& mine = labels[static_cast<std::size_t>(own.rank())];
                                    EXPECT_EQ(merge_labels(context_of_rank(own.rank(), 1), own, mine), expected);
                                  }),
                        "ranks");
      }
    }
  }
}

TEST(MergeLabels, RefuseWhatIsNoLabel) {
  const std::vector<std::int64_t> good = {0, 0, 2};
  const std::vector<std::int64_t> wrong = {0, 3, 2};
  const std::vector<std::int64_t> below = {0, 1, -1};
  const std::vector<std::int64_t> two = {0, 0};
  const Context ctx = Context::cpu({.threads = 2});
  const auto merge = [&](const std::vector<std::int64_t>& other) {
    return [&] {
      const std::vector<std::span<const std::int64_t>> views = {good, other};
      (void)merge_labels(ctx, views);
    };
  };
  refused(merge(wrong), ErrorCode::bad_data, "labels of shard 1: that of vertex 1 is 3, which is none of the 3");
  refused(merge(below), ErrorCode::bad_data, "labels of shard 1: that of vertex 2 is -1");
  refused(merge(two), ErrorCode::invalid_argument, "labels: shard 1 has 2, but shard 0 has 3");
  refused([&] { (void)merge_labels(ctx.with_memory_limit(10), std::vector<std::span<const std::int64_t>>{good}); },
          ErrorCode::over_memory, "merge_labels");
  EXPECT_TRUE(merge_labels(ctx, std::vector<std::span<const std::int64_t>>{}).empty());
  const auto by_ranks = [&](const std::vector<std::int64_t>& other) {
    return run_ranks(3, [&](Communicator& own) { (void)merge_labels(ctx, own, own.rank() == 1 ? other : good); });
  };
  expect_same_error(by_ranks(wrong), ErrorCode::bad_data, "rank 1: labels: that of vertex 1 is 3");
  expect_same_error(by_ranks(two), ErrorCode::invalid_argument,
                    "labels: their number: is not the same on ranks 0 and 1");
}

}  // namespace
}  // namespace vicinal::contract
