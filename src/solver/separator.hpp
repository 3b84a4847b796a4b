// The fewest vertices of a band that, taken out, leave no path from its left to its right edge: a minimum vertex cut,
// by augmenting paths in levels (Dinic 1970; on the band of cut edges alone this is Koenig's cover by Hopcroft and
// Karp). O(edges * sqrt(vertices)) on such networks of unit capacities.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/rows.hpp"

namespace vicinal::solver {

enum class Side : std::uint8_t { separator, left, right };

/// A graph of vertices [0, n) with edges in both directions; those that touch what lies left or right of it are marked.
struct Band {
  std::vector<std::int64_t> first;  ///< [n + 1]
  std::vector<Point> neighbors;
  std::vector<std::uint8_t> at_left;   ///< [n]
  std::vector<std::uint8_t> at_right;  ///< [n]
};

/// The side of each vertex: no edge joins left and right, the separator is as small as can be, and of those of that
/// size the one nearest to the left.
std::vector<Side> separate(const Band& band);

}  // namespace vicinal::solver
