// Exact sums as integers in limbs (contract clauses 8 and 12), for machines that add integers by atomics: the terms are
// multiples of 2^base, a limb has `bits` bits of them and is kept in 64, so that 2^(63 - bits) terms may be added in
// any order before carries are taken out. A float64 touches at most three limbs. The same value as
// core/exact_sum.hpp's, with as few limbs as the terms need. Host and device.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/order.hpp"

namespace vicinal::core {

inline constexpr int kMinLimbBits = 31;
inline constexpr int kMaxLimbBits = 42;  ///< three of them fit 128 bits

/// Bits of a limb that so many terms, and one more, may be added to.
inline int limb_bits_for(std::int64_t terms) noexcept {
  int log = 1;
  while ((std::int64_t{1} << log) < terms + 1) ++log;
  const int bits = 62 - log;
  return bits < kMinLimbBits ? kMinLimbBits : bits > kMaxLimbBits ? kMaxLimbBits : bits;
}
/// Limbs of a column whose terms are multiples of 2^base and at most `largest` in magnitude; 0 where it is 0.
inline int limbs_for(double largest, int base, int bits) noexcept {
  return largest > 0 ? (std::ilogb(largest) + 1 - base + bits - 1) / bits : 0;
}

/// Bits of a number, 0 for none.
VICINAL_HD inline int bit_width(std::uint64_t x) noexcept {
#if defined(__CUDA_ARCH__)
  return 64 - __clzll(static_cast<long long>(x));
#else
  return std::bit_width(x);
#endif
}

/// Where a term goes: parts[i] is to be added to limb `limb` + i, or subtracted where `negative`.
struct LimbParts {
  int limb = 0;
  bool negative = false;
  std::uint64_t parts[3] = {0, 0, 0};
};

/// Of a finite term that is a multiple of 2^base.
VICINAL_HD inline LimbParts limb_parts(double term, int base, int bits) noexcept {
  std::uint64_t raw = 0;
  std::memcpy(&raw, &term, sizeof raw);
  const auto exponent = static_cast<int>(raw >> 52 & 0x7ffU);
  std::uint64_t fraction = raw & ((std::uint64_t{1} << 52) - 1);
  if (exponent != 0) fraction |= std::uint64_t{1} << 52;
  LimbParts to;
  to.negative = raw >> 63 != 0;
  int place = (exponent == 0 ? 1 : exponent) - 1075 - base;
  if (place < 0) {  // what is shifted out is zero
    fraction = place > -64 ? fraction >> -place : 0;
    place = 0;
  }
  to.limb = place / bits;
  const int shift = place % bits;
  const int room = bits - shift;  // bits of the fraction that the first limb takes
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  to.parts[0] = (fraction & ((std::uint64_t{1} << room) - 1)) << shift;
  const std::uint64_t rest = fraction >> room;
  to.parts[1] = rest & mask;
  to.parts[2] = rest >> bits;
  return to;
}

/// Takes the carries out of limbs[0], limbs[stride], ...: all are then in [0, 2^bits). Returns the last carry, a limb
/// beyond the last one, with the sign.
VICINAL_HD inline std::int64_t settle_limbs(std::int64_t* limbs, std::int64_t stride, int count, int bits) noexcept {
  std::int64_t carry = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t value = limbs[i * stride] + carry;
    limbs[i * stride] = value & ((std::int64_t{1} << bits) - 1);
    carry = value >> bits;  // toward minus infinity
  }
  return carry;
}

/// The float64 nearest to the sum, ties to even; +0 for nothing. Limbs are settled, `carry` as it was returned.
VICINAL_HD inline double rounded_limbs(const std::int64_t* limbs, std::int64_t stride, int count, int bits,
                                       std::int64_t carry, int base) noexcept {
  using Wide = unsigned __int128;
  const bool negative = carry < 0;
  int lowest = 0;  // the first limb that is not 0
  while (lowest < count && limbs[lowest * stride] == 0) ++lowest;
  if (lowest == count && carry == 0) return 0;
  // The limbs of the magnitude: those of a negative number are complemented above the lowest.
  const auto limb = [&](int i) -> std::uint64_t {
    if (i < 0 || i > count) return 0;
    const std::int64_t value = i == count ? carry : limbs[i * stride];
    if (!negative) return static_cast<std::uint64_t>(value);
    if (i < lowest) return 0;
    if (i == count) return static_cast<std::uint64_t>(lowest == count ? -value : -value - 1);
    const std::int64_t full = std::int64_t{1} << bits;
    return static_cast<std::uint64_t>(i == lowest ? full - value : full - 1 - value);
  };
  int highest = count;
  while (limb(highest) == 0) --highest;
  Wide kept = (Wide{limb(highest)} << (2 * bits)) | (Wide{limb(highest - 1)} << bits) | limb(highest - 2);
  int place = base + (highest - 2) * bits;  // of the last bit of `kept`
  const auto upper = static_cast<std::uint64_t>(kept >> 64);
  const int width = upper != 0 ? 64 + bit_width(upper) : bit_width(static_cast<std::uint64_t>(kept));
  const int drop = width - 53;
  if (drop > 0 && place + drop >= -1074) {
    bool beyond_half = false;
    for (int i = lowest; i < highest - 2 && !beyond_half; ++i) beyond_half = limb(i) != 0;
    const Wide half = Wide{1} << (drop - 1);
    const Wide rest = kept & ((half << 1) - 1);
    kept >>= drop;
    if (rest > half || (rest == half && (beyond_half || (kept & 1) != 0))) ++kept;
    place += drop;
  } else if (place < -1074) {  // nothing but zeros is below 2^-1074
    kept >>= -1074 - place;
    place = -1074;
  }
  const double magnitude = std::ldexp(static_cast<double>(static_cast<std::uint64_t>(kept)), place);
  return negative ? -magnitude : magnitude;
}

}  // namespace vicinal::core
