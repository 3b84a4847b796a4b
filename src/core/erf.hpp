// The error function by additions, multiplications and divisions, each rounded once: the same bits for host and device
// (contract clause 13), which no two C libraries promise. Relative error below 2^-48; O(1), some 100 operations.
#pragma once

#include <cmath>

#include "core/distance.hpp"

namespace vicinal::core {

/// e^y for y in [-700, 0]: 2^q times the Taylor series on [-ln 2 / 2, ln 2 / 2]; relative error below 2^-50.
VICINAL_HD inline double exp_of_negative(double y) noexcept {
  constexpr double kLn2High = 0x1.62e42feep-1;  // 33 bits: its product with a small integer is exact
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr double kLog2E = 1.4426950408889634;
  const double q = std::floor(y * kLog2E + 0.5);
  const double r = (y - q * kLn2High) - q * kLn2Low;
  double series = 1;
  for (int i = 14; i >= 1; --i) series = 1 + series * r / i;
  return series * power_of_two(static_cast<int>(q));
}

/// erf(x) for x >= 0. To 2: 2 / sqrt(pi) x e^(-x^2) (1 + z / 3 + z^2 / (3 * 5) + ...), z = 2 x^2, all of whose terms
/// are positive, and the first left out below 2^-60 of the sum. Beyond: 1 - erfc(x) by its continued fraction, cut
/// where it is known to 2^-48 of erfc(2) = 0.005. From 6 on 1 is within 2^-54.
VICINAL_HD inline double erf_of(double x) noexcept {
  constexpr double kTwoOverRootPi = 1.1283791670955126;
  if (x >= 6) return 1;
  const double square = x * x;
  const double bell = exp_of_negative(0 - square);
  const double z = 2 * square;
  if (x <= 2) {
    double series = 1;
    for (int i = 40; i >= 1; --i) series = 1 + series * z / (2 * i + 1);
    return kTwoOverRootPi * x * bell * series;
  }
  double fraction = 1;
  for (int i = 48; i >= 1; --i) fraction = 1 + i / (z * fraction);
  return 1 - bell * kTwoOverRootPi / (2 * x * fraction);
}

}  // namespace vicinal::core
