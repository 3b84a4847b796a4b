// Eight neighboring lanes of a warp, which hold the eight accumulators of the contract's sums (clause 1, see
// distance.hpp): for device code only, empty elsewhere.
#pragma once

#if defined(__CUDACC__)

namespace vicinal::core {

/// The lanes of the calling lane's group of eight.
__device__ __forceinline__ unsigned mask_of_eight() {
  return 0xFFU << (threadIdx.x % 32 & ~7U);
}

/// The contract's tree over the accumulators of eight neighboring lanes; every lane gets the sum.
template <class T>
__device__ __forceinline__ T sum_of_eight(T a, unsigned mask = mask_of_eight()) {
  a += __shfl_xor_sync(mask, a, 4);
  a += __shfl_xor_sync(mask, a, 2);
  return a + __shfl_xor_sync(mask, a, 1);
}

}  // namespace vicinal::core

#endif
