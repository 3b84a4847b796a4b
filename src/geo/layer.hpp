// A layer of polygons prepared for the overlap join (contract clause 18): borders with all rings turned one way, their
// edges in runs with boxes, and areas. The border of a feature that touches itself is cut there (border.hpp), so that
// the edges of a border meet in common end points only. O(points) memory, and time but for border.hpp's worst case.
#pragma once

#include <cstdint>
#include <string_view>

#include "formulas/overlap/plane.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal::geo {

/// Bytes that `make_layer` takes, but for corners at which features touch themselves.
std::uint64_t layer_bytes(const PolygonsView& polygons);

/// Throws `invalid_argument` for offsets that are none, `bad_data` for a coordinate that is not 0 and not of a
/// magnitude from kSmallest to kLargest; both name `name`, feature and point. Throws `over_memory` where features touch
/// themselves in more corners than the memory limit allows.
Layer make_layer(const Context& ctx, const PolygonsView& polygons, std::string_view name);

}  // namespace vicinal::geo
