// Points, boxes, runs of edges and layers of polygons in the plane, and the coordinates that the join takes (contract
// clause 18), for host and device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/infinity.hpp"

namespace vicinal::geo {

struct Point {
  double x = 0;
  double y = 0;

  friend bool operator==(const Point&, const Point&) = default;
};

struct Box {
  double x0 = 0;
  double y0 = 0;
  double x1 = 0;
  double y1 = 0;
};

/// Meets no box, and widens to any.
inline constexpr Box kEmptyBox = {kInfinity, kInfinity, -kInfinity, -kInfinity};

constexpr Box box_of(const Point& p, const Point& q) noexcept {
  return {std::min(p.x, q.x), std::min(p.y, q.y), std::max(p.x, q.x), std::max(p.y, q.y)};
}

constexpr void widen(Box& box, const Point& p) noexcept {
  box.x0 = std::min(box.x0, p.x);
  box.y0 = std::min(box.y0, p.y);
  box.x1 = std::max(box.x1, p.x);
  box.y1 = std::max(box.y1, p.y);
}

/// Coordinates are 0 or of a magnitude from kSmallest to kLargest. Every coordinate is then a multiple of 2^-451, so
/// that products of two coordinates or differences are multiples of 2^-902 and at most 4e280: their float64 roundings
/// neither underflow nor overflow, the rounding error of a product is a float64, and 2^63 such products have a finite
/// sum.
inline constexpr double kSmallest = 1e-120;
inline constexpr double kLargest = 1e140;

/// Without branches: which of the four fails is anyone's guess.
constexpr bool meet(const Box& a, const Box& b) noexcept {
  return ((a.x0 <= b.x1) & (b.x0 <= a.x1) & (a.y0 <= b.y1) & (b.y0 <= a.y1)) != 0;
}

/// Consecutive edges of one chain: edge e goes from points[first + e] to points[first + e + 1]. A chain is a closed
/// ring, or what is left of a ring between stretches that the feature runs along twice (border.hpp).
struct Run {
  Box box;
  std::int64_t first = 0;
  std::int64_t edges = 0;
  std::int64_t chain = 0;  ///< another number for each chain of a feature
};

/// Shells run clockwise and holes the other way, so that an edge that goes to the right has its region below it.
struct Layer {
  std::vector<Point> points;            ///< each chain's; a ring has its first one again at its end
  std::vector<Run> runs;                ///< chain after chain
  std::vector<std::int64_t> first_run;  ///< [n + 1]
  std::vector<Box> boxes;               ///< [n]; of an empty feature, one that meets none
  std::vector<double> areas;            ///< [n]: shells less holes

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(boxes.size()); }
};

}  // namespace vicinal::geo
