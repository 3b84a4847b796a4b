// What empty clusters take (contract clause 12).
#pragma once

#include <cstdint>
#include <span>

#include "backend/kmeans.hpp"

namespace vicinal::ops {

/// Gives these empty clusters, ascending, the rows farthest from their centres, of n rows and k clusters that have just
/// been assigned. False when none got one. O(n); 20 n bytes.
bool fill_empty(kernels::Lloyd& lloyd, std::int64_t n, std::int64_t k, std::span<const std::int32_t> empty);

}  // namespace vicinal::ops
