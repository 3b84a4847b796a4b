// The value that is greater than all others.
#pragma once

#include <limits>

namespace vicinal {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace vicinal
