// merge: the lists of all shards become those of the whole table (contract clause 26; part_lists.hpp). Sources are read
// in blocks of queries (part_blocks.hpp).
#include <fmt/core.h>

#include <utility>

#include "core/entry.hpp"
#include "core/in_steps.hpp"
#include "core/memory.hpp"
#include "ops/common/refuse.hpp"
#include "ops/nearest/part_blocks.hpp"
#include "vicinal/parts.hpp"

namespace vicinal {

namespace {

using ops::Fitted;
using ops::PartBlocks;
using ops::PartGroup;
using ops::PartLists;
using ops::Shortest;

/// Bytes of a graph. `entries`: of lists within a radius.
std::uint64_t graph_bytes(const PartInfo& info, std::int64_t queries, std::int64_t entries) {
  if (info.kind == PartKind::knn) return static_cast<std::uint64_t>(queries * info.k) * ops::kEntryBytes;
  return static_cast<std::uint64_t>(entries) * ops::kEntryBytes + (static_cast<std::uint64_t>(queries) + 1) * 8;
}

/// All queries of a group, of parts in memory, after `done` others.
PartLists lists_of(const Fitted<NeighborPart>& fitted, const PartGroup& group, std::int64_t done) {
  PartLists lists;
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
  blocks.for_each([&](const PartLists& lists) {
    NeighborGraph graph = fitted.graph(ctx, bytes);
    graph.rows = lists.queries;
    if (fitted.info().kind == PartKind::knn) {
      graph.ids.resize(static_cast<std::size_t>(lists.queries * graph.k));
      graph.distances.resize(graph.ids.size());
      ops::merge_k_lists(ctx, lists, graph.ids.data(), graph.distances.data(), shortest);
      if (shortest.any(fitted.info())) return;  // the others are read for the sentence only
    } else {
      graph.offsets.assign(1, 0);
      ops::merge_radius_lists(ctx, lists, graph);
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
    return ops::begin_of_list(part, end) - ops::begin_of_list(part, begin);
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
    const std::int64_t first = ops::begin_of_list(part, begin);
    const std::int64_t last = ops::begin_of_list(part, end);
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

NeighborGraph ops::merge_parts(const Context& ctx, std::span<const NeighborPart> parts, bool keep_keys) {
  const Fitted<NeighborPart> fitted(parts, false);
  std::int64_t entries = 0;
  for (const NeighborPart& part : parts) {
    ops::check_part(ctx, part, fitted.named[static_cast<std::size_t>(&part - parts.data())].name);
    entries += std::ssize(part.ids);
  }
  const std::uint64_t bytes =
      graph_bytes(fitted.info(), fitted.all.queries, entries) + ops::heap_bytes(ctx, fitted.all);
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
    PartLists lists = lists_of(fitted, group, done);
    lists.keep_keys = keep_keys;
    if (is_knn) {
      const std::int64_t begin = done * graph.k;
      ops::merge_k_lists(ctx, lists, graph.ids.data() + begin, graph.distances.data() + begin, shortest);
    } else {
      ops::merge_radius_lists(ctx, lists, graph);
    }
    done += group.queries;
    ctx.report("merge", static_cast<double>(done) / static_cast<double>(graph.rows));
  }
  if (is_knn) shortest.refuse_any(fitted.info(), graph.table_rows);
  return graph;
}

NeighborGraph merge(const Context& ctx, std::span<const NeighborPart> parts) try {
  const core::Entry entry;
  return ops::merge_parts(ctx, parts, false);
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
  const std::uint64_t bytes =
      graph_bytes(fitted.info(), fitted.all.queries, entries) + ops::heap_bytes(ctx, fitted.all);
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
    ops::add_counts(ctx, lists_of(fitted, group, done), merged.counts.data() + done);
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
  blocks.for_each([&](const PartLists& lists) {
    ops::add_counts(ctx, lists, merged.counts.data() + done);
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
  std::uint64_t bytes = counts ? static_cast<std::uint64_t>(fitted.all.queries) * 8 : ops::heap_bytes(ctx, fitted.all);
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
  return merge_in_blocks(ctx, fitted, ops::heap_bytes(ctx, fitted.all), take);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
