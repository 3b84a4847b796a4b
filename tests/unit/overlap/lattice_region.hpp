// Regions of triangles with small whole coordinates, and how two of them lie, found without the library: every edge is
// cut at every point where it meets another, exactly, in rational numbers; each piece says what is on its two sides.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "vicinal/polygons.hpp"

namespace vicinal::lattice {

struct Corner {
  std::int64_t x = 0;
  std::int64_t y = 0;

  friend auto operator<=>(const Corner&, const Corner&) = default;
};

using Ring = std::vector<Corner>;
using Part = std::vector<Ring>;  ///< the shell, then its holes
using Region = std::vector<Part>;

using Triangle = std::vector<Corner>;  ///< three corners, counterclockwise
using Random = std::mt19937_64;

/// How a set of triangles is divided into parts.
enum class Division { triangles, connected, colored };

/// Triangles that share no inner point, as a region: its parts, rings begun anywhere, in either direction, with or
/// without the corners that lie on a straight line.
Region region_of(const std::vector<Triangle>& triangles, Division division, Random& random);

struct Lie {
  RegionRelation relation = RegionRelation::disjoint;
  __float128 area = 0;  ///< that both cover, but for 2^-100 of itself
};

/// By the definition of a region, whatever the direction of its rings: a place is in a part that has an odd number of
/// the shell's edges above it and an even number of each hole's.
Lie lie_of(const Region& a, const Region& b);

/// Twice the area of triangles.
std::int64_t doubled_area(const std::vector<Triangle>& triangles);

}  // namespace vicinal::lattice
