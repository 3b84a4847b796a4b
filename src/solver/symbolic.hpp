// What a factor of M will look like before a number of it is known: for each node of the dissection, which is one dense
// panel, its rows; its work; the parts of the tree that workers take whole; and the memory of it all. Because a
// dissection's halves are connected, panels are dense but for some zeros in leaves: nothing is merged afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simd/dense_kernels.hpp"
#include "solver/ordering.hpp"
#include "solver/rows.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

/// What a front takes from the `side` rows below it is kept without most of its upper triangle: columns of a tile from
/// the tile's first row on, tile after tile. Where (0, j) would be; (i, j) is i further.
constexpr std::int64_t square_column(std::int64_t side, std::int64_t j) noexcept {
  const std::int64_t tile = j / cpu::kDenseTile;
  const std::int64_t top = tile * cpu::kDenseTile;
  return top * side - top * (top - cpu::kDenseTile) / 2 + (j - top) * (side - top) - top;
}
/// How many numbers that are.
constexpr std::int64_t square_room(std::int64_t side) noexcept {
  return square_column(side, side) + side / cpu::kDenseTile * cpu::kDenseTile;
}

struct Symbolic {
  std::vector<Dissection::Node> nodes;                       ///< in the new numbering, children before parents
  std::vector<std::vector<std::int32_t>> children;           ///< of each node
  std::vector<std::vector<Point>> rows;                      ///< below the own points of each node, ascending
  std::vector<std::int64_t> panel;                           ///< [nodes + 1] where each panel begins in the factor
  std::vector<std::pair<std::int32_t, std::int32_t>> trees;  ///< [begin, end) of a task's nodes, by falling work
  std::vector<std::int32_t> top;                             ///< the nodes above them, ascending
  std::vector<std::int32_t> depth;                           ///< of each node; 0: a root
  std::array<std::int64_t, 2> most_stacked{};  ///< numbers of squares that wait within a tree, by depth % 2
  std::int64_t fill = 0;                       ///< entries of L on and below its diagonal
  double flops = 0;                            ///< multiplications and additions of the factor
  std::uint64_t factor_bytes = 0;              ///< panels, in five bytes a number
  std::uint64_t front_bytes = 0;               ///< at most, of fronts that wait while `threads` work

  /// Of this description: each node's rows, and some words.
  [[nodiscard]] std::uint64_t list_bytes() const noexcept {
    constexpr std::uint64_t kNode = 192;
    std::uint64_t bytes = kNode * nodes.size();
    for (const std::vector<Point>& of : rows) bytes += of.capacity() * sizeof(Point);
    return bytes;
  }
  [[nodiscard]] std::int64_t own(std::int32_t node) const noexcept { return nodes[node].end - nodes[node].begin; }
  [[nodiscard]] std::int64_t below(std::int32_t node) const noexcept {
    return static_cast<std::int64_t>(rows[node].size());
  }
};

/// `pattern` in the old numbering. O(entries).
Symbolic analyse(const Context& ctx, const Pattern& pattern, const Dissection& dissection);

}  // namespace vicinal::solver
