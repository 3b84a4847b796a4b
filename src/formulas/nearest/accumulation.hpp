// Models of how tensor cores add (half_screen.hpp says what they mean and what follows from them).
#pragma once

namespace vicinal::core {

/// How a tensor core sums.
struct Accumulation {
  int width;      ///< products of one step
  int alignment;  ///< bits kept below the largest exponent
};
inline constexpr Accumulation kHopperSums = {16, 25};
inline constexpr Accumulation kAmpereSums = {8, 24};
inline constexpr Accumulation kVoltaSums = {4, 23};

}  // namespace vicinal::core
