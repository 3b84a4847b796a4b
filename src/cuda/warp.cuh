// What the lanes of a warp find out together.
#pragma once

#include <cstdint>

namespace vicinal::cuda {

inline constexpr unsigned kWholeWarp = 0xffffffffU;

/// The least of the lanes' numbers.
__device__ __forceinline__ unsigned least_of_warp(unsigned x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(kWholeWarp, x);
#else
  for (int step = 16; step > 0; step /= 2) {
    const unsigned other = __shfl_xor_sync(kWholeWarp, x, step);
    x = other < x ? other : x;
  }
  return x;
#endif
}

}  // namespace vicinal::cuda
