// A layer of polygons made ready: rings closed and all turned one way, their edges in runs with boxes, areas. What the
// overlap join works on (contract clause 18). O(points) time and memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "vicinal/polygons.hpp"

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

/// Without branches: which of the four fails is anyone's guess.
constexpr bool meet(const Box& a, const Box& b) noexcept {
  return ((a.x0 <= b.x1) & (b.x0 <= a.x1) & (a.y0 <= b.y1) & (b.y0 <= a.y1)) != 0;
}

/// Consecutive edges of one ring: edge e goes from points[first + e] to points[first + e + 1].
struct Run {
  Box box;
  std::int64_t first = 0;
  std::int64_t edges = 0;
  std::int64_t ring = 0;  ///< of the layer
};

/// Shells run clockwise and holes the other way, so that an edge that goes to the right has its region below it.
struct Layer {
  std::vector<Point> points;            ///< each ring's, the first one again at its end
  std::vector<Run> runs;                ///< ring after ring
  std::vector<std::int64_t> first_run;  ///< [n + 1]
  std::vector<Box> boxes;               ///< [n]; of an empty feature, one that meets none
  std::vector<double> areas;            ///< [n]: shells less holes

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(boxes.size()); }
};

/// Bytes that `make_layer` takes.
std::uint64_t layer_bytes(const PolygonsView& polygons);

/// Throws `invalid_argument` for offsets that are none, `bad_data` for a coordinate that is not finite or beyond 1e150;
/// both name `name`, feature and point.
Layer make_layer(const Context& ctx, const PolygonsView& polygons, std::string_view name);

}  // namespace vicinal::geo
