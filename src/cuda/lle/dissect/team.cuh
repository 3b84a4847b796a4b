// What the threads of a block that dissects a part (dissect.hpp) find out together.
#pragma once

#include "cuda/base/warp.cuh"

namespace vicinal::cuda::lle {

constexpr int kPartThreads = 256;
constexpr int kPartWarps = kPartThreads / 32;
constexpr int kPointThreads = 8;  // that share the blocks of a point

/// Checked by the block of one thread that tests have.
__device__ inline void expect(bool /*holds*/) {}

__device__ inline int rank() {
  return static_cast<int>(threadIdx.x);
}
/// Which of the threads that share a point, and which of the points that are shared at a time.
__device__ inline int rank_at_point() {
  return rank() % kPointThreads;
}
__device__ inline int rank_of_point() {
  return rank() / kPointThreads;
}

/// What `combine` makes of a number of each thread.
template <class T, class Combine>
__device__ T combined(T x, const Combine& combine) {
  __shared__ T parts[kPartWarps];
  for (int step = 16; step > 0; step /= 2) x = combine(x, __shfl_xor_sync(kWholeWarp, x, step));
  if (rank() % 32 == 0) parts[rank() / 32] = x;
  __syncthreads();
  x = parts[0];
  for (int warp = 1; warp < kPartWarps; ++warp) x = combine(x, parts[warp]);
  __syncthreads();
  return x;
}
__device__ inline int least_of(int x) {
  return combined(x, [](int a, int b) { return min(a, b); });
}
__device__ inline int most_of(int x) {
  return combined(x, [](int a, int b) { return max(a, b); });
}
__device__ inline int sum_of(int x) {
  return combined(x, [](int a, int b) { return a + b; });
}
/// The sum of the threads before, and of all.
__device__ inline int sum_before(int x, int& all) {
  __shared__ int parts[kPartWarps];
  int sum = x;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(kWholeWarp, sum, step);
    if (rank() % 32 >= step) sum += other;
  }
  if (rank() % 32 == 31) parts[rank() / 32] = sum;
  __syncthreads();
  all = 0;
  for (int warp = 0; warp < kPartWarps; ++warp) {
    if (warp < rank() / 32) sum += parts[warp];
    all += parts[warp];
  }
  __syncthreads();
  return sum - x;
}

}  // namespace vicinal::cuda::lle
