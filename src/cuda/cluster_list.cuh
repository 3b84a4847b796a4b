// What the screens of k-means do with a row when they have seen all centres: its label goes to the list of changed
// rows, or the row to that of open ones.
#pragma once

#include <cmath>

#include "cuda/cluster.hpp"
#include "cuda/warp.cuh"

namespace vicinal::cuda {

/// By all lanes of a warp, each for a row of its own, if it has one: the row is open, or its label changes, or neither.
/// Returns the place of an open row in its list, else -1.
__device__ __forceinline__ std::int64_t list_row(const ClusterView& v, std::int64_t row, bool is_row, bool decided,
                                                 int label, int label_before) {
  ClusterTally& tally = v.outcome->tally;
  const bool is_open = is_row && !decided;
  const bool changes = is_row && decided && label_before != label;
  const unsigned opens = __ballot_sync(kWholeWarp, is_open);
  const unsigned changing = __ballot_sync(kWholeWarp, changes);
  if ((opens | changing) == 0) return -1;
  // One lane asks for places in either list, so that neither waits for the other.
  const int lane = static_cast<int>(threadIdx.x % 32);
  unsigned long long first = 0;
  if (lane == 0 && opens != 0) first = atomicAdd(&tally.open, static_cast<unsigned long long>(__popc(opens)));
  if (lane == 1 && changing != 0) first = atomicAdd(&tally.changed, static_cast<unsigned long long>(__popc(changing)));
  const unsigned before = (1U << lane) - 1;
  const unsigned long long open = __shfl_sync(kWholeWarp, first, 0) + static_cast<unsigned>(__popc(opens & before));
  const unsigned long long place = __shfl_sync(kWholeWarp, first, 1) + static_cast<unsigned>(__popc(changing & before));
  if (is_open) v.open[open] = static_cast<std::uint32_t>(row);
  if (changes) {
    v.changed[place] = static_cast<std::uint32_t>(row);
    v.fresh[row] = label;
  }
  return is_open ? static_cast<std::int64_t>(open) : -1;
}

/// Open rows that are multiplied a second time; the rest are decided by the keys of all centres.
__device__ __forceinline__ std::int64_t narrowed_rows(const ClusterView& v) {
  const auto open = static_cast<std::int64_t>(v.outcome->tally.open);
  return open < v.half.open_room ? open : v.half.open_room;
}

/// What every other centre's score must stay below for the best one to be the label: the last inequality of
/// cluster_half.cu.
__device__ __forceinline__ float half_reach(const HalfView& v, float best, const HalfFacts& row,
                                            const HalfFacts& centre) {
  const float a1 = (8.08F * v.beta * centre.kappa + 0x1p-13F) * (0.12625F * row.kappa + 0x1p-13F);
  const float a2 = (1.01F * centre.rho + 0x1p-13F) * (1.01F * row.norm + 0x1p-13F);
  const float a3 = (1.01F * centre.norm + 0x1p-13F) * (1.01F * row.rho + 0x1p-13F);
  const float below = 2.06F * (a1 + a2 + a3) + (2.06F * v.beta + 0x1p-19F) * centre.half_square + 1;
  const float cut = 0x1p-16F + 0x1p-20F;
  const float reach = best - cut * fabsf(best) - below - v.margin;
  return reach - 2 * cut * fabsf(reach);
}

}  // namespace vicinal::cuda
