// power(t, p) = t^p, correctly rounded but for values within 2^-90 of the middle between two floats (contract clause
// 1). Method: integer arithmetic on 128-bit significands, one rounding at the end, so the result is the same on every
// compiler and device. Small whole p: repeated products. Else log2 by two table steps and a series of the exact
// remainder, times p, then 2^x by two table steps and a series.
// Error before the rounding: log2 t is within 2^-104 of its value, relative (a unit test holds it against 113-bit
// arithmetic; near 1 the remainder keeps its own exponent); |p log2 t| < 2^11, so x = p log2 t is within 2^-93 absolute
// and t^p within 2^-92 relative. A result exactly in the middle of two floats, possible only for p = q / 2^s with q <=
// 34, s <= 5, is recognized and computed exactly. Cost: about 90 ns, small whole p about 15 ns.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/order.hpp"
#include "core/power_tables.hpp"

namespace vicinal::core {

namespace fixed {

/// significand / 2^127 * 2^exponent, the significand's top bit set.
struct Number {
  U128 significand;
  int exponent;
};

VICINAL_HD inline int leading_zeros(std::uint64_t x) noexcept {
#if defined(__CUDA_ARCH__)
  return __clzll(static_cast<long long>(x));
#else
  return __builtin_clzll(x);
#endif
}

VICINAL_HD inline int leading_zeros(U128 x) noexcept {
  const auto high = static_cast<std::uint64_t>(x >> 64);
  return high != 0 ? leading_zeros(high) : 64 + leading_zeros(static_cast<std::uint64_t>(x));
}

VICINAL_HD inline Number normalized(U128 value, int exponent_of_top_bit) noexcept {
  const int shift = leading_zeros(value);
  return {value << shift, exponent_of_top_bit - shift};
}

/// A positive finite float, exactly.
VICINAL_HD inline Number unpack(double t) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &t, sizeof bits);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const int biased = static_cast<int>(bits >> 52);
  if (biased == 0) return normalized(U128{fraction} << 75, -1022);
  return {U128{fraction | std::uint64_t{1} << 52} << 75, biased - 1023};
}

/// Product, cut to 128 bits: relative error below 2^-126, none when it fits.
VICINAL_HD inline Number multiply(const Number& a, const Number& b) noexcept {
  const U128 product = mul_high(a.significand, b.significand);
  const bool carried = (product >> 127) != 0;
  return {carried ? product : product << 1, a.exponent + b.exponent + (carried ? 1 : 0)};
}

/// x^q for 1 <= q <= 64: relative error below 2^-118, none when every bit fits.
VICINAL_HD inline Number whole_power(Number x, unsigned q) noexcept {
  while ((q & 1) == 0) {
    x = multiply(x, x);
    q >>= 1;
  }
  Number result = x;
  while ((q >>= 1) != 0) {
    x = multiply(x, x);
    if ((q & 1) != 0) result = multiply(result, x);
  }
  return result;
}

/// How many low bits of the significand a float of this exponent cannot hold.
VICINAL_HD inline int dropped_bits(int exponent) noexcept {
  return exponent >= -1022 ? 75 : 75 + (-1022 - exponent);
}

/// The nearest float, ties to even, one rounding for normal and subnormal results alike.
VICINAL_HD inline double round_to_double(const Number& x) noexcept {
  const int dropped = dropped_bits(x.exponent);
  if (dropped > 128) return 0;
  if (x.exponent > 1023) return HUGE_VAL;
  const U128 half = U128{1} << (dropped - 1);
  const U128 kept = dropped == 128 ? U128{0} : x.significand >> dropped;
  const U128 rest = x.significand - (dropped == 128 ? U128{0} : kept << dropped);
  auto bits = static_cast<std::uint64_t>(kept);
  bits += rest > half || (rest == half && (bits & 1) != 0) ? 1U : 0U;
  // The leading bit of a normal significand adds one to the exponent field, and so does a carry out of the rounding.
  if (x.exponent >= -1022) bits += static_cast<std::uint64_t>(x.exponent + 1022) << 52;
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// True within 2^-95 of the middle between two floats.
VICINAL_HD inline bool is_close_to_middle(const Number& x) noexcept {
  const int dropped = dropped_bits(x.exponent);
  if (dropped > 128) return false;
  const U128 half = U128{1} << (dropped - 1);
  const U128 rest = dropped == 128 ? x.significand : x.significand & ((half << 1) - 1);
  return (rest > half ? rest - half : half - rest) <= U128{1} << 32;
}

/// |log2 t| as significand and exponent, and its sign; t is not 1.
VICINAL_HD inline Number log2_magnitude(const Number& t, bool& is_negative) noexcept {
  const PowerTables& tables = power_tables();
  const auto significand = static_cast<std::uint64_t>(t.significand >> 75);
  const auto step = static_cast<int>(significand >> 45) - kLogSteps;
  const bool halved = step >= kHalvedFrom;
  const int whole = t.exponent + (halved ? 1 : 0);
  // x = significand * factor in Q62, within 2^-7 of 1; then fine * x in Q76, within 1.5 * 2^-14 of 1; both exact.
  const std::uint64_t x = (significand * tables.factor[step]) << (halved ? 0 : 1);
  const std::int64_t offset = static_cast<std::int64_t>(x) - (std::int64_t{1} << 62);
  const auto fine = static_cast<int>((offset + (std::int64_t{1} << 47)) >> 48);
  const auto r = static_cast<std::int64_t>(U128{x} * static_cast<std::uint64_t>((1 << 14) - fine) - (U128{1} << 76));
  const std::uint64_t w = r < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(r) : static_cast<std::uint64_t>(r);
  // log2(1 + r) / r, truncated below 2^-123.
  U128 series = tables.log_series[kLogDegree];
  for (int k = kLogDegree - 1; k >= 0; --k) {
    const U128 next = mul_high(series, w) >> 12;
    series = r < 0 ? tables.log_series[k] + next : tables.log_series[k] - next;
  }
  if (whole == 0 && fine == 0 && tables.factor[step] == 512) {
    is_negative = r < 0;
    const int shift = leading_zeros(w);
    return normalized(mul_high(series, w << shift), -12 - shift);
  }
  const auto product = static_cast<I128>(mul_high(series, w) >> 13);
  I128 sum = tables.log_factor[step] + tables.log_fine[fine + kFineSteps] + (r < 0 ? -product : product);
  if (whole != 0) sum = (sum >> 10) + static_cast<I128>(static_cast<U128>(static_cast<I128>(whole)) << 116);
  is_negative = sum < 0;
  return normalized(static_cast<U128>(is_negative ? -sum : sum), whole == 0 ? 1 : 11);
}

/// 2^(whole + fraction / 2^128).
VICINAL_HD inline Number exp2_of(int whole, U128 fraction) noexcept {
  const PowerTables& tables = power_tables();
  const auto coarse = static_cast<unsigned>(fraction >> 121);
  const auto fine = static_cast<unsigned>(fraction >> 114) & 127U;
  const U128 g = fraction << 14;  // Q128 of the remainder times 2^14
  const auto g_short = static_cast<std::uint64_t>(g >> 64);
  U128 series = tables.exp_series[kExpDegree];
  for (int k = kExpDegree - 1; k >= 2; --k) series = tables.exp_series[k] + (mul_high(series, g_short) >> 14);
  series = tables.exp_series[1] + (mul_high(series, g) >> 14);
  const U128 growth = mul_high(series, g) >> 14;
  const U128 base = mul_high(tables.exp_coarse[coarse], tables.exp_fine[fine]) << 1;
  return {base + mul_high(base, growth), whole};
}

/// t^(q / 2^s) when it is t's exact root to a small whole power; else a number that is not close to a middle.
VICINAL_HD inline bool exact_power(double t, double p, Number& result) noexcept {
  double root = t;
  for (int s = 0; s <= 5; ++s) {
    if (p > 34) return false;
    if (p == std::floor(p)) {
      result = whole_power(unpack(root), static_cast<unsigned>(p));
      return true;
    }
    const double next = std::sqrt(root);
    if (std::fma(next, next, -root) != 0) return false;
    root = next;
    p *= 2;
  }
  return false;
}

VICINAL_HD inline double general_power(double t, double p) noexcept {
  bool is_negative = false;
  const Number log = log2_magnitude(unpack(t), is_negative);
  const Number exponent = multiply(log, unpack(p));
  if (exponent.exponent >= 11) return is_negative ? 0.0 : HUGE_VAL;
  const int shift = 127 - exponent.exponent;  // the value is significand / 2^shift, shift >= 117
  U128 fraction = 0;
  int whole = 0;
  if (shift < 128) {
    whole = static_cast<int>(exponent.significand >> shift);
    fraction = exponent.significand << (128 - shift);
  } else if (shift < 256) {
    fraction = exponent.significand >> (shift - 128);
  }
  if (is_negative) {
    whole = fraction == 0 ? -whole : -whole - 1;
    fraction = U128{0} - fraction;
  }
  const Number result = exp2_of(whole, fraction);
  Number exact{};
  if (is_close_to_middle(result) && exact_power(t, p, exact)) return round_to_double(exact);
  return round_to_double(result);
}

}  // namespace fixed

/// t^p for finite t >= 0 and finite p > 0; infinity on overflow, subnormals rounded once.
VICINAL_HD inline double power(double t, double p) noexcept {
  if (t == 0 || t == 1 || p == 1) return t;
  if (p == 2) return t * t;
  if (p == 0.5) return std::sqrt(t);
  if (p <= 64 && p == std::floor(p)) {
    return fixed::round_to_double(fixed::whole_power(fixed::unpack(t), static_cast<unsigned>(p)));
  }
  return fixed::general_power(t, p);
}

}  // namespace vicinal::core
