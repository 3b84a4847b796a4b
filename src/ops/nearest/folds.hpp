// Folds of a cross-validation (contract clause 15): every row belongs to one, classes are spread evenly over them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal::ops {

/// The fold [n] of each row. `codes`: its class, or empty for one class. O(n log n).
std::vector<std::int32_t> make_folds(const Context& ctx, std::int64_t n, std::span<const std::int32_t> codes,
                                     std::int64_t folds, std::uint64_t seed);

}  // namespace vicinal::ops
