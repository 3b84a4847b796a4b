// See k_lists.hpp.
#include "ops/nearest/k_lists.hpp"

#include <algorithm>
#include <utility>

#include "core/distance.hpp"
#include "core/in_steps.hpp"
#include "core/list_room.hpp"
#include "core/order.hpp"
#include "core/parallel.hpp"
#include "ops/nearest/part_lists.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kEntriesAtATime = 65536;

/// Calls body(i, worker) for each query, in parallel.
template <class Body>
void for_each_list(const Context& ctx, std::int64_t queries, std::int64_t k, const Body& body) {
  const std::int64_t share = std::max<std::int64_t>(1, kEntriesAtATime / k);
  core::parallel_for(ctx, (queries + share - 1) / share, [&](std::int64_t task, int worker) {
    const std::int64_t end = std::min(queries, (task + 1) * share);
    for (std::int64_t i = task * share; i < end; ++i) body(i, worker);
  });
}

struct Entries {
  const std::int64_t* ids;
  const double* keys;
  std::int64_t size;
};

/// Merges two lists to at most `room` entries, and returns how many.
std::int64_t merge_two(Entries a, Entries b, std::int64_t room, std::int64_t* ids, double* keys) {
  const std::int64_t size = std::min(room, a.size + b.size);
  std::int64_t at_a = 0;
  std::int64_t at_b = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const bool first =
        at_b == b.size || (at_a < a.size && core::nearer(a.keys[at_a], a.ids[at_a], b.keys[at_b], b.ids[at_b]));
    const Entries& from = first ? a : b;
    std::int64_t& at = first ? at_a : at_b;
    ids[i] = from.ids[at];
    keys[i] = from.keys[at++];
  }
  return size;
}

}  // namespace

void KLists::take(const Context& ctx, NeighborPart part) {
  if (sizes_.empty()) {
    if (part.offsets.empty()) {
      sizes_.assign(static_cast<std::size_t>(queries_), k_);
      ids_ = std::move(part.ids);
      keys_ = std::move(part.keys);
      return;
    }
    sizes_.assign(static_cast<std::size_t>(queries_), 0);
    core::resize_lists(ctx, ids_, keys_, queries_ * k_);
  }
  struct Copy {
    std::vector<std::int64_t> ids;
    std::vector<double> keys;
  };
  std::vector<Copy> copies(static_cast<std::size_t>(ctx.threads()));  // of the list that is merged into its own place
  for_each_list(ctx, queries_, k_, [&](std::int64_t i, int worker) {
    const std::int64_t begin = begin_of_list(part, i);
    const auto first = part.ids.cbegin() + begin;
    const auto end = std::find(first, part.ids.cbegin() + begin_of_list(part, i + 1), -1);
    const Entries more{part.ids.data() + begin, part.keys.data() + begin, end - first};
    std::int64_t* const ids = ids_.data() + i * k_;
    double* const keys = keys_.data() + i * k_;
    std::int64_t& size = sizes_[static_cast<std::size_t>(i)];
    if (more.size == 0) return;
    if (size == k_ && core::nearer(keys[k_ - 1], ids[k_ - 1], more.keys[0], more.ids[0])) return;
    Copy& copy = copies[static_cast<std::size_t>(worker)];
    copy.ids.assign(ids, ids + size);
    copy.keys.assign(keys, keys + size);
    size = merge_two({copy.ids.data(), copy.keys.data(), size}, more, k_, ids, keys);
  });
}

std::span<const double> KLists::bounds(const Context& ctx) {
  if (shortest() < k_) return {};
  if (bounds_.empty()) core::resize_in_steps(ctx, bounds_, queries_);
  for_each_list(ctx, queries_, 1, [&](std::int64_t i, int /*worker*/) {
    bounds_[static_cast<std::size_t>(i)] = keys_[static_cast<std::size_t>((i + 1) * k_ - 1)];
  });
  return bounds_;
}

std::int64_t KLists::shortest() const {
  return sizes_.empty() ? 0 : *std::min_element(sizes_.begin(), sizes_.end());
}

void KLists::give(std::vector<std::int64_t>& ids, std::vector<double>& keys) {
  ids = std::move(ids_);
  keys = std::move(keys_);
}

void KLists::finish(const Context& ctx, Metric metric, double p, NeighborGraph& graph) {
  for_each_list(ctx, queries_, k_, [&](std::int64_t i, int /*worker*/) {
    double* const keys = keys_.data() + i * k_;
    std::transform(keys, keys + k_, keys, [&](double key) { return core::reported_distance(metric, key, p); });
  });
  give(graph.ids, graph.distances);
}

std::uint64_t KLists::bytes(const Context& ctx, std::int64_t queries, std::int64_t k) {
  const auto lists = static_cast<std::uint64_t>(queries) + static_cast<std::uint64_t>(ctx.threads());
  return lists * static_cast<std::uint64_t>(k) * 16 + static_cast<std::uint64_t>(queries) * 16;
}

}  // namespace vicinal::ops
