// The graph that is left of M's when points near each other are drawn together into cells: small enough to be searched
// from end to end a dozen times.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/ordering.hpp"

namespace vicinal::solver {

/// Two cells are neighbors where a block has its own point in one and a column in the other: so what a block joins
/// lies in the cell of its own point and the neighbors of that cell.
struct CellGraph {
  std::vector<Point> cell_of;  ///< [n]
  std::vector<Point> first;    ///< [cells + 1]
  std::vector<Point> neighbors;

  [[nodiscard]] Point cells() const noexcept { return static_cast<Point>(first.size() - 1); }
};

/// Of the cells that begin at near[..]; one whose points do not reach each other within it is taken apart: a few that
/// hold points of two sheets of a folded surface would make both look near everywhere. O(n width).
CellGraph graph_of_cells(const Context& ctx, const Pattern& pattern, const std::vector<Point>& near);

}  // namespace vicinal::solver
