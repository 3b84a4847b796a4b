// The total order of neighbors (contract clause 2): by key, equal keys by the smaller id.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define VICINAL_HD __host__ __device__
#else
#define VICINAL_HD
#endif

namespace vicinal::core {

/// True when (key_a, id_a) comes before (key_b, id_b). Keys must not be NaN.
VICINAL_HD constexpr bool nearer(double key_a, std::int64_t id_a, double key_b, std::int64_t id_b) noexcept {
  return key_a < key_b || (key_a == key_b && id_a < id_b);
}

}  // namespace vicinal::core
