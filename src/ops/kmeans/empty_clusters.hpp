// What empty clusters take (contract clause 12).
#pragma once

#include <cstdint>
#include <span>

#include "backend/kmeans.hpp"
#include "ops/kmeans/rank_rows.hpp"

namespace vicinal::ops {

/// Gives these empty clusters, ascending, the rows farthest from their centers, of rows that have just been assigned.
/// False when none got one. O(n); 20 bytes for each of the rank's rows.
bool fill_empty(kernels::Lloyd& lloyd, const RankRows& rows, std::span<const std::int32_t> empty);

}  // namespace vicinal::ops
