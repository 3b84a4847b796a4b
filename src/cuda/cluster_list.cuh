// What the screens of k-means do with a row when they have seen all centres: its label goes to the list of changed
// rows, or the row to that of open ones.
#pragma once

#include <cmath>

#include "cuda/cluster.hpp"
#include "cuda/warp.cuh"

namespace vicinal::cuda {

/// Appends for the lanes that ask; returns the place of each.
__device__ __forceinline__ unsigned long long append_place(bool asks, unsigned long long* count) {
  const unsigned asking = __ballot_sync(kWholeWarp, asks);
  const int lane = static_cast<int>(threadIdx.x % 32);
  unsigned long long first = 0;
  if (lane == 0 && asking != 0) first = atomicAdd(count, static_cast<unsigned long long>(__popc(asking)));
  first = __shfl_sync(kWholeWarp, first, 0);
  return first + static_cast<unsigned>(__popc(asking & ((1U << lane) - 1)));
}

/// By all lanes of a warp, each for a row of its own, if it has one.
__device__ __forceinline__ void list_row(const ClusterView& v, std::int64_t row, bool is_row, bool decided, int label) {
  ClusterTally& tally = v.outcome->tally;
  const bool is_open = is_row && !decided;
  const unsigned long long at = append_place(is_open, &tally.open);
  if (is_open) v.open[at] = static_cast<std::uint32_t>(row);
  const bool changes = decided && v.labels[row] != label;
  const unsigned long long place = append_place(changes, &tally.changed);
  if (changes) {
    v.changed[place] = static_cast<std::uint32_t>(row);
    v.fresh[row] = label;
  }
}

/// Whether the best centre of the float16 screen is the label: the last inequality of cluster_half.cu.
__device__ __forceinline__ bool half_decides(const HalfView& v, float best, float second, const HalfFacts& row,
                                             const HalfFacts& centre) {
  const float a1 = (8.08F * v.beta * centre.kappa + 0x1p-13F) * (0.12625F * row.kappa + 0x1p-13F);
  const float a2 = (1.01F * centre.rho + 0x1p-13F) * (1.01F * row.norm + 0x1p-13F);
  const float a3 = (1.01F * centre.norm + 0x1p-13F) * (1.01F * row.rho + 0x1p-13F);
  const float below = 2.06F * (a1 + a2 + a3) + (2.06F * v.beta + 0x1p-19F) * centre.half_square + 1;
  const float cut = 0x1p-16F + 0x1p-20F;
  return second + cut * fabsf(second) + v.margin < best - cut * fabsf(best) - below;
}

}  // namespace vicinal::cuda
