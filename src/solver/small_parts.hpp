// Parts of a dissection that are small enough to be dissected to their leaves by one worker each, and what a device
// needs to take all of them at once. See dissection.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/raw_vector.hpp"
#include "solver/agenda.hpp"
#include "solver/cell_graph.hpp"

namespace vicinal::solver {

struct SmallParts {
  std::vector<Part> parts;               ///< ranges of the order that have no point in common
  std::vector<std::int64_t> first_cell;  ///< [parts + 1] where the cells of each begin
  core::RawVector<Point> cells;          ///< of the finest graph, ascending in each part
  core::RawVector<std::int64_t> first;   ///< [cells + 1] of the neighbors of each
  core::RawVector<Point> neighbors;      ///< by their places: among the part's cells, or behind them
  std::vector<Point> places;             ///< [parts] cells and the neighbors behind them
  std::vector<std::int64_t> entries;     ///< [parts] blocks of all its points, one after the other
  const Point* cell_of = nullptr;        ///< [n] of the finest graph; the graphs' own
};

/// Splits of the parts, as a device fills them in: of each part, begin + i has that of the i-th of the parts it becomes
/// that has more than kLeafPoints, in the order in which they come to be.
struct Splits {
  core::RawVector<Point> left;     ///< [n]
  core::RawVector<Point> right;    ///< [n]
  std::vector<std::uint8_t> done;  ///< [parts] 0: it was left as it was
};

/// Bytes of what `small_parts_of` makes of a graph, while it does.
std::uint64_t small_parts_bytes(const Context& ctx, const CellGraphs& graphs, std::int64_t n);
/// The cells of parts of an order, each part's points ascending. O(n + cells and their neighbors).
SmallParts small_parts_of(const Context& ctx, const CellGraphs& graphs, const Incidence& in, const Point* order,
                          std::vector<Part> parts);
/// The tree that a part becomes by its splits.
std::vector<Dissection::Node> tree_of(const Part& part, const Splits& splits);

}  // namespace vicinal::solver
