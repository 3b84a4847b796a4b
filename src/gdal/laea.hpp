// Lambert's azimuthal equal-area projection of an ellipsoid, forward (Snyder 1987, pages 187-190): what PROJ's `laea`
// computes, for the one case that most files are, at a few square roots and a sine and cosine each a point.
#pragma once

#include <cmath>
#include <numbers>

namespace vicinal::gdal {

struct Ellipsoid {
  double radius = 0;      ///< of the equator, metres
  double flattening = 0;  ///< above 0
};
inline constexpr Ellipsoid kWgs84 = {6378137.0, 1 / 298.257223563};

class Laea {
 public:
  struct Place {
    double x = 0;
    double y = 0;
  };

  /// About a middle in degrees, within `kFarthestMiddle` of the equator: nearer to a pole the formulas are others.
  Laea(const Ellipsoid& ellipsoid, double latitude, double longitude)
      : squared_(ellipsoid.flattening * (2 - ellipsoid.flattening)), longitude_(longitude) {
    const double sine = std::sin(latitude * kRadian);
    at_pole_ = authalic(1);
    sine_ = authalic(sine) / at_pole_;
    cosine_ = std::sqrt(1 - sine_ * sine_);
    const double sphere = ellipsoid.radius * std::sqrt(at_pole_ / 2);  // the radius of the sphere of the same area
    const double parallel = ellipsoid.radius * std::cos(latitude * kRadian) / std::sqrt(1 - squared_ * sine * sine);
    const double stretch = parallel / (sphere * cosine_);
    across_ = sphere * stretch;
    along_ = sphere / stretch;
  }

  /// In metres; not finite where there is no such place, or it is opposite to the middle.
  [[nodiscard]] Place operator()(double longitude, double latitude) const {
    if (!(std::fabs(latitude) <= 90 && std::fabs(longitude) <= kFarthest)) return {NAN, NAN};
    const double turn = (longitude - longitude_) * kRadian;
    const double sine = authalic(std::sin(latitude * kRadian)) / at_pole_;
    const double cosine = std::sqrt(std::fmax(0.0, 1 - sine * sine));
    const double cosine_of_turn = std::cos(turn);
    const double nearness = 1 + sine_ * sine + cosine_ * cosine * cosine_of_turn;
    if (!(nearness > kOpposite)) return {NAN, NAN};
    const double scale = std::sqrt(2 / nearness);
    return {across_ * scale * cosine * std::sin(turn),
            along_ * scale * (cosine_ * sine - sine_ * cosine * cosine_of_turn)};
  }

  static constexpr double kFarthestMiddle = 89;

 private:
  static constexpr double kRadian = std::numbers::pi / 180;
  static constexpr double kFarthest = 10 / kRadian;  // degrees: PROJ's own limit
  static constexpr double kOpposite = 1e-10;

  /// Snyder's q of a sine of latitude. With z = e^2 sin^2 it is (1 - e^2) sin (1 / (1 - z) + sum of z^k / (2 k + 1)):
  /// the terms beyond the eighth are below 2^-61, z being at most 0.0068.
  [[nodiscard]] double authalic(double sine) const {
    const double z = squared_ * sine * sine;
    double series = 0;
    for (int k = 7; k >= 0; --k) series = series * z + 1.0 / (2 * k + 1);
    return (1 - squared_) * sine * (1 / (1 - z) + series);
  }

  double squared_;    // of the eccentricity
  double longitude_;  // of the middle, degrees
  double at_pole_ = 0;
  double sine_ = 0;  // of the middle's authalic latitude
  double cosine_ = 0;
  double across_ = 0;  // metres a unit to the east
  double along_ = 0;   // and to the north
};

}  // namespace vicinal::gdal
