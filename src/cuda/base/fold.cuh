// What a warp does with a few columns side by side: sums, and Householder's reflections that fold rows into a triangle
// (as solver/tall.cpp does on the host). Memory may be shared or global, and is this warp's alone.
#pragma once

#include "cuda/base/warp.cuh"

namespace vicinal::cuda {

/// In an order that is the same for every lane.
__device__ __forceinline__ double sum_of_warp(double x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(kWholeWarp, x, step);
  return x;
}
__device__ __forceinline__ double most_of_warp(double x) {
  for (int step = 16; step > 0; step /= 2) x = fmax(x, __shfl_xor_sync(kWholeWarp, x, step));
  return x;
}

/// Reflects the rows [r; strip] so that r is the triangle of all: r [q, q], strip [m, q] is used up.
__device__ inline void fold(double* r, double* strip, int m, int q) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  for (int j = 0; j < q; ++j) {
    __syncwarp();
    double largest = 0;
    for (int i = lane; i < m; i += 32) largest = fmax(largest, fabs(strip[i * q + j]));
    const double diagonal = r[j * q + j];
    largest = fmax(most_of_warp(largest), fabs(diagonal));
    if (largest == 0) continue;
    double below = 0;
    for (int i = lane; i < m; i += 32) {
      const double part = strip[i * q + j] / largest;
      strip[i * q + j] = part;
      below += part * part;
    }
    below = sum_of_warp(below);
    if (below == 0) continue;
    const double head = diagonal / largest;
    const double length = sqrt(head * head + below);
    const double pivot = head > 0 ? head + length : head - length;  // v = (pivot, strip / largest)
    const double scale = 2 / (pivot * pivot + below);
    __syncwarp();
    for (int c = j + 1 + lane; c < q; c += 32) {
      double sum = pivot * r[j * q + c];
      for (int i = 0; i < m; ++i) sum += strip[i * q + j] * strip[i * q + c];
      sum *= scale;
      r[j * q + c] -= sum * pivot;
      for (int i = 0; i < m; ++i) strip[i * q + c] -= sum * strip[i * q + j];
    }
    if (lane == 0) r[j * q + j] = (head > 0 ? -length : length) * largest;
  }
  __syncwarp();
}

}  // namespace vicinal::cuda
