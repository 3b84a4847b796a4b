// What a neighbor weighs by its distance (contract clause 4), for host and device.
#pragma once

#include "core/order.hpp"

namespace vicinal::core {

/// Distances below count as zero, so that no sum of reciprocals overflows, whatever k.
inline constexpr double kTinyDistance = 0x1p-960;

/// 1 / distance; where some neighbor of the query is at distance zero, those alone weigh, 1 each.
VICINAL_HD constexpr double reciprocal_weight(bool any_zero, double distance) noexcept {
  if (any_zero) return distance < kTinyDistance ? 1 : 0;
  return 1 / distance;
}

}  // namespace vicinal::core
