// merge: the lists of all shards become those of the whole table (contract clause 26). The lists of a query are merged
// by (key, id) through a heap of their first entries, and roots are taken last, by the function that takes them in a
// search. Nothing is believed of a list: ids that the shard does not have, another order and keys that are not finite
// are errors. O(k log s) a query of s shards. Sources are read in blocks of queries.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "core/context_state.hpp"
#include "core/distance.hpp"
#include "core/entry.hpp"
#include "core/in_steps.hpp"
#include "core/isa.hpp"
#include "core/memory.hpp"
#include "core/order.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "ops/common/refuse.hpp"
#include "ops/nearest/part_fit.hpp"
#include "vicinal/parts.hpp"

namespace vicinal {
namespace {

constexpr std::uint64_t kPartRoom = std::uint64_t{64} << 20;  // for blocks of lists: more is no quicker
constexpr std::uint64_t kEntryBytes = 16;                     // of an id and a key
constexpr std::int64_t kEntriesPerTask = 16384;

using ops::FittedParts;
using ops::NamedPart;
using ops::PartGroup;

/// The lists of some consecutive queries, of all shards in the order of their rows.
struct Lists {
  std::vector<const NeighborPart*> shards;
  std::vector<const std::string*> names;
  std::int64_t first = 0;  ///< number of the first query
  std::int64_t queries = 0;
  double done = 0;   ///< share of all queries that come before these
  double share = 1;  ///< and that of these
};

/// One list, from its first entry that is not yet merged.
struct RestOfList {
  const double* key;
  const std::int64_t* id;
  const std::int64_t* end;  ///< of the ids
};

/// Where the list of query `i` of a shard begins; for `i` the number of its queries, where the last one ends.
std::int64_t begin_of(const NeighborPart& part, std::int64_t i) {
  return part.offsets.empty() ? i * part.info.k : part.offsets[static_cast<std::size_t>(i)];
}

/// What remains of that list.
RestOfList list_of(const NeighborPart& part, std::int64_t i) {
  const std::int64_t begin = begin_of(part, i);
  return {part.keys.data() + begin, part.ids.data() + begin, part.ids.data() + begin_of(part, i + 1)};
}

/// Merges the lists of one query.
class ListMerge {
 public:
  ListMerge(const Context& ctx, const Lists& lists) : lists_(lists), info_(lists.shards.front()->info), poll_(ctx) {
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
      distances[count++] = core::reported_distance(info_.metric, *nearest.key++, info_.p);
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
      distances[count] = core::reported_distance(info_.metric, *last.key++, info_.p);
    }
    return count;
  }

 private:
  [[nodiscard]] bool by_id() const { return info_.order == RadiusOrder::id; }

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

  const Lists& lists_;
  const PartInfo& info_;
  core::Poll poll_;
  std::vector<RestOfList> rest_;
};

/// Calls body(i, merge) for each query of the block, in parallel.
template <class Body>
void for_each_query(const Context& ctx, const Lists& lists, std::int64_t entries, const Body& body) {
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
std::int64_t entries_in(const Lists& lists) {
  std::int64_t entries = 0;
  for (const NeighborPart* const part : lists.shards) {
    const std::int64_t first = lists.first - part->info.place.first_query;
    entries += begin_of(*part, first + lists.queries) - begin_of(*part, first);
  }
  return entries;
}

void check_radii(const Lists& lists) {
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

/// The sentence of clause 5, for the whole table.
[[noreturn]] void refuse_k(const PartInfo& info, std::int64_t largest, std::int64_t table_rows) {
  refuse(fmt::format("k: is {}, but at most {} of the {} table rows can be neighbors{}", info.k, largest, table_rows,
                     info.place.self ? "; a row is not its own neighbor" : ""));
}

/// Queries whose lists are too short.
class Shortest {
 public:
  void note(std::int64_t size) {
    std::int64_t seen = size_.load();
    while (size < seen && !size_.compare_exchange_weak(seen, size)) {
    }
  }
  [[nodiscard]] bool any(const PartInfo& info) const { return size_ < info.k; }
  void refuse_any(const PartInfo& info, std::int64_t table_rows) const {
    if (any(info)) refuse_k(info, size_, table_rows);
  }

 private:
  std::atomic<std::int64_t> size_{std::numeric_limits<std::int64_t>::max()};
};

/// k lists, to ids and distances [queries, k].
void merge_k_lists(const Context& ctx, const Lists& lists, std::int64_t* ids, double* distances, Shortest& shortest) {
  const std::int64_t k = lists.shards.front()->info.k;
  for_each_query(ctx, lists, entries_in(lists), [&](std::int64_t i, ListMerge& merge) {
    shortest.note(merge.run(i, k, ids + i * k, distances + i * k));
  });
}

/// Lists within radii, behind those that the graph has. Its arrays have room for them.
void merge_radius_lists(const Context& ctx, const Lists& lists, NeighborGraph& graph) {
  check_radii(lists);
  const auto before = static_cast<std::int64_t>(graph.offsets.size()) - 1;
  core::Poll poll(ctx);
  for (std::int64_t i = 0; i < lists.queries; ++i) {
    std::int64_t end = graph.offsets.back();
    for (const NeighborPart* const part : lists.shards) {
      poll.step();
      const std::int64_t row = lists.first + i - part->info.place.first_query;
      end += begin_of(*part, row + 1) - begin_of(*part, row);
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

void add_counts(const Context& ctx, const Lists& lists, std::int64_t* counts) {
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

/// Parts in memory and elsewhere, as far as they are the same.
const SearchStats& stats_of(const NeighborPart& part) {
  return part.stats;
}
const SearchStats& stats_of(const PartSource& part) {
  return part.stats;
}
std::string name_of_part(const NeighborPart& /*part*/, std::size_t number) {
  return fmt::format("part {}", number);
}
std::string name_of_part(const PartSource& part, std::size_t number) {
  return part.name.empty() ? fmt::format("part {}", number) : part.name;
}

/// Parts that fit together.
template <class Part>
struct Fitted {
  std::span<const Part> parts;
  std::vector<NamedPart> named;
  FittedParts all;

  Fitted(std::span<const Part> given, bool counts) : parts(given) {
    for (const Part& part : parts) named.push_back({&part.info, name_of_part(part, named.size())});
    all = ops::fit_parts(named);
    if ((info().kind == PartKind::count) != counts) {
      refuse(fmt::format("parts: have {}, which {} merges", counts ? "lists" : "counts",
                         counts ? "merge" : "merge_counts"));
    }
    if (info().kind != PartKind::knn) return;
    const std::int64_t largest = all.table_rows - (info().place.self ? 1 : 0);
    if (info().k > largest) refuse_k(info(), largest, all.table_rows);
    if (info().k > std::numeric_limits<std::int64_t>::max() / 32 / all.queries) {
      throw Error(ErrorCode::over_memory, "merge: m * k results do not fit any memory");
    }
  }

  [[nodiscard]] const PartInfo& info() const { return *named.front().info; }
  [[nodiscard]] SearchStats stats() const {
    SearchStats sum;
    for (const PartGroup& group : all.groups) {
      for (const std::size_t number : group.parts) add_stats(stats_of(parts[number]), &group == &all.groups[0], sum);
    }
    return sum;
  }
  [[nodiscard]] Plan plan(const Context& ctx, std::uint64_t bytes) const {
    Plan plan;
    plan.method = Method::direct;
    plan.isa = name_of(ctx.isa());
    plan.threads = ctx.threads();
    plan.memory = bytes;
    plan.reason = fmt::format("the lists of {} parts are merged", parts.size());
    return plan;
  }
  /// A graph of all queries without lists.
  [[nodiscard]] NeighborGraph graph(const Context& ctx, std::uint64_t bytes) const {
    NeighborGraph graph;
    graph.rows = all.queries;
    graph.table_rows = all.table_rows;
    graph.k = info().k;
    graph.metric = info().metric;
    graph.p = info().p;
    graph.plan = plan(ctx, bytes);
    graph.stats = stats();
    return graph;
  }
};

/// Bytes of a graph. `entries`: of lists within a radius.
std::uint64_t graph_bytes(const PartInfo& info, std::int64_t queries, std::int64_t entries) {
  if (info.kind == PartKind::knn) return static_cast<std::uint64_t>(queries * info.k) * kEntryBytes;
  return static_cast<std::uint64_t>(entries) * kEntryBytes + (static_cast<std::uint64_t>(queries) + 1) * 8;
}

/// The heaps of all threads.
std::uint64_t heap_bytes(const Context& ctx, const FittedParts& all) {
  std::size_t shards = 0;
  for (const PartGroup& group : all.groups) shards = std::max(shards, group.parts.size());
  return static_cast<std::uint64_t>(ctx.threads()) * shards * sizeof(RestOfList);
}

/// All queries of a group, of parts in memory, after `done` others.
Lists lists_of(const Fitted<NeighborPart>& fitted, const PartGroup& group, std::int64_t done) {
  Lists lists;
  lists.first = group.first_query;
  lists.queries = group.queries;
  lists.done = static_cast<double>(done) / static_cast<double>(fitted.all.queries);
  lists.share = static_cast<double>(group.queries) / static_cast<double>(fitted.all.queries);
  for (const std::size_t number : group.parts) {
    lists.shards.push_back(&fitted.parts[number]);
    lists.names.push_back(&fitted.named[number].name);
  }
  return lists;
}

/// PartBlocks of queries of a group, read from its sources.
class PartBlocks {
 public:
  PartBlocks(const Context& ctx, const Fitted<PartSource>& fitted, std::uint64_t beside)
      : ctx_(ctx), fitted_(fitted), beside_(beside) {
    for (const PartGroup& group : fitted.all.groups) longest_ = std::max(longest_, group.queries);
  }

  /// Room for blocks, at least that of one query; what the lists of one query take within a radius is seen when they
  /// are read. Throws `over_memory` where it does not fit.
  std::uint64_t plan() {
    std::uint64_t one = 0;
    for (const PartGroup& group : fitted_.all.groups) one = std::max(one, bytes_of(group, 0, 1));
    const bool all_fit = one < kPartRoom / static_cast<std::uint64_t>(std::max<std::int64_t>(longest_, 1));
    room_ = all_fit ? one * static_cast<std::uint64_t>(longest_) : std::max(one, kPartRoom);
    if (fitted_.info().kind == PartKind::radius) room_ = std::max(one, kPartRoom);
    core::require_memory(ctx_, beside_ + one, "merge");
    room_ = std::min(room_, ctx_.memory_limit() - beside_);
    return room_;
  }

  /// Calls take(lists) for all queries in their order.
  template <class Take>
  void for_each(const Take& take) {
    std::int64_t done = 0;
    for (const PartGroup& group : fitted_.all.groups) {
      std::int64_t step = group.queries;
      for (std::int64_t begin = 0; begin < group.queries;) {
        step = std::min(step, group.queries - begin);
        while (step > 1 && bytes_of(group, begin, begin + step) > room_) step = (step + 1) / 2;
        const std::uint64_t bytes = bytes_of(group, begin, begin + step);
        if (bytes > room_) core::require_memory(ctx_, beside_ + bytes, "merge");
        read(group, begin, begin + step, done, take);
        begin += step;
        done += step;
        step *= 2;
        ctx_.report("merge", static_cast<double>(done) / static_cast<double>(fitted_.all.queries));
      }
    }
  }

 private:
  /// Of lists that are read, and once more merged.
  [[nodiscard]] std::uint64_t bytes_of(const PartGroup& group, std::int64_t begin, std::int64_t end) const {
    const auto queries = static_cast<std::uint64_t>(end - begin);
    std::uint64_t bytes = 16 * queries * (group.parts.size() + 1);  // offsets, radii, counts
    for (const std::size_t number : group.parts) {
      const PartSource& source = fitted_.parts[number];
      if (source.info.kind == PartKind::radius) {
        bytes += static_cast<std::uint64_t>(source.neighbors(begin, end)) * 2 * kEntryBytes;
      } else if (source.info.kind == PartKind::knn) {
        bytes += queries * static_cast<std::uint64_t>(std::min(source.info.k, source.info.rows)) * kEntryBytes;
      }
    }
    if (fitted_.info().kind == PartKind::knn) bytes += queries * static_cast<std::uint64_t>(fitted_.info().k) * 16;
    return bytes;
  }

  template <class Take>
  void read(const PartGroup& group, std::int64_t begin, std::int64_t end, std::int64_t done, const Take& take) const {
    std::vector<NeighborPart> parts;
    parts.reserve(group.parts.size());
    Lists lists;
    lists.first = group.first_query + begin;
    lists.queries = end - begin;
    lists.done = static_cast<double>(done) / static_cast<double>(fitted_.all.queries);
    lists.share = static_cast<double>(end - begin) / static_cast<double>(fitted_.all.queries);
    for (const std::size_t number : group.parts) {
      ctx_.check_cancelled();
      const PartSource& source = fitted_.parts[number];
      NeighborPart& part = parts.emplace_back(source.read(begin, end));
      part.info = source.info;
      part.info.place.first_query = lists.first;
      part.info.queries = lists.queries;
      ops::check_part(ctx_, part, fitted_.named[number].name);
      lists.shards.push_back(&part);
      lists.names.push_back(&fitted_.named[number].name);
    }
    take(lists);
  }

  const Context& ctx_;
  const Fitted<PartSource>& fitted_;
  std::uint64_t beside_;
  std::uint64_t room_ = 0;
  std::int64_t longest_ = 0;
};

void check_sources(std::span<const PartSource> parts) {
  for (const PartSource& part : parts) {
    if (!part.read || (part.info.kind == PartKind::radius && !part.neighbors)) {
      refuse("parts: a source has no function that reads it");
    }
  }
}

/// The merged lists of each block, passed to take(first, graph), where `first` counts all queries from 0.
RadiusSummary merge_in_blocks(const Context& ctx, const Fitted<PartSource>& fitted, std::uint64_t beside,
                              const TakeLists& take) {
  PartBlocks blocks(ctx, fitted, beside);
  const std::uint64_t bytes = beside + blocks.plan();
  RadiusSummary summary{fitted.all.queries, fitted.all.table_rows, 0, fitted.plan(ctx, bytes), fitted.stats()};
  Shortest shortest;
  std::int64_t first = 0;
  blocks.for_each([&](const Lists& lists) {
    NeighborGraph graph = fitted.graph(ctx, bytes);
    graph.rows = lists.queries;
    if (fitted.info().kind == PartKind::knn) {
      graph.ids.resize(static_cast<std::size_t>(lists.queries * graph.k));
      graph.distances.resize(graph.ids.size());
      merge_k_lists(ctx, lists, graph.ids.data(), graph.distances.data(), shortest);
      if (shortest.any(fitted.info())) return;  // the others are read for the sentence only
    } else {
      graph.offsets.assign(1, 0);
      merge_radius_lists(ctx, lists, graph);
    }
    summary.neighbors += std::ssize(graph.ids);
    take(first, graph);
    first += lists.queries;
  });
  if (fitted.info().kind == PartKind::knn) shortest.refuse_any(fitted.info(), fitted.all.table_rows);
  return summary;
}

}  // namespace

PartSource source_of(const Context& ctx, const NeighborPart& part) try {
  const core::Entry entry;
  ops::check_info(part.info, "the part");
  ops::check_part(ctx, part, "the part");
  PartSource source{part.info, {}, {}, {}, part.stats};
  source.neighbors = [&part](std::int64_t begin, std::int64_t end) {
    return begin_of(part, end) - begin_of(part, begin);
  };
  source.read = [&part](std::int64_t begin, std::int64_t end) {
    const auto some = [](const auto& values, std::int64_t from, std::int64_t to) {
      using Values = std::remove_cvref_t<decltype(values)>;
      return values.empty() ? Values() : Values(values.begin() + from, values.begin() + to);
    };
    NeighborPart piece;
    piece.radii = some(part.radii, begin, end);
    piece.counts = some(part.counts, begin, end);
    if (part.info.kind == PartKind::count) return piece;
    const std::int64_t first = begin_of(part, begin);
    const std::int64_t last = begin_of(part, end);
    piece.ids = some(part.ids, first, last);
    piece.keys = some(part.keys, first, last);
    if (part.offsets.empty()) return piece;
    piece.offsets = some(part.offsets, begin, end + 1);
    for (std::int64_t& offset : piece.offsets) offset -= first;
    return piece;
  };
  return source;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph merge(const Context& ctx, std::span<const NeighborPart> parts) try {
  const core::Entry entry;
  const Fitted<NeighborPart> fitted(parts, false);
  std::int64_t entries = 0;
  for (const NeighborPart& part : parts) {
    ops::check_part(ctx, part, fitted.named[static_cast<std::size_t>(&part - parts.data())].name);
    entries += std::ssize(part.ids);
  }
  const std::uint64_t bytes = graph_bytes(fitted.info(), fitted.all.queries, entries) + heap_bytes(ctx, fitted.all);
  core::require_memory(ctx, bytes, "merge");
  NeighborGraph graph = fitted.graph(ctx, bytes);
  const bool is_knn = fitted.info().kind == PartKind::knn;
  if (is_knn) {
    core::resize_in_steps(ctx, graph.ids, graph.rows * graph.k);
    core::resize_in_steps(ctx, graph.distances, graph.rows * graph.k);
  } else {
    graph.offsets.reserve(static_cast<std::size_t>(graph.rows) + 1);
    graph.offsets.push_back(0);
    graph.ids.reserve(static_cast<std::size_t>(entries));
    graph.distances.reserve(static_cast<std::size_t>(entries));
  }
  Shortest shortest;
  std::int64_t done = 0;
  for (const PartGroup& group : fitted.all.groups) {
    const Lists lists = lists_of(fitted, group, done);
    if (is_knn) {
      const std::int64_t begin = done * graph.k;
      merge_k_lists(ctx, lists, graph.ids.data() + begin, graph.distances.data() + begin, shortest);
    } else {
      merge_radius_lists(ctx, lists, graph);
    }
    done += group.queries;
    ctx.report("merge", static_cast<double>(done) / static_cast<double>(graph.rows));
  }
  if (is_knn) shortest.refuse_any(fitted.info(), graph.table_rows);
  return graph;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph merge(const Context& ctx, std::span<const PartSource> parts) try {
  const core::Entry entry;
  check_sources(parts);
  const Fitted<PartSource> fitted(parts, false);
  const bool is_knn = fitted.info().kind == PartKind::knn;
  std::int64_t entries = 0;
  for (const PartSource& part : parts) {
    if (!is_knn) entries += part.neighbors(0, part.info.queries);
  }
  const std::uint64_t bytes = graph_bytes(fitted.info(), fitted.all.queries, entries) + heap_bytes(ctx, fitted.all);
  core::require_memory(ctx, bytes, "merge");
  NeighborGraph graph = fitted.graph(ctx, bytes);
  if (is_knn) entries = graph.rows * graph.k;
  graph.ids.reserve(static_cast<std::size_t>(entries));
  graph.distances.reserve(static_cast<std::size_t>(entries));
  if (!is_knn) {
    graph.offsets.reserve(static_cast<std::size_t>(graph.rows) + 1);
    graph.offsets.push_back(0);
  }
  graph.plan = merge_in_blocks(ctx, fitted, bytes, [&](std::int64_t /*first*/, const NeighborGraph& lists) {
                 const std::int64_t before = std::ssize(graph.ids);
                 core::resize_in_steps(ctx, graph.ids, before + std::ssize(lists.ids));
                 core::resize_in_steps(ctx, graph.distances, before + std::ssize(lists.ids));
                 core::copy_in_steps(ctx, lists.ids, graph.ids.data() + before);
                 core::copy_in_steps(ctx, lists.distances, graph.distances.data() + before);
                 for (std::size_t i = 1; i < lists.offsets.size(); ++i) {
                   graph.offsets.push_back(before + lists.offsets[i]);
                 }
               }).plan;
  return graph;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborCounts merge_counts(const Context& ctx, std::span<const NeighborPart> parts) try {
  const core::Entry entry;
  const Fitted<NeighborPart> fitted(parts, true);
  for (std::size_t i = 0; i < parts.size(); ++i) ops::check_part(ctx, parts[i], fitted.named[i].name);
  const std::uint64_t bytes = static_cast<std::uint64_t>(fitted.all.queries) * 8;
  core::require_memory(ctx, bytes, "merge");
  NeighborCounts merged{{}, fitted.plan(ctx, bytes), fitted.stats()};
  core::resize_in_steps(ctx, merged.counts, fitted.all.queries);
  std::int64_t done = 0;
  for (const PartGroup& group : fitted.all.groups) {
    add_counts(ctx, lists_of(fitted, group, done), merged.counts.data() + done);
    done += group.queries;
  }
  return merged;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborCounts merge_counts(const Context& ctx, std::span<const PartSource> parts) try {
  const core::Entry entry;
  check_sources(parts);
  const Fitted<PartSource> fitted(parts, true);
  const std::uint64_t bytes = static_cast<std::uint64_t>(fitted.all.queries) * 8;
  PartBlocks blocks(ctx, fitted, bytes);
  NeighborCounts merged{{}, fitted.plan(ctx, bytes + blocks.plan()), fitted.stats()};
  core::resize_in_steps(ctx, merged.counts, fitted.all.queries);
  std::int64_t done = 0;
  blocks.for_each([&](const Lists& lists) {
    add_counts(ctx, lists, merged.counts.data() + done);
    done += lists.queries;
  });
  return merged;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_merge(const Context& ctx, std::span<const PartSource> parts) try {
  const core::Entry entry;
  check_sources(parts);
  const bool counts = !parts.empty() && parts.front().info.kind == PartKind::count;
  const Fitted<PartSource> fitted(parts, counts);
  std::uint64_t bytes = counts ? static_cast<std::uint64_t>(fitted.all.queries) * 8 : heap_bytes(ctx, fitted.all);
  if (fitted.info().kind == PartKind::knn) bytes += graph_bytes(fitted.info(), fitted.all.queries, 0);
  return fitted.plan(ctx, bytes + PartBlocks(ctx, fitted, bytes).plan());
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

RadiusSummary merge_batches(const Context& ctx, std::span<const PartSource> parts, const TakeLists& take) try {
  const core::Entry entry;
  if (!take) refuse("take: must be a function, but is empty");
  check_sources(parts);
  const Fitted<PartSource> fitted(parts, false);
  return merge_in_blocks(ctx, fitted, heap_bytes(ctx, fitted.all), take);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
