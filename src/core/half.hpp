// float16 (binary16) from and to float64, rounded in a named direction, for host and device. Exact for every double:
// subnormal results, overflow, infinities and NaN included. Host and device agree bit for bit; also the float32 that is
// not above a double. Cost: some ten operations.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/order.hpp"

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

namespace vicinal::core {

enum class HalfRounding : std::uint8_t { nearest_even, up, down };

inline constexpr double kHalfMax = 65504;
inline constexpr double kHalfNormal = 0x1p-14;  ///< the least positive number that is not subnormal

/// The bits of the float16 nearest to `value`, or the least one not below it, or the largest one not above it.
VICINAL_HD inline std::uint16_t half_bits(double value, HalfRounding rounding) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000U);
  const double magnitude = std::fabs(value);
  if (magnitude != magnitude) return 0x7e00;
#if defined(__CUDA_ARCH__)
  // The same by instructions; twice up or twice down is as good as once, because every float16 is a float32.
  const __half rounded = rounding == HalfRounding::nearest_even ? __double2half(value)
                         : rounding == HalfRounding::up         ? __float2half_ru(__double2float_ru(value))
                                                                : __float2half_rd(__double2float_rd(value));
  return __half_as_ushort(rounded);
#endif
  // Away from zero, toward it, or to the nearest: what the direction means for the magnitude.
  const bool grow = rounding == (sign == 0 ? HalfRounding::up : HalfRounding::down);
  if (magnitude >= 0x1p16) {
    const bool infinite = grow || rounding == HalfRounding::nearest_even || magnitude > 0x1.fffffffffffffp1023;
    return static_cast<std::uint16_t>(sign | (infinite ? 0x7c00U : 0x7bffU));
  }
  // Counted in units of the last place, 2^(exponent - 10); below 2^-14 the unit stays what it is there.
  const int of_value = static_cast<int>(bits >> 52 & 0x7ffU) - 1023;
  const int exponent = of_value < -14 ? -14 : of_value;
  const std::uint64_t power = static_cast<std::uint64_t>(1033 - exponent) << 52;
  double scale = 0;
  std::memcpy(&scale, &power, sizeof scale);
  const double units = magnitude * scale;  // exact: a power of two that does not shrink subnormal doubles
  auto whole = static_cast<std::uint32_t>(units);
  const double rest = units - whole;
  if (rounding == HalfRounding::nearest_even) {
    whole += rest > 0.5 || (rest == 0.5 && (whole & 1U) != 0) ? 1 : 0;
  } else {
    whole += grow && rest > 0 ? 1 : 0;
  }
  // A carry runs into the exponent, as it should, and from the largest number to infinity.
  return static_cast<std::uint16_t>(sign | ((static_cast<std::uint32_t>(exponent + 14) << 10) + whole));
}

/// The value of a float16.
VICINAL_HD inline double half_value(std::uint16_t bits) noexcept {
#if defined(__CUDA_ARCH__)
  return static_cast<double>(__half2float(__ushort_as_half(bits)));
#endif
  const int exponent = bits >> 10 & 0x1f;
  const auto fraction = static_cast<std::uint64_t>(bits & 0x3ffU);
  double magnitude = 0;
  if (exponent == 0) {
    magnitude = static_cast<double>(fraction) * 0x1p-24;
  } else {
    const std::uint64_t wide =
        (exponent == 31 ? std::uint64_t{2047} : static_cast<std::uint64_t>(exponent + 1008)) << 52 | fraction << 42;
    std::memcpy(&magnitude, &wide, sizeof magnitude);
  }
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

/// The largest float32 not above `value`. NaN stays NaN.
VICINAL_HD inline float float_down(double value) noexcept {
#if defined(__CUDA_ARCH__)
  return __double2float_rd(value);
#endif
  const auto nearest = static_cast<float>(value);
  if (!(static_cast<double>(nearest) > value)) return nearest;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &nearest, sizeof bits);
  bits = nearest > 0 ? bits - 1 : (nearest < 0 ? bits + 1 : 0x80000001U);
  float below = 0;
  std::memcpy(&below, &bits, sizeof below);
  return below;
}

}  // namespace vicinal::core
