// How a part of a dissection is split, in numbers: the same on the host and on a device, which find the same order. See
// dissection.cpp.
#pragma once

#include <cstdint>

namespace vicinal::solver {

inline constexpr std::int32_t kLeafPoints = 64;    ///< below, what fill is left does not pay for another separator
inline constexpr std::int32_t kSmallPart = 8192;   ///< up to here one worker dissects a part to its leaves
inline constexpr std::int32_t kLargePart = 8192;   ///< parts with more points get
inline constexpr int kLargeHops = 2;               ///< a band of so many hops on each side of the cut,
inline constexpr int kBandHops = 1;                ///< others one of these, and
inline constexpr double kBandShare = 0.4;          ///< of a part, at most
inline constexpr std::int32_t kManyCells = 8192;   ///< a part with more cells is halved on a coarser graph
inline constexpr std::int32_t kKeySteps = 32;      ///< of a hop, so that means of hops are whole numbers, too
inline constexpr int kHalvingWays = 3;             ///< orders of a part by which it is halved; the best is taken
inline constexpr int kMoveSweeps = 8;              ///< means that are taken, one of the other
inline constexpr std::int32_t kMaxHops = 1 << 24;  ///< so that keys and their differences are 32 bits

}  // namespace vicinal::solver
