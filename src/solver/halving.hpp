// Halves a part of a dissection on a graph of its cells, across its longest way: breadth-first searches from corners
// far from each other say which cells are nearer to which. A large part is halved on a coarse graph; what lies along
// the line is then told again on each finer one. O(cells and their neighbors).
#pragma once

#include <cstdint>
#include <vector>

#include "formulas/lle/part_rule.hpp"
#include "solver/cell_graph.hpp"
#include "solver/separator.hpp"

namespace vicinal::solver {

/// A worker's room for it.
class Halving {
 public:
  Halving(const Context& ctx, const CellGraphs& graphs);

  /// Halves the part that has the points [begin, end) of a list: about as many points either side.
  void halve(const Point* begin, const Point* end);
  /// After `halve`, of a cell of the part in the finest graph: left or right.
  [[nodiscard]] Side side(Point cell) const { return layers_[0].side[layers_[0].place[cell]]; }
  /// The side on which a point stands by the cells of itself and its neighbors: the points [begin, end), among which
  /// those of other parts do not count; its cell's where these are in balance. Finer than its cell's where that is
  /// `at_cut`.
  [[nodiscard]] Side side_of_point(Point point, const Point* begin, const Point* end) const;
  /// Whether a block may join a point of the cell, one of the part, with the other side.
  [[nodiscard]] bool at_cut(Point cell) const { return layers_[0].at_cut[layers_[0].place[cell]] != 0; }

  /// Bytes of so many workers' rooms at most, for so many cells of all graphs together.
  static std::uint64_t bytes(std::int64_t cells, int workers);

 private:
  /// The cells that a part has of one of the graphs.
  struct Layer {
    const CellGraph* graph = nullptr;
    std::vector<Point> place;             // of each cell of the graph among those of the part, -1 of others
    std::vector<std::uint8_t> looked_at;  // of each cell of the graph, 0 between calls
    std::vector<Point> cells;             // of the part, in the order in which its points name them
    std::vector<Point> weights;           // points of the part in each
    std::vector<std::int32_t> lean;       // by how much each is right of the middle
    std::vector<Side> side;
    std::vector<std::uint8_t> at_cut;
    std::vector<Point> cut;  // places of those at it
  };

  void take_points(const Point* begin, const Point* end);
  void take_cells(const Layer& fine, Layer& coarse);
  void take_neighbors(const Layer& layer);
  void search_ways(const Layer& layer);
  Point search(Point start, std::vector<std::int32_t>& hops);
  void smooth(std::vector<std::int32_t>& keys);
  std::int64_t take_way(int way, std::size_t top, std::size_t last, std::int64_t points);
  void refine(const Layer& coarse, Layer& fine);
  std::int32_t find_middle(const Layer& layer, std::int64_t points, std::int64_t& taken);
  void halve_by_keys(Layer& layer, std::int64_t points);
  static std::int64_t edges_cut(const Layer& layer);
  void find_cut(Layer& layer);

  const Context& ctx_;
  const CellGraphs& graphs_;
  std::vector<Layer> layers_;  // as the graphs
  std::vector<Point> first_;   // neighbors of each cell of the coarsest layer in use, by their places
  std::vector<Point> neighbors_;
  std::vector<Point> queue_;
  std::vector<std::int32_t> hops_[4];             // from four corners
  std::vector<std::int32_t> ways_[kHalvingWays];  // keys of each way, in the coarsest layer
  std::vector<std::int32_t> keys_;
  std::vector<std::int32_t> means_;
  std::vector<std::int64_t> at_key_;
  std::vector<Point> near_;  // places from which the cut is looked for
};

}  // namespace vicinal::solver
