// Polygons in degrees that reach over the antimeridian, cut there, so that every piece lies in [-180, 180] and can be
// projected to a map of the world.
#pragma once

#include <ogrsf_frmts.h>

#include <memory>

namespace vicinal::gdal {

/// Whether a step along a ring goes more than halfway around the globe, or a point lies beyond 180 degrees.
bool crosses_antimeridian(const OGRPolygon& polygon);

/// The pieces of a polygon that crosses it. A step of more than 180 degrees of longitude is the short way around; one
/// of 360 none at all; but where a ring that runs along the antimeridian would then go around or enclose nothing, steps
/// of 360 are as wide as they say: it was cut by whoever made it. A ring that goes around once is closed over the pole
/// on whose side of the equator the shell's points lie on average. What an odd number of rings encloses is inside; the
/// cut is straight in degrees. Null where GEOS cannot do it.
std::unique_ptr<OGRGeometry> cut_at_antimeridian(const OGRPolygon& polygon);

}  // namespace vicinal::gdal
