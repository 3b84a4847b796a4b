// Places: rows of a table that are equal as numbers, each standing for all of them (contract clause 13).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "vicinal/knn.hpp"
#include "vicinal/lof.hpp"

namespace vicinal::ops {

struct Places {
  std::vector<std::int64_t> first;   ///< [places] the smallest row of each, ascending
  std::vector<std::int64_t> rows;    ///< [places] how many there are
  std::vector<std::int64_t> of_row;  ///< [n] place
  std::unordered_map<std::uint64_t, std::vector<std::int64_t>>
      by_hash;  ///< of a row's numbers; nearly all are one long
};

/// Of a finite table in host memory. O(n d) expected time, O(n) memory.
Places places_of(const Context& ctx, const TableView& table);

/// Neighborhoods of places: NeighborGraph as CSR whose ids are places, and how many rows each entry stands for.
struct PlaceGraph {
  NeighborGraph graph;
  std::vector<std::int64_t> weights;
};

/// Of all places (`queries` null), or of queries among them, by the options' policies. Throws `invalid_argument` where
/// there are fewer other places than `distinct` asks for.
PlaceGraph place_graph(const Context& ctx, const TableView& table, const Places& places, const TableView* queries,
                       const LofOptions& options);

}  // namespace vicinal::ops
