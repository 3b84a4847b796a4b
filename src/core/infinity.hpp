// Infinity, under the name that every room uses.
#pragma once

#include <limits>

namespace vicinal {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace vicinal
