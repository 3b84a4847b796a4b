// How finely rows are rounded to int8.
#pragma once

#include <limits>
#include <span>

#include "vicinal/context.hpp"

namespace vicinal::cpu {

struct ByteScale {
  double scale = 1;  ///< steps in a unit of the rows
  /// Mean length of what rounding leaves of the sample's rows, in their unit; infinite if no scale was tried.
  double error = std::numeric_limits<double>::infinity();
};

/// The best of some scales for a sample [rows, d] about a center [d]. They clamp more and more of the tails; whole
/// numbers that fit may be kept as they are. None is tried where all rows equal the center or are beyond 2^900 from it.
ByteScale byte_scale(const Context& ctx, std::span<const double> sample, std::span<const double> centre);

}  // namespace vicinal::cpu
