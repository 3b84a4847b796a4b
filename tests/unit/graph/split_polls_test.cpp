// Cancel polls of groups that are divided, counted on one thread. The expected number is that of the loops.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "counted_polls.hpp"
#include "ops/graph/groups.hpp"
#include "vicinal/cocluster.hpp"

namespace vicinal {
namespace {

// A star, no member of which is further than two steps from another: it is looked at and not divided.
TEST(Polls, ASplit) {
  constexpr std::int64_t kLeaves = kBetweenLooks;
  const std::vector<std::int64_t> a(static_cast<std::size_t>(kLeaves), 0);
  std::vector<std::int64_t> b(a.size());
  std::iota(b.begin(), b.end(), 0);
  const Context ctx = polled_context();
  const BipartiteEdges edges(1, kLeaves, std::span<const std::int64_t>(a), std::span<const std::int64_t>(b));
  Cocluster found = cocluster(ctx, edges, {});
  const std::int64_t grouping = polls_of([&] { ops::make_groups(ctx, found); });
  // Edges are checked, chosen, and asked whether they are cut; both ways of each are counted, sorted twice and joined,
  // and walked. Members are chosen; a walk begins, and the group is a task.
  EXPECT_GE(polls_of([&] { (void)split_groups(ctx, edges, found, {.max_steps = 4}); }),
            3 + 2 * 4 + 2 + 2 + 1 + of_tasks(ctx, 1) + grouping);
}

}  // namespace
}  // namespace vicinal
