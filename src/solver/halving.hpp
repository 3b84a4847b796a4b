// Halves a part of a dissection on the graph of its cells, across its longest way: breadth-first searches from corners
// far from each other say which cells are nearer to which. O(cells and their neighbors).
#pragma once

#include <cstdint>
#include <vector>

#include "solver/cell_graph.hpp"
#include "solver/separator.hpp"

namespace vicinal::solver {

/// A worker's room for it.
class Halving {
 public:
  Halving(const Context& ctx, const CellGraph& graph)
      : ctx_(ctx), graph_(graph), place_(graph.first.size(), -1), sides_near_(graph.first.size(), 0) {}

  /// Halves the part that has the points [begin, end) of a list: as many points either side as whole cells allow.
  void halve(const Point* begin, const Point* end);
  /// After `halve`, of a cell of the part: left or right.
  [[nodiscard]] Side side(Point cell) const { return side_[place_[cell]]; }
  /// The side on which a point stands by the cells of itself and its neighbors: the points [begin, end), among which
  /// those of other parts do not count. Finer than its cell's where that is `at_cut`.
  [[nodiscard]] Side side_of_points(const Point* begin, const Point* end) const;
  /// Whether a block may join a point of the cell, one of the part, with the other side.
  [[nodiscard]] bool at_cut(Point cell) const { return at_cut_[place_[cell]] != 0; }

 private:
  void take_cells(const Point* begin, const Point* end);
  void take_neighbors();
  Point search(Point start, std::vector<std::int32_t>& hops);
  void smooth();
  std::int32_t halve_by_keys(std::int64_t points);
  [[nodiscard]] std::int64_t edges_cut() const;
  void find_cut();

  const Context& ctx_;
  const CellGraph& graph_;
  std::vector<Point> place_;              // of each cell among those of the part, -1 of others
  std::vector<std::uint8_t> sides_near_;  // of each cell, 0 between calls
  std::vector<Point> cells_;              // of the part, in the order in which its points name them
  std::vector<Point> weights_;            // points of the part in each
  std::vector<Point> first_;              // neighbors of each, of the part, numbered as in `cells_`
  std::vector<Point> neighbors_;
  std::vector<Point> queue_;
  std::vector<std::int32_t> hops_[4];  // from four corners
  std::vector<std::int32_t> keys_;
  std::vector<std::int32_t> means_;
  std::vector<std::int32_t> lean_;  // by how much each is right of the middle
  std::vector<std::int64_t> at_key_;
  std::vector<Side> trial_;
  std::vector<Side> side_;
  std::vector<std::uint8_t> at_cut_;
};

}  // namespace vicinal::solver
