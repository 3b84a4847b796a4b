// Whether parts fit together: one search, each of its shards once for each range of queries (contract clause 26).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vicinal/parts.hpp"

namespace vicinal::ops {

/// A part's description, and what sentences call it.
struct NamedPart {
  const PartInfo* info = nullptr;
  std::string name;
};

/// The parts of one range of queries.
struct PartGroup {
  std::int64_t first_query = 0;
  std::int64_t queries = 0;
  std::vector<std::size_t> parts;  ///< their numbers, in the order of the shards' rows
};

struct FittedParts {
  std::int64_t table_rows = 0;
  std::int64_t queries = 0;       ///< of all groups
  std::vector<PartGroup> groups;  ///< in the order of the queries
};

/// Throws `invalid_argument` where they do not fit, naming two parts, or all ranges that are missing. O(s log s).
FittedParts fit_parts(std::span<const NamedPart> parts);

/// Whether a search has such a part: its places, k, radius, exponent and order.
bool describes_part(const PartInfo& info) noexcept;
/// Throws `invalid_argument` for numbers that describe no part of a search.
void check_info(const PartInfo& info, const std::string& name);
/// Throws `bad_data` where the sizes of the arrays do not fit the description. O(m).
void check_part(const Context& ctx, const NeighborPart& part, const std::string& name);

}  // namespace vicinal::ops
