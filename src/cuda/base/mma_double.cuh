// Products of small float64 matrices by a warp: the matrix units of devices since Ampere, whose every sum is a chain of
// fused steps, or the lanes themselves where there are none.
#pragma once

#include <cstdint>

#include "cuda/base/warp.cuh"

namespace vicinal::cuda {

/// c[16, 8] += a[16, 4] b[4, 8]. With g = lane / 4 and t = lane % 4 a lane has a[g, t] and a[g + 8, t], b[t, g], and of
/// c the pairs [g, 2 t ..] and [g + 8, 2 t ..].
__device__ __forceinline__ void multiply_add(double (&c)[4], const double (&a)[2], double b) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
               : "d"(a[0]), "d"(a[1]), "d"(b));
#elif __CUDA_ARCH__ >= 800
  for (int half = 0; half < 2; ++half) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(c[2 * half]), "+d"(c[2 * half + 1])
                 : "d"(a[half]), "d"(b));
  }
#else
  const int lane = static_cast<int>(threadIdx.x) & 31;
  for (int k = 0; k < 4; ++k) {
    for (int half = 0; half < 2; ++half) {
      const double left = __shfl_sync(kWholeWarp, a[half], lane / 4 * 4 + k);
      for (int side = 0; side < 2; ++side) {
        const double right = __shfl_sync(kWholeWarp, b, (lane % 4 * 2 + side) * 4 + k);
        c[2 * half + side] = __fma_rn(left, right, c[2 * half + side]);
      }
    }
  }
#endif
}

}  // namespace vicinal::cuda
