// Values that few operations take.
#pragma once

#include <limits>

namespace vicinal::contract {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace vicinal::contract
