// Doubles as integers in the same order, for bisection over all of them; host and device. NaN has no place among them.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/order.hpp"

namespace vicinal::core {

namespace ordered {
inline constexpr std::int64_t kLeast = -0x7fffffffffffffff - 1;
}

VICINAL_HD inline std::int64_t ordered_bits(double x) noexcept {
  std::int64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits >= 0 ? bits : ordered::kLeast - bits;
}
VICINAL_HD inline double from_ordered_bits(std::int64_t i) noexcept {
  const std::int64_t bits = i >= 0 ? i : ordered::kLeast - i;
  double x = 0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/// The double in the middle of all doubles from a to b, a < b: a itself where there is none between.
VICINAL_HD inline double middle_of(double a, double b) noexcept {
  const std::int64_t from = ordered_bits(a);
  const std::int64_t to = ordered_bits(b);
  return from_ordered_bits((from & to) + ((from ^ to) >> 1));
}
/// The largest double below x.
VICINAL_HD inline double next_below(double x) noexcept {
  return from_ordered_bits(ordered_bits(x) - 1);
}

}  // namespace vicinal::core
