// See backend/lle_ranks.hpp.
#include <algorithm>
#include <atomic>
#include <utility>

#include "backend/lle_ranks.hpp"
#include "core/parallel.hpp"
#include "cpu/nearest/wide_rows.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kRowsBetweenLooks = 16384;  // at a cancel

using Ranked = std::pair<double, std::int64_t>;  // key and id, in the order of clause 2

/// Of one row: its neighbors in their order by the space's key, and how many rows come between each and the one before.
std::int64_t penalty_of(const Context& ctx, const WideRows& space, const kernels::RankTask& task, std::int64_t row,
                        std::span<const std::int64_t> near) {
  std::vector<Ranked> targets;
  for (const std::int64_t id : near) targets.emplace_back(space.key(row, id), id);
  std::sort(targets.begin(), targets.end());
  std::vector<std::int64_t> before(targets.size(), 0);
  const auto count = static_cast<std::int64_t>(task.piece.size());
  for (std::int64_t at = 0; at < count; ++at) {
    if (at % kRowsBetweenLooks == 0) ctx.check_cancelled();
    const std::int64_t id = task.piece[static_cast<std::size_t>(at)];
    if (id == row) continue;
    const Ranked one{space.key(row, id), id};
    if (!(one < targets.back())) continue;
    ++before[static_cast<std::size_t>(std::upper_bound(targets.begin(), targets.end(), one) - targets.begin())];
  }
  std::int64_t rank = 1;
  std::int64_t sum = 0;
  for (const std::int64_t between : before) {
    rank += between;
    sum += std::max<std::int64_t>(0, rank - task.k);
  }
  return sum;
}

std::int64_t penalty_of(const Context& ctx, const WideRows& space, const kernels::RankTask& task) {
  const auto k = static_cast<std::size_t>(task.k);
  const auto asked = static_cast<std::int64_t>(task.asked.size());
  std::atomic<std::int64_t> sum = 0;
  core::parallel_for(ctx, asked, [&](std::int64_t at, int worker) {
    const auto i = static_cast<std::size_t>(at);
    sum.fetch_add(penalty_of(ctx, space, task, task.asked[i], task.near.subspan(i * k, k)), std::memory_order_relaxed);
    if (worker == 0) ctx.report("judge", static_cast<double>(at) / static_cast<double>(asked));
  });
  return sum;
}

}  // namespace
}  // namespace vicinal::cpu

namespace vicinal::kernels {

std::vector<std::int64_t> rank_penalties(const Context& ctx, const RankSpace& space, std::span<const RankTask> tasks) {
  const cpu::WideRows rows(ctx, space.table, space.metric, space.p);
  std::vector<std::int64_t> penalties;
  penalties.reserve(tasks.size());
  for (const RankTask& task : tasks) penalties.push_back(cpu::penalty_of(ctx, rows, task));
  return penalties;
}

std::uint64_t rank_bytes(const TableView& table, Metric metric) {
  return cpu::WideRows::bytes(table, metric);
}

}  // namespace vicinal::kernels
