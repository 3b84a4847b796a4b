// Weights of rows as whole numbers of one unit, cut into digits, so that sums of them are exact whatever the order of
// addition (contract clause 28: the exact sum, rounded once, is compared with min_samples).
//
// THE UNIT is the place of the last bit that any weight has. A digit has so few bits that a sum of n of them fits 62
// bits with a carry. Digits of a sum are found from the lowest up: the sum of the weights' digits and the carry, modulo
// 2^bits; what is left, divided by 2^bits and rounded down, is the next carry. What the last digit carries has the sign
// of the sum where it is not 0.
//
// THE LEAST SUM that is enough. Rounding is monotone: a sum x rounds to m = min_samples or more if and only if x lies
// above the middle of m and the float64 before it, or on that and m's fraction is even. With m = f 2^e, f of 53 bits,
// the middle is (4 f - 2) 2^(e - 2), and (4 f - 1) 2^(e - 2) where f is a power of two, whose predecessor is nearer.
// The least whole number of units that is enough follows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace vicinal::core {

/// A finite float64 as sign, fraction and the place of the fraction's last bit above 2^-1074.
struct PlacedFraction {
  std::uint64_t fraction = 0;
  int place = 0;
  bool negative = false;

  constexpr explicit PlacedFraction(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const auto exponent = static_cast<int>(bits >> 52 & 0x7ffU);
    fraction = bits & ((std::uint64_t{1} << 52) - 1);
    if (exponent != 0) fraction |= std::uint64_t{1} << 52;
    place = exponent == 0 ? 0 : exponent - 1;
    negative = bits >> 63 != 0;
  }
};

/// The bits [0, bits) of value 2^shift; bits is at most 62.
constexpr std::uint64_t low_bits(std::uint64_t value, int shift, int bits) {
  std::uint64_t moved = 0;
  if (shift >= 0 && shift < bits) moved = value << shift;
  if (shift < 0 && shift > -64) moved = value >> -shift;
  return moved & ((std::uint64_t{1} << bits) - 1);
}

/// How the weights of a table are cut, and the least sum that is enough.
struct WeightDigits {
  int base = 0;             ///< of the unit, 2^(base - 1074)
  int bits = 0;             ///< of a digit
  bool may_shrink = false;  ///< some weight is below 0
  std::vector<std::int64_t>
      least;  ///< digits of the least sum that is enough, the lowest first; as many as weights have
};

/// A digit of a weight, with its sign.
constexpr std::int64_t weight_digit(double weight, int base, int bits, int number) {
  const PlacedFraction from(weight);
  const auto digit = static_cast<std::int64_t>(low_bits(from.fraction, from.place - base - number * bits, bits));
  return from.negative ? -digit : digit;
}

/// A sum's digits so far, compared with those of the least sum that is enough.
struct DigitSum {
  std::int64_t carry = 0;
  std::int8_t order =
      0;  ///< of the digits below the next one: below 0, 0, above 0 as they are beside those of the least

  /// Takes the sum of the next digits in.
  constexpr void take(std::int64_t digits, std::int64_t least_digit, int bits) {
    const std::int64_t all = digits + carry;
    carry = all >> bits;
    const std::int64_t digit = all - (carry << bits);
    if (digit != least_digit) order = digit > least_digit ? 1 : -1;
  }
  [[nodiscard]] constexpr bool is_enough() const { return carry > 0 || (carry == 0 && order >= 0); }
};

/// Of finite weights of fewer than 2^32 rows; `min_weight` is at least 1. O(n).
inline WeightDigits weight_digits(std::span<const double> weights, double min_weight) {
  WeightDigits made;
  int lowest = 4096;
  int highest = 0;
  for (const double weight : weights) {
    const PlacedFraction at(weight);
    if (at.fraction == 0) continue;
    lowest = std::min(lowest, at.place + std::countr_zero(at.fraction));
    highest = std::max(highest, at.place + static_cast<int>(std::bit_width(at.fraction)));
    made.may_shrink = made.may_shrink || at.negative;
  }
  made.base = std::min(lowest, 1074);
  made.bits = 62 - static_cast<int>(std::bit_width(weights.size()));
  const PlacedFraction wanted(min_weight);
  const bool is_odd = (wanted.fraction & 1) != 0;
  std::uint64_t middle = 4 * wanted.fraction - (std::has_single_bit(wanted.fraction) ? 1 : 2);
  int shift = wanted.place - 2 - made.base;
  bool more = is_odd;  // the middle itself is not enough
  if (shift < 0) {
    const bool is_whole = shift > -64 && middle >> -shift << -shift == middle;
    middle = shift > -64 ? middle >> -shift : 0;
    more = more || !is_whole;
    shift = 0;
  }
  if (shift == 0 && more) {
    ++middle;
    more = false;
  }
  const int width = std::max(highest - made.base, static_cast<int>(std::bit_width(middle)) + shift);
  for (int number = 0; number == 0 || number * made.bits < width; ++number) {
    made.least.push_back(static_cast<std::int64_t>(low_bits(middle, shift - number * made.bits, made.bits)));
  }
  if (more) made.least[0] |= 1;
  return made;
}

}  // namespace vicinal::core
