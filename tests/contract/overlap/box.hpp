// A feature that is a rectangle.
#pragma once

#include "vicinal/polygons.hpp"

namespace vicinal::contract {

inline void add_box(Polygons& to, double x0, double y0, double x1, double y1) {
  const double xy[] = {x0, y0, x1, y0, x1, y1, x0, y1};
  to.add_ring(xy);
  to.end_part();
  to.end_feature();
}

}  // namespace vicinal::contract
