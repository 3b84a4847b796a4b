// float64 to the element types of files: exactly, or rounded to nearest even, or not at all. Some ten operations.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "core/half.hpp"

namespace vicinal::io {

/// What files store. All but int32 are types that tables have, too.
enum class Stored : std::uint8_t { uint8, int32, float16, bfloat16, float32, float64 };

enum class Narrowed : std::uint8_t {
  exactly,
  rounded,  ///< another number, or a zero that lost its sign
  beyond    ///< no number of the type is near: NaN for whole numbers, and what is out of range
};

constexpr std::int64_t size_of(Stored type) noexcept {
  return type == Stored::uint8                              ? 1
         : type == Stored::float64                          ? 8
         : type == Stored::int32 || type == Stored::float32 ? 4
                                                            : 2;
}

constexpr std::string_view name_of(Stored type) noexcept {
  constexpr std::string_view kNames[] = {"uint8", "int32", "float16", "bfloat16", "float32", "float64"};
  return kNames[static_cast<std::size_t>(type)];
}

/// The bfloat16 nearest to `value`, ties to even, rounded once.
inline std::uint16_t brain_bits(double value) noexcept {
  if (std::isnan(value)) return 0x7fc0;
  const auto nearest = static_cast<float>(value);
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  // Toward zero, with what was cut off remembered in the last bit: the second rounding then is as if it were the first.
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  if (static_cast<double>(nearest) != value) bits |= 1;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// The nearest element of `type`, little-endian, at `to`; nothing sensible where `beyond`.
inline Narrowed narrow(double value, Stored type, unsigned char* to) noexcept {
  double back = 0;
  const auto whole = [&](double least, double most, auto zero) {
    back = std::nearbyint(value);
    if (!(back >= least && back <= most)) return Narrowed::beyond;
    const auto element = static_cast<decltype(zero)>(back);
    std::memcpy(to, &element, sizeof element);
    return back == value && !(value == 0 && std::signbit(value)) ? Narrowed::exactly : Narrowed::rounded;
  };
  const auto put = [&](auto element, double held) {
    std::memcpy(to, &element, sizeof element);
    if (std::isnan(value)) return Narrowed::exactly;
    if (std::isinf(held) && !std::isinf(value)) return Narrowed::beyond;
    return held == value ? Narrowed::exactly : Narrowed::rounded;
  };
  switch (type) {
    case Stored::uint8:
      return whole(0, 255, std::uint8_t{});
    case Stored::int32:
      return whole(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(), std::int32_t{});
    case Stored::float16: {
      const std::uint16_t bits = core::half_bits(value, core::HalfRounding::nearest_even);
      return put(bits, core::half_value(bits));
    }
    case Stored::bfloat16: {
      const std::uint16_t bits = brain_bits(value);
      return put(bits, static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16)));
    }
    case Stored::float32: {
      const auto element = static_cast<float>(value);
      return put(element, static_cast<double>(element));
    }
    default:
      return put(value, value);
  }
}

}  // namespace vicinal::io
