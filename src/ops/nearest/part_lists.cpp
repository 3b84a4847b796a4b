// See part_lists.hpp.
#include "ops/nearest/part_lists.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/distance.hpp"
#include "core/in_steps.hpp"
#include "core/order.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "ops/common/refuse.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kEntriesPerTask = 16384;

/// One list, from its first entry that is not yet merged.
struct RestOfList {
  const double* key;
  const std::int64_t* id;
  const std::int64_t* end;  ///< of the ids
};
/// What remains of that list.
RestOfList list_of(const NeighborPart& part, std::int64_t i) {
  const std::int64_t begin = begin_of_list(part, i);
  return {part.keys.data() + begin, part.ids.data() + begin, part.ids.data() + begin_of_list(part, i + 1)};
}

/// Merges the lists of one query.
class ListMerge {
 public:
  ListMerge(const Context& ctx, const PartLists& lists) : lists_(lists), info_(lists.shards.front()->info), poll_(ctx) {
    rest_.reserve(lists.shards.size());
  }

  /// Writes at most `room` neighbors of the block's query `i`, and returns how many.
  std::int64_t run(std::int64_t i, std::int64_t room, std::int64_t* ids, double* distances) {
    rest_.clear();
    for (std::size_t s = 0; s < lists_.shards.size(); ++s) {
      const NeighborPart& part = *lists_.shards[s];
      const RestOfList list = list_of(part, lists_.first + i - part.info.place.first_query);
      check(list, s, lists_.first + i);
      if (list.id != list.end) rest_.push_back(list);
    }
    const auto comes_later = [this](const RestOfList& a, const RestOfList& b) {
      return by_id() ? *b.id < *a.id : core::nearer(*b.key, *b.id, *a.key, *a.id);
    };
    std::make_heap(rest_.begin(), rest_.end(), comes_later);
    std::int64_t count = 0;
    while (rest_.size() > 1 && count < room) {
      poll_.step();
      std::pop_heap(rest_.begin(), rest_.end(), comes_later);
      RestOfList& nearest = rest_.back();
      ids[count] = *nearest.id++;
      distances[count++] = told(*nearest.key++);
      if (nearest.id == nearest.end) {
        rest_.pop_back();
      } else {
        std::push_heap(rest_.begin(), rest_.end(), comes_later);
      }
    }
    if (rest_.empty()) return count;
    RestOfList& last = rest_.front();
    for (; last.id != last.end && count < room; ++count) {
      poll_.step();
      ids[count] = *last.id++;
      distances[count] = told(*last.key++);
    }
    return count;
  }

 private:
  [[nodiscard]] bool by_id() const { return info_.order == RadiusOrder::id; }
  [[nodiscard]] double told(double key) const {
    return lists_.keep_keys ? key : core::reported_distance(info_.metric, key, info_.p);
  }

  void check(const RestOfList& list, std::size_t shard, std::int64_t query) {
    const PartInfo& info = lists_.shards[shard]->info;
    const std::int64_t first = info.place.first_id;
    const std::int64_t own = info.place.self ? query : -1;
    const auto size = list.end - list.id;
    for (std::ptrdiff_t i = 0; i < size; ++i) {
      poll_.step();
      const std::int64_t id = list.id[i];
      const double key = list.key[i];
      bool right = id >= first && id - first < info.rows && id != own && std::isfinite(key) &&
                   (key >= 0 || info.metric == Metric::inner_product);
      if (i > 0 && right) {
        right = by_id() ? list.id[i - 1] < id : core::nearer(list.key[i - 1], list.id[i - 1], key, id);
      }
      if (!right) {
        throw Error(ErrorCode::bad_data, fmt::format("parts: {}: the list of query {} is none that a search makes",
                                                     *lists_.names[shard], query));
      }
    }
  }

  const PartLists& lists_;
  const PartInfo& info_;
  core::Poll poll_;
  std::vector<RestOfList> rest_;
};

/// Calls body(i, merge) for each query of the block, in parallel.
template <class Body>
void for_each_query(const Context& ctx, const PartLists& lists, std::int64_t entries, const Body& body) {
  const std::int64_t share = std::clamp<std::int64_t>(
      kEntriesPerTask / std::max<std::int64_t>(1, entries / lists.queries), 1, kEntriesPerTask);
  const std::int64_t tasks = (lists.queries + share - 1) / share;
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int worker) {
    ListMerge merge(ctx, lists);
    const std::int64_t end = std::min(lists.queries, (task + 1) * share);
    for (std::int64_t i = task * share; i < end; ++i) body(i, merge);
    if (worker > 0) return;
    ctx.report("merge", lists.done + lists.share * static_cast<double>(task) / static_cast<double>(tasks));
  });
}

/// Neighbors of a block's queries in all shards.
std::int64_t entries_in(const PartLists& lists) {
  std::int64_t entries = 0;
  for (const NeighborPart* const part : lists.shards) {
    const std::int64_t first = lists.first - part->info.place.first_query;
    entries += begin_of_list(*part, first + lists.queries) - begin_of_list(*part, first);
  }
  return entries;
}

void check_radii(const PartLists& lists) {
  const auto radii_of = [&](std::size_t shard) {
    const NeighborPart& part = *lists.shards[shard];
    return part.radii.begin() + (lists.first - part.info.place.first_query);
  };
  if (!lists.shards.front()->info.has_radii) return;
  for (std::size_t s = 1; s < lists.shards.size(); ++s) {
    if (std::equal(radii_of(0), radii_of(0) + lists.queries, radii_of(s))) continue;
    refuse(fmt::format("parts: the radii of {} are others than those of {}", *lists.names[0], *lists.names[s]));
  }
}

}  // namespace

std::int64_t begin_of_list(const NeighborPart& part, std::int64_t i) {
  return part.offsets.empty() ? i * part.info.k : part.offsets[static_cast<std::size_t>(i)];
}

void refuse_k(const PartInfo& info, std::int64_t largest, std::int64_t table_rows) {
  refuse(fmt::format("k: is {}, but at most {} of the {} table rows can be neighbors{}", info.k, largest, table_rows,
                     info.place.self ? "; a row is not its own neighbor" : ""));
}

void merge_k_lists(const Context& ctx, const PartLists& lists, std::int64_t* ids, double* distances,
                   Shortest& shortest) {
  const std::int64_t k = lists.shards.front()->info.k;
  for_each_query(ctx, lists, entries_in(lists), [&](std::int64_t i, ListMerge& merge) {
    shortest.note(merge.run(i, k, ids + i * k, distances + i * k));
  });
}

void merge_radius_lists(const Context& ctx, const PartLists& lists, NeighborGraph& graph) {
  check_radii(lists);
  const auto before = static_cast<std::int64_t>(graph.offsets.size()) - 1;
  core::Poll poll(ctx);
  for (std::int64_t i = 0; i < lists.queries; ++i) {
    std::int64_t end = graph.offsets.back();
    for (const NeighborPart* const part : lists.shards) {
      poll.step();
      const std::int64_t row = lists.first + i - part->info.place.first_query;
      end += begin_of_list(*part, row + 1) - begin_of_list(*part, row);
    }
    graph.offsets.push_back(end);
  }
  core::resize_in_steps(ctx, graph.ids, graph.offsets.back());
  core::resize_in_steps(ctx, graph.distances, graph.offsets.back());
  for_each_query(ctx, lists, entries_in(lists), [&](std::int64_t i, ListMerge& merge) {
    const std::int64_t begin = graph.offsets[static_cast<std::size_t>(before + i)];
    const std::int64_t size = graph.offsets[static_cast<std::size_t>(before + i) + 1] - begin;
    merge.run(i, size, graph.ids.data() + begin, graph.distances.data() + begin);
  });
}

void add_counts(const Context& ctx, const PartLists& lists, std::int64_t* counts) {
  check_radii(lists);
  core::Poll poll(ctx);
  for (const NeighborPart* const part : lists.shards) {
    const auto* const from = part->counts.data() + (lists.first - part->info.place.first_query);
    for (std::int64_t i = 0; i < lists.queries; ++i) {
      poll.step();
      counts[i] += from[i];
    }
  }
}

void add_stats(const SearchStats& part, bool is_first_group, SearchStats& all) {
  const auto add = [](std::int64_t& sum, std::int64_t more) {  // of files, whose counters may be anything
    sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(more));
  };
  if (is_first_group) add(all.distinct_rows, part.distinct_rows);
  add(all.survivors, part.survivors);
  add(all.escalated, part.escalated);
  add(all.uncertified, part.uncertified);
  all.prepare_seconds += part.prepare_seconds;
  all.search_seconds += part.search_seconds;
  all.selection_seconds += part.selection_seconds;
}

std::uint64_t heap_bytes(const Context& ctx, const FittedParts& all) {
  std::size_t shards = 0;
  for (const PartGroup& group : all.groups) shards = std::max(shards, group.parts.size());
  return static_cast<std::uint64_t>(ctx.threads()) * shards * sizeof(RestOfList);
}

}  // namespace vicinal::ops
