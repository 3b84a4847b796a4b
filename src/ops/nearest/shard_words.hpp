// What both ways of a search in shards use (shard_search.hpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "vicinal/context.hpp"
#include "vicinal/parts.hpp"
#include "vicinal/table.hpp"

namespace vicinal::ops {

inline constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t);
inline constexpr std::string_view kListsFound = "radius: the neighbors found so far";

/// What does not fit into memory.
inline std::string_view operation_of(PartKind kind) {
  return kind == PartKind::knn ? "knn" : "radius search";
}

/// Bytes of the lists of a part.
std::uint64_t bytes_of_lists(const NeighborPart& part);

/// Contiguous rows of a table, in its own type. Throws `cancelled`.
void copy_all_rows(const Context& ctx, const TableView& table, void* to);

}  // namespace vicinal::ops
