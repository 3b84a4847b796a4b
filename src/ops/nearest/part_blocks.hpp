// Parts that fit together, in memory or elsewhere, and blocks of their queries, read as a merge needs them.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/context_state.hpp"
#include "core/isa.hpp"
#include "core/memory.hpp"
#include "ops/common/refuse.hpp"
#include "ops/nearest/part_fit.hpp"
#include "ops/nearest/part_lists.hpp"
#include "vicinal/parts.hpp"

namespace vicinal::ops {

inline constexpr std::uint64_t kPartRoom = std::uint64_t{64} << 20;  // for blocks of lists: more is no quicker
inline constexpr std::uint64_t kEntryBytes = 16;                     // of an id and a key

/// Parts in memory and elsewhere, as far as they are the same.
inline const SearchStats& stats_of(const NeighborPart& part) {
  return part.stats;
}
inline const SearchStats& stats_of(const PartSource& part) {
  return part.stats;
}
inline std::string name_of_part(const NeighborPart& /*part*/, std::size_t number) {
  return fmt::format("part {}", number);
}
inline std::string name_of_part(const PartSource& part, std::size_t number) {
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
    all = fit_parts(named);
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
    PartLists lists;
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
      check_part(ctx_, part, fitted_.named[number].name);
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

}  // namespace vicinal::ops
