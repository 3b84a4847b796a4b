// Lambert's azimuthal equal-area projection of an ellipsoid, forward (Snyder 1987, pages 187-190): what PROJ's `laea`
// computes, so that coordinates are PROJ 9's within 1e-9 m (bits are its version's and libm's) and areas those of other
// tools, but without PROJ's tables being searched for a way or a call being made for every point.
#pragma once

#include <cmath>
#include <numbers>

namespace vicinal::gdal {

struct Ellipsoid {
  double radius = 0;      ///< of the equator, meters
  double flattening = 0;  ///< above 0
};
inline constexpr Ellipsoid kWgs84 = {6378137.0, 1 / 298.257223563};

class Laea {
 public:
  struct Place {
    double x = 0;
    double y = 0;
  };

  /// Whether a middle at that latitude is neither on the equator nor near a pole, where PROJ has other formulas.
  static constexpr bool suits(double latitude) {
    return latitude != 0 && latitude >= -kFarthestMiddle && latitude <= kFarthestMiddle;
  }

  /// About a middle in degrees.
  Laea(const Ellipsoid& ellipsoid, double latitude, double longitude)
      : squared_(2 * ellipsoid.flattening - ellipsoid.flattening * ellipsoid.flattening),
        eccentricity_(std::sqrt(squared_)),
        radius_(ellipsoid.radius),
        longitude_(longitude * kRadian) {
    at_pole_ = authalic(1);
    const double sphere =
        std::sqrt(at_pole_ / 2);  // the radius of the sphere of the same area, that of the equator being 1
    const double sine = std::sin(latitude * kRadian);
    sine_ = authalic(sine) / at_pole_;
    cosine_ = std::sqrt(1 - sine_ * sine_);
    const double stretch = std::cos(latitude * kRadian) / (std::sqrt(1 - squared_ * sine * sine) * sphere * cosine_);
    across_ = sphere * stretch;
    along_ = sphere / stretch;
  }

  /// In meters; not a number where there is no such place, or it is opposite to the middle.
  [[nodiscard]] Place operator()(double longitude, double latitude) const {
    double north = latitude * kRadian;
    if (!(std::fabs(north) - kPole <= kBeyondPole && std::fabs(longitude) <= kFarthest)) return {NAN, NAN};
    if (std::fabs(north) > kPole) north = std::copysign(kPole, north);
    const double turn = longitude * kRadian - longitude_;
    const double sine = authalic(std::sin(north)) / at_pole_;
    const double cosine = std::sqrt(std::fmax(0.0, 1 - sine * sine));
    const double cosine_of_turn = std::cos(turn);
    const double nearness = 1 + sine_ * sine + cosine_ * cosine * cosine_of_turn;
    if (!(nearness > kOpposite)) return {NAN, NAN};
    const double scale = std::sqrt(2 / nearness);
    return {radius_ * (across_ * scale * cosine * std::sin(turn)),
            radius_ * (along_ * scale * (cosine_ * sine - sine_ * cosine * cosine_of_turn))};
  }

 private:
  static constexpr double kRadian = std::numbers::pi / 180;
  static constexpr double kPole = std::numbers::pi / 2;
  static constexpr double kBeyondPole = 1e-12;  // radians that PROJ takes for rounding
  static constexpr double kFarthestMiddle = 89;
  static constexpr double kFarthest = 10 / kRadian;  // degrees: PROJ's own limit
  static constexpr double kOpposite = 1e-10;

  /// Snyder's q of a sine of latitude.
  [[nodiscard]] double authalic(double sine) const {
    const double part = eccentricity_ * sine;
    return (1 - squared_) * (sine / (1 - part * part) - (0.5 / eccentricity_) * std::log((1 - part) / (1 + part)));
  }

  double squared_;  // of the eccentricity
  double eccentricity_;
  double radius_;
  double longitude_;  // of the middle
  double at_pole_ = 0;
  double sine_ = 0;  // of the middle's authalic latitude
  double cosine_ = 0;
  double across_ = 0;  // radii a unit to the east
  double along_ = 0;   // and to the north
};

}  // namespace vicinal::gdal
