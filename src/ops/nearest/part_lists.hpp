// The lists of a block of queries in all shards, merged into those of the whole table (contract clause 26): by (key,
// id), through a heap of their first entries. Roots are taken last, by the function that takes them in a search.
// Nothing is believed of a list: ids that the shard does not have, another order and keys that are not finite are
// errors. O(k log s) a query of s shards.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "ops/nearest/part_fit.hpp"
#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/parts.hpp"

namespace vicinal::ops {

/// The lists of some consecutive queries, of all shards in the order of their rows.
struct PartLists {
  std::vector<const NeighborPart*> shards;
  std::vector<const std::string*> names;
  std::int64_t first = 0;  ///< number of the first query
  std::int64_t queries = 0;
  double done = 0;         ///< share of all queries that come before these
  double share = 1;        ///< and that of these
  bool keep_keys = false;  ///< in the place of reported distances
};

/// Where the list of query `i` of a shard begins; for `i` the number of its queries, where the last one ends.
std::int64_t begin_of_list(const NeighborPart& part, std::int64_t i);

/// The sentence of clause 5, for the whole table.
[[noreturn]] void refuse_k(const PartInfo& info, std::int64_t largest, std::int64_t table_rows);

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
void merge_k_lists(const Context& ctx, const PartLists& lists, std::int64_t* ids, double* distances,
                   Shortest& shortest);
/// Lists within radii, behind those that the graph has. Its arrays have room for them.
void merge_radius_lists(const Context& ctx, const PartLists& lists, NeighborGraph& graph);
void add_counts(const Context& ctx, const PartLists& lists, std::int64_t* counts);

/// `merge` of parts; with `keep_keys`, the graph has keys in the place of distances.
NeighborGraph merge_parts(const Context& ctx, std::span<const NeighborPart> parts, bool keep_keys);

/// Adds the counters of a part to those of all. `is_first_group`: of the first range of queries.
void add_stats(const SearchStats& part, bool is_first_group, SearchStats& all);

/// Bytes of the heaps of all threads.
std::uint64_t heap_bytes(const Context& ctx, const FittedParts& all);

}  // namespace vicinal::ops
