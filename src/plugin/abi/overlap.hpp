// The plug-in's interface for maps: plain structs, as in plugin.hpp. A device decides the pairs that need no exact
// sign and few edges, to the bit as the host does, and leaves the others to the host.
#pragma once

#include "formulas/overlap/plane.hpp"
#include "plugin/abi/plugin.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal::plugin {

/// A geo::Layer in host memory.
struct PolygonLayer {
  const geo::Point* points = nullptr;
  const geo::Run* runs = nullptr;
  const std::int64_t* first_run = nullptr;  ///< [features + 1]
  const geo::Box* boxes = nullptr;
  const double* areas = nullptr;
  std::int64_t features = 0;
  std::int64_t point_count = 0;
};

/// Of a pair that the host is to decide.
inline constexpr RegionRelation kUndecided{255};

struct OverlapJoin {
  PolygonLayer a;
  PolygonLayer b;
  std::int32_t widths = 0;
  /// Host memory for so many pairs more, whose boxes meet: those of a part of `a` and one of `b`, by (a, b); parts of
  /// `b` one after the other, and within each those of `a`. Not 0: it failed.
  std::int32_t (*make_room)(void* user, std::int64_t pairs, Overlap** to) = nullptr;
  void* user = nullptr;

  double seconds = 0;  ///< filled: layers being on the device, until pairs are there
};

}  // namespace vicinal::plugin
