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
/// The most of them.
__device__ __forceinline__ unsigned most_of_warp(unsigned x) {
  return ~least_of_warp(~x);
}

/// Their sum.
__device__ __forceinline__ int sum_of_warp(int x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(kWholeWarp, x);
#else
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(kWholeWarp, x, step);
  return x;
#endif
}

}  // namespace vicinal::cuda
