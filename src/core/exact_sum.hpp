// Sums that are exact, however long, and rounded once at the end (contract clauses 8 and 12): one fixed-point number as
// wide as float64 itself, from 2^-1074 to beyond the largest float, in limbs of 32 bits that are kept in 64.
// A float64 has 53 bits, so it touches three limbs, each by less than 2^32: after 2^30 additions a limb is below 2^62 +
// 2^32, and the carries are settled. The value is an integer, so neither order nor division into parts can show.
// Cost: some ten operations an addition, O(70) for `rounded` and `add` of another sum; 560 bytes.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace vicinal::core {

class ExactSum {
 public:
  static constexpr std::size_t kLimbs = 70;  ///< 2,240 bits: 2,098 of a float64's range, and room for 2^64 of them
  using Limbs = std::array<std::int64_t, kLimbs>;

  ExactSum() = default;
  /// From limbs, or from sums of up to 2^30 limbs of other sums.
  explicit ExactSum(const Limbs& limbs) noexcept : limbs_(limbs) { settle(); }

  /// The value as integers: limb i counts 2^(32 i - 1074). All but the last are in [0, 2^32), so that those of many
  /// sums can be added.
  [[nodiscard]] Limbs limbs() const noexcept {
    ExactSum value = *this;
    value.settle();
    return value.limbs_;
  }

  /// Adds a finite float64.
  void add(double x) noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const auto exponent = static_cast<int>(bits >> 52 & 0x7ffU);
    std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
    if (exponent != 0) fraction |= std::uint64_t{1} << 52;
    const int place = exponent == 0 ? 0 : exponent - 1;  // in bits above 2^-1074
    const auto limb = static_cast<std::size_t>(place / 32);
    const int shift = place % 32;
    const std::uint64_t low = (fraction & 0xffffffffU) << shift;  // below 2^63
    const std::uint64_t high = (fraction >> 32) << shift;         // below 2^53
    // What low has beyond 32 bits is below 2^shift, of which high is a multiple: nothing is carried.
    const auto first = static_cast<std::int64_t>(low & 0xffffffffU);
    const auto second = static_cast<std::int64_t>(low >> 32 | (high & 0xffffffffU));
    const auto third = static_cast<std::int64_t>(high >> 32);
    const std::int64_t sign = bits >> 63 != 0 ? -1 : 1;
    limbs_[limb] += sign * first;
    limbs_[limb + 1] += sign * second;
    limbs_[limb + 2] += sign * third;
    if (++additions_ == kSettle) settle();
  }

  void add(const ExactSum& other) noexcept {
    ExactSum settled = other;
    settled.settle();
    settle();
    for (std::size_t i = 0; i < kLimbs; ++i) limbs_[i] += settled.limbs_[i];
    settle();
  }

  /// The float64 nearest to the sum, ties to even; infinity beyond the largest. A sum of nothing, or of what cancels,
  /// is +0.
  [[nodiscard]] double rounded() const noexcept {
    ExactSum value = *this;
    value.settle();
    const bool negative = value.limbs_[kLimbs - 1] < 0;
    if (negative) {
      for (std::int64_t& limb : value.limbs_) limb = -limb;
      value.settle();
    }
    std::size_t top = kLimbs;
    while (top > 0 && value.limbs_[top - 1] == 0) --top;
    if (top == 0) return 0;
    const auto width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value.limbs_[top - 1])));
    const int highest = static_cast<int>(top - 1) * 32 + width - 1;  // the place of the leading bit
    const int lowest = highest > 52 ? highest - 52 : 0;              // of the last one that a float64 keeps
    std::uint64_t kept = 0;
    for (int place = highest; place >= lowest; --place) kept = kept << 1 | value.bit(place);
    if (lowest > 0 && value.bit(lowest - 1) != 0) {
      bool beyond_half = (kept & 1) != 0;
      for (int place = lowest - 2; place >= 0 && !beyond_half; --place) beyond_half = value.bit(place) != 0;
      if (beyond_half) ++kept;
    }
    const double magnitude = std::ldexp(static_cast<double>(kept), lowest - 1074);  // exact, or infinity
    return negative ? -magnitude : magnitude;
  }

 private:
  static constexpr std::int64_t kSettle = std::int64_t{1} << 30;

  /// Brings every limb but the last to [0, 2^32); the last keeps the sign.
  void settle() noexcept {
    std::int64_t carry = 0;
    for (std::size_t i = 0; i + 1 < kLimbs; ++i) {
      const std::int64_t value = limbs_[i] + carry;
      limbs_[i] = value & 0xffffffff;
      carry = value >> 32;  // toward minus infinity
    }
    limbs_[kLimbs - 1] += carry;
    additions_ = 0;
  }
  [[nodiscard]] std::uint64_t bit(int place) const noexcept {
    return static_cast<std::uint64_t>(limbs_[static_cast<std::size_t>(place / 32)]) >> (place % 32) & 1;
  }

  Limbs limbs_ = {};
  std::int64_t additions_ = 0;
};

}  // namespace vicinal::core
