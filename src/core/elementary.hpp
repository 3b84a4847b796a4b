// sin, cos and log by additions, multiplications and one division, each rounded once: the same bits on every machine
// (contract clause 4), which no two C libraries promise. Errors are a few units in the last place; arguments are those
// that generated tables need, |angle| <= 1000.
#pragma once

#include <cmath>

namespace vicinal::core {

struct SinCos {
  double sin;
  double cos;
};

/// Sine and cosine of an angle in radians. The nearest multiple of pi / 2 is taken off in two steps (its first part has
/// 33 bits, so that its product with a small integer is exact), then the Taylor series is summed, on [-pi/4, pi/4].
inline SinCos sin_cos(double angle) noexcept {
  constexpr double kTwoOverPi = 0.63661977236758134308;
  constexpr double kHalfPiHigh = 0x1.921fb544p+0;
  constexpr double kHalfPiLow = 0x1.0b4611a626331p-34;
  const double quarter = std::floor(angle * kTwoOverPi + 0.5);
  const double r = (angle - quarter * kHalfPiHigh) - quarter * kHalfPiLow;
  const double z = r * r;
  double s = 0;
  double c = 0;
  // Horner's scheme on sum (-1)^i z^i / (2i + 1)! and sum (-1)^i z^i / (2i)!; the first term left out is below 2^-60.
  for (int i = 9; i >= 1; --i) {
    s = (1 + s) * (-z / ((2 * i) * (2 * i + 1)));
    c = (1 + c) * (-z / ((2 * i - 1) * (2 * i)));
  }
  s = r + r * s;
  c = 1 + c;
  switch (static_cast<long long>(quarter) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

/// Natural logarithm of a positive normal number: exponent times ln 2, plus 2 atanh(s), s = (m - 1) / (m + 1), of the
/// mantissa m in [sqrt(1/2), sqrt(2)).
inline double natural_log(double x) noexcept {
  constexpr double kLn2High = 0x1.62e42fefa39efp-1;
  constexpr double kLn2Low = 0x1.abc9e3b39803fp-56;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752440) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double series = 0;
  for (int i = 11; i >= 1; --i) series = (series + 1.0 / (2 * i + 1)) * z;
  return exponent * kLn2High + (2 * s + (2 * s * series + exponent * kLn2Low));
}

}  // namespace vicinal::core
