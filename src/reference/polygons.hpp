// The oracle of the overlap join: areas by slabs between all corners and crossings, in 113 bits, with no idea of the
// library's (contract clause 18). O(e^3) for e edges; for whole numbers of up to some hundreds every answer is right to
// 1e-25, far below any area or distance that such corners can make but 0, so that relations are exact, too.
#pragma once

#include <cstdint>

#include "vicinal/polygons.hpp"

namespace vicinal::reference {

struct Shared {
  double area = 0;       ///< of what both cover
  double perimeter = 0;  ///< of that
  double area_a = 0;
  double area_b = 0;
  RegionRelation relation = RegionRelation::disjoint;
};

/// Of feature i of `a` and feature j of `b`; regions that cover no place twice.
Shared shared(const PolygonsView& a, std::int64_t i, const PolygonsView& b, std::int64_t j);

}  // namespace vicinal::reference
