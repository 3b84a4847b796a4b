// The azimuthal equal-area projection of the plug-in for files of polygons, against a published point and the areas
// that it must keep. That it is PROJ's is tested where PROJ is (tests/cli/overlap/test_match.py).
#include "gdal/laea.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace vicinal::gdal {
namespace {

// IOGP guidance note 7-2, ETRS89-LAEA (EPSG:3035), to its last figure.
TEST(Laea, PublishedPoint) {
  const Laea europe({6378137.0, 1 / 298.257222101}, 52, 10);
  const Laea::Place place = europe(5, 50);
  EXPECT_TRUE(std::fabs(place.x + 4321000 - 3962799.45) <= 0.006) << place.x;
  EXPECT_TRUE(std::fabs(place.y + 3210000 - 2999718.85) <= 0.006) << place.y;
  const Laea::Place middle = europe(10, 52);
  EXPECT_TRUE(std::fabs(middle.x) <= 1e-8 && std::fabs(middle.y) <= 1e-8);
}

// The determinant of its derivatives is the area of a degree by a degree: M N cos(latitude), M and N the radii of
// curvature. Central differences of step h are off by h^2 / 6 times a third derivative, of the order of 1e-6 of the
// first for h = 1e-3 degrees, and by rounding, 1e-9 m by 2 h: less than 1e-5 together, 15 degrees or more from
// the point opposite to the middle.
TEST(Laea, KeepsAreas) {
  const double squared = kWgs84.flattening * (2 - kWgs84.flattening);
  const double radian = std::numbers::pi / 180;
  const double h = 1e-3;
  for (const double about : {-75.0, -45.0, 0.1, 40.7, 89.0}) {
    const Laea plane(kWgs84, about, -73);
    for (const double latitude : {-60.0, -30.0, 0.0, 15.0, 41.0, 60.0, 89.0}) {
      for (const double longitude : {-140.0, -74.0, -73.0, 10.0}) {
        const Laea::Place east = plane(longitude + h, latitude);
        const Laea::Place west = plane(longitude - h, latitude);
        const Laea::Place north = plane(longitude, latitude + h);
        const Laea::Place south = plane(longitude, latitude - h);
        const double area = ((east.x - west.x) * (north.y - south.y) - (east.y - west.y) * (north.x - south.x)) /
                            (4 * h * h * radian * radian);
        const double sine = std::sin(latitude * radian);
        const double w = 1 - squared * sine * sine;
        const double exact = kWgs84.radius * kWgs84.radius * (1 - squared) / (w * w) * std::cos(latitude * radian);
        EXPECT_TRUE(std::fabs(area / exact - 1) <= 1e-5) << about << ": " << longitude << ", " << latitude;
      }
    }
  }
}

// A latitude a rounding beyond a pole, up to 1e-12 radians as PROJ has it, is the pole.
TEST(Laea, RoundingBeyondAPole) {
  const Laea plane(kWgs84, 45, 10);
  for (const double pole : {-90.0, 90.0}) {
    const Laea::Place at = plane(50, pole);
    for (const double beyond : {1e-14, 5e-11}) {
      const Laea::Place place = plane(50, pole + std::copysign(beyond, pole));
      EXPECT_TRUE(std::fabs(place.x - at.x) <= 1e-9 && std::fabs(place.y - at.y) <= 1e-9) << pole << ", " << beyond;
    }
    EXPECT_FALSE(std::isfinite(plane(50, pole + std::copysign(6e-11, pole)).x));
  }
}

TEST(Laea, Nowhere) {
  const Laea plane(kWgs84, 0.1, 0);
  EXPECT_FALSE(std::isfinite(plane(0, 90.001).x));
  EXPECT_FALSE(std::isfinite(plane(0, NAN).x));
  EXPECT_FALSE(std::isfinite(plane(INFINITY, 0).x));
  EXPECT_FALSE(std::isfinite(plane(180, -0.1).x));  // opposite to the middle
  EXPECT_TRUE(std::isfinite(plane(0, 90).x));
  EXPECT_TRUE(std::fabs(plane(361, 10).x - plane(1, 10).x) <= 1e-6);  // a turn further is the same place
}

}  // namespace
}  // namespace vicinal::gdal
