// 128-bit fixed point and the tables of `power`, computed by the compiler from ln 2 and series, so that no table of
// digits has to be believed. Qn means an integer in units of 2^-n. Every entry is within 2^-120 of its value (unit
// test).
#pragma once

#include <cstdint>

#include "core/order.hpp"

namespace vicinal::core::fixed {

__extension__ typedef unsigned __int128 U128;
__extension__ typedef __int128 I128;

inline constexpr U128 make_u128(std::uint64_t high, std::uint64_t low) {
  return (U128{high} << 64) | low;
}

inline constexpr U128 kLn2 = make_u128(0xb17217f7d1cf79ab, 0xc9e3b39803f2f6af);         // Q128
inline constexpr U128 kInverseLn2 = make_u128(0xb8aa3b295c17f0bb, 0xbe87fed0691d3e88);  // Q127

/// floor(a * b / 2^128).
VICINAL_HD constexpr U128 mul_high(U128 a, U128 b) noexcept {
  const auto al = static_cast<std::uint64_t>(a);
  const auto ah = static_cast<std::uint64_t>(a >> 64);
  const auto bl = static_cast<std::uint64_t>(b);
  const auto bh = static_cast<std::uint64_t>(b >> 64);
  const U128 low = U128{al} * bl;
  const U128 cross1 = U128{ah} * bl;
  const U128 cross2 = U128{al} * bh;
  const U128 middle = (low >> 64) + static_cast<std::uint64_t>(cross1) + static_cast<std::uint64_t>(cross2);
  return U128{ah} * bh + (cross1 >> 64) + (cross2 >> 64) + (middle >> 64);
}

/// floor(a * b / 2^64).
VICINAL_HD constexpr U128 mul_high(U128 a, std::uint64_t b) noexcept {
  return (a >> 64) * b + ((static_cast<std::uint64_t>(a) * U128{b}) >> 64);
}

/// Steps of the two logarithm tables: leading 7 bits of the significand, then 2^-14 of what they leave.
inline constexpr int kLogSteps = 128;
inline constexpr int kFineSteps = 128;
/// Highest power of the remainder in log2(1 + r) / r, and of the exponent's remainder in 2^g.
inline constexpr int kLogDegree = 8;
inline constexpr int kExpDegree = 7;
/// Significands from this step on (1.4140625) are halved, so that numbers just below a power of two are just below 1.
inline constexpr int kHalvedFrom = 53;

struct PowerTables {
  std::uint64_t factor[kLogSteps];    // Q9: close to 1 / significand; 1 exactly next to 1
  I128 log_factor[kLogSteps];         // Q126: -log2(factor)
  I128 log_fine[2 * kFineSteps + 1];  // Q126: -log2(1 - j / 2^14) for j = -128 .. 128
  U128 log_series[kLogDegree + 1];    // Q127: 1 / (ln 2 (k + 1))
  U128 exp_coarse[128];               // Q127: 2^(j / 2^7)
  U128 exp_fine[128];                 // Q127: 2^(j / 2^14)
  U128 exp_series[kExpDegree + 1];    // Q128: (ln 2)^k / k!, k >= 1
};

/// atanh(a / b) for 0 <= a < b / 4, b < 2^16, as Q128.
constexpr U128 atanh_ratio(std::uint64_t a, std::uint64_t b) {
  const U128 numerator = U128{a} << 64;
  const auto high = static_cast<std::uint64_t>(numerator / b);
  const auto low = static_cast<std::uint64_t>(((numerator % b) << 64) / b);
  const U128 z = make_u128(high, low);
  const U128 square = mul_high(z, z);
  U128 sum = 0;
  U128 term = z;
  for (unsigned k = 1; term != 0; k += 2) {
    sum += term / k;
    term = mul_high(term, square);
  }
  return sum;
}

/// -log2(a / b) as Q126, for positive a, b with a / b within [3/5, 5/3]: 2 atanh((b - a) / (b + a)) / ln 2.
constexpr I128 minus_log2(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t difference = a > b ? a - b : b - a;
  const auto magnitude = static_cast<I128>(mul_high(atanh_ratio(difference, a + b), kInverseLn2));
  return a > b ? -magnitude : magnitude;
}

/// 2^x for x = Q128 in [0, 1), as Q127.
constexpr U128 exp2_series(U128 x) {
  const U128 y = mul_high(x, kLn2);
  U128 term = U128{1} << 127;
  U128 sum = term;
  for (unsigned k = 1; term != 0; ++k) {
    term = mul_high(term, y) / k;
    sum += term;
  }
  return sum;
}

constexpr PowerTables make_power_tables() {
  PowerTables tables{};
  for (int i = 0; i < kLogSteps; ++i) {
    // Middle of the step is (257 + 2 i) / 256, halved for the upper ones; beside 1 the factor is exactly 1.
    const auto middle = static_cast<std::uint64_t>(257 + 2 * i);
    const std::uint64_t numerator = i >= kHalvedFrom ? 2 * 512 * 256 : 512 * 256;
    const bool beside_one = i == 0 || i == kLogSteps - 1;
    tables.factor[i] = beside_one ? 512 : (numerator + middle / 2) / middle;
    tables.log_factor[i] = minus_log2(tables.factor[i], 512);
  }
  for (int j = -kFineSteps; j <= kFineSteps; ++j) {
    tables.log_fine[j + kFineSteps] = minus_log2(static_cast<std::uint64_t>((1 << 14) - j), 1 << 14);
  }
  for (unsigned k = 0; k <= kLogDegree; ++k) tables.log_series[k] = kInverseLn2 / (k + 1);
  for (unsigned j = 0; j < 128; ++j) {
    tables.exp_coarse[j] = exp2_series(U128{j} << 121);
    tables.exp_fine[j] = exp2_series(U128{j} << 114);
  }
  tables.exp_series[1] = kLn2;
  for (unsigned k = 2; k <= kExpDegree; ++k) tables.exp_series[k] = mul_high(tables.exp_series[k - 1], kLn2) / k;
  return tables;
}

inline constexpr PowerTables kPowerTables = make_power_tables();
#if defined(__CUDACC__)
static __device__ constexpr PowerTables kDevicePowerTables = make_power_tables();
#endif

VICINAL_HD inline const PowerTables& power_tables() noexcept {
#if defined(__CUDA_ARCH__)
  return kDevicePowerTables;
#else
  return kPowerTables;
#endif
}

}  // namespace vicinal::core::fixed
