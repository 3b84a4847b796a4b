// The fewest vertices of a band that, taken out, leave no path from its left to its right edge: a minimum vertex cut,
// by augmenting paths in levels (Dinic 1970; on the band of cut edges alone this is Koenig's cover by Hopcroft and
// Karp). O(members * sqrt(vertices)) on such networks of unit capacities.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/rows.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

enum class Side : std::uint8_t { separator, left, right };

/// Vertices [0, n), joined where they share a hub; those that touch what lies left or right of it are marked.
struct Band {
  std::vector<Point> first_hub;        ///< [n + 1]
  std::vector<Point> hubs;             ///< of each vertex
  std::vector<Point> first_vertex;     ///< [hubs + 1]
  std::vector<Point> vertices;         ///< of each hub
  std::vector<std::uint8_t> at_left;   ///< [n]
  std::vector<std::uint8_t> at_right;  ///< [n]

  [[nodiscard]] Point size() const noexcept { return static_cast<Point>(at_left.size()); }
};

/// The side of each vertex: no hub joins left and right, the separator is as small as can be, and of those of that
/// size the one nearest to the left. Polls for cancellation as it goes.
std::vector<Side> separate(const Context& ctx, const Band& band);

}  // namespace vicinal::solver
