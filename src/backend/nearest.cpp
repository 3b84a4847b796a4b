// See nearest.hpp: what an index keeps for devices, and the ways of a backend without its own.
#include "backend/nearest.hpp"

#include <algorithm>
#include <bit>

#include "core/in_steps.hpp"
#include "core/list_room.hpp"

namespace vicinal::kernels {

std::shared_ptr<void> DeviceSlot::get(int device) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& [number, held] : entries_) {
    if (number == device) return held;
  }
  return nullptr;
}

void DeviceSlot::put(int device, std::shared_ptr<void> held) const {
  // What is replaced goes when the lock is gone: letting go of it may wait for its device.
  const std::scoped_lock lock(mutex_);
  for (auto& entry : entries_) {
    if (entry.first == device) return entry.second.swap(held);
  }
  entries_.emplace_back(device, std::move(held));
}

std::shared_ptr<PackedTable> PackedSlot::get(const PackedKind& kind) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& table : tables_) {
    if (table->kind() == kind) return table;
  }
  return nullptr;
}

std::shared_ptr<PackedTable> PackedSlot::get_or_make(const PackedKind& kind,
                                                     const std::function<std::shared_ptr<PackedTable>()>& make) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& table : tables_) {
    if (table->kind() == kind) return table;
  }
  return tables_.emplace_back(make());
}

std::vector<std::shared_ptr<PackedTable>> PackedSlot::all() const {
  const std::scoped_lock lock(mutex_);
  return tables_;
}

std::uint64_t PackedSlot::bytes() const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& table : tables_) bytes += table->bytes();
  return bytes;
}

std::shared_ptr<const Pruning> PackedSlot::pruning(Metric metric) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& noted : pruning_) {
    if (noted->metric == metric) return noted;
  }
  return nullptr;
}

std::shared_ptr<const Pruning> PackedSlot::note(Pruning pruning) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& noted : pruning_) {
    if (noted->metric == pruning.metric) return noted;
  }
  return pruning_.emplace_back(std::make_shared<const Pruning>(std::move(pruning)));
}

std::uint64_t PackedSlot::noted_bytes() const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& noted : pruning_) bytes += noted->bytes;
  return bytes;
}

void PackedSlot::drop_others(std::span<const PackedKind> kinds) const {
  const std::scoped_lock lock(mutex_);
  std::erase_if(tables_,
                [&](const auto& table) { return std::find(kinds.begin(), kinds.end(), table->kind()) == kinds.end(); });
}

std::int64_t eligible_rows(Bitmap filter, std::int64_t n) {
  if (filter.empty()) return n;
  std::int64_t rows = 0;
  for (std::size_t w = 0; w < filter.size(); ++w) {
    std::uint64_t word = filter[w];
    if (static_cast<std::int64_t>(w) == n / 64) word &= (std::uint64_t{1} << (n % 64)) - 1;
    rows += std::popcount(word);
  }
  return rows;
}

HostLists::HostLists(const Context& ctx, const NearestBackend& backend, const NearestTask& task, SearchStats& stats) {
  core::resize_lists(ctx, ids, distances, task.queries.rows() * task.k);
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> counts;
  NearestResult result{ids, distances, offsets, counts, stats};
  backend.search(ctx, task, result);
}

void NearestBackend::search_into(const Context& ctx, const NearestTask& task, const ListMemory& lists,
                                 SearchStats& stats) const {
  const HostLists found(ctx, *this, task, stats);
  core::copy_in_steps(ctx, found.ids, lists.ids);
  core::copy_in_steps(ctx, found.distances, lists.distances);
}

void NearestBackend::classify(const Context& ctx, const NearestTask& task, const VoteTask& votes,
                              std::span<Vote> result, SearchStats& stats) const {
  NeighborGraph graph;
  graph.rows = task.queries.rows();
  graph.table_rows = task.index->table.rows();
  graph.k = task.k;
  graph.metric = task.metric;
  graph.p = task.p;
  core::resize_lists(ctx, graph.ids, graph.distances, graph.rows * graph.k);
  std::vector<std::int64_t> counts;
  NearestResult found{graph.ids, graph.distances, graph.offsets, counts, stats};
  search(ctx, task, found);
  vote(ctx, {&graph, votes.outputs, votes.options}, result);
}

}  // namespace vicinal::kernels
