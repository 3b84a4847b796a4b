// The graphs that are left of M's when points near each other are drawn together into cells, and cells into larger
// ones: whatever the size of a part, one of them is small enough to be searched from end to end a dozen times.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/lists.hpp"
#include "solver/ordering.hpp"

namespace vicinal::solver {

/// Two cells are neighbors where a block has its own point in one and a column in the other: so what a block joins
/// lies in the cell of its own point and the neighbors of that cell.
struct CellGraph {
  Lists neighbors;           ///< of each cell, ascending
  std::vector<Point> above;  ///< [cells] of the next coarser graph, the cell that has it; empty in the last graph

  [[nodiscard]] Point cells() const noexcept { return neighbors.size(); }
};

struct CellGraphs {
  core::RawVector<Point> cell_of;  ///< [n] in the finest
  std::vector<CellGraph> levels;   ///< the finest first, at least one
};

/// The finest of the cells that begin at near[..], each coarser one of four cells of the one before, as they follow
/// each other. A cell whose points do not reach each other within it is taken apart: a few that hold points of two
/// sheets of a folded surface would make both look near everywhere. O(n width).
CellGraphs cell_graphs_of(const Context& ctx, const Pattern& pattern, const std::vector<Point>& near);

}  // namespace vicinal::solver
