// Vote by weights added in rank order in float64 (contract clause 4: the bits of src/cpu/nearest/vote.cpp). A warp a
// query: each lane holds one neighbor of a run of 32, and the lane that owns a class adds that class's weights in the
// order of the ranks, so that no sum is ever split. Totals lie in shared memory where the classes fit, else in global
// memory; only the classes met are cleared again. O(m k); a class histogram a query is step 5 of the GS paper.
#include <algorithm>

#include "cuda/base/warp.cuh"
#include "cuda/nearest/vote.hpp"
#include "formulas/nearest/reciprocal_weight.hpp"

namespace vicinal::cuda {
namespace {

constexpr int kWarps = 4;  // of a block
constexpr std::int64_t kSharedClasses = 1024;

/// Weight of the neighbor at a distance; `any_zero`: some neighbor of the query is at distance 0.
__device__ double weight_of(bool by_distance, bool any_zero, double distance) {
  if (!by_distance) return 1;
  return core::reciprocal_weight(any_zero, distance);
}

__global__ void vote_kernel(const std::int64_t* ids, const double* distances, std::int64_t m, std::int64_t k,
                            bool by_distance, VoteArrays output, double* scratch) {
  extern __shared__ double shared_totals[];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t slot = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp;
  double* const totals = scratch != nullptr ? scratch + slot * output.classes
                                            : shared_totals + static_cast<std::int64_t>(warp) * output.classes;
  for (std::int64_t c = lane; c < output.classes; c += 32) totals[c] = 0;
  __syncwarp();
  for (std::int64_t q = slot; q < m; q += static_cast<std::int64_t>(gridDim.x) * kWarps) {
    const std::int64_t* const list = ids + q * k;
    const double* const far = distances + q * k;
    // Distances ascend: if one is 0, the first is.
    const bool any_zero = by_distance && far[0] < core::kTinyDistance;
    double sum = 0;
    for (std::int64_t begin = 0; begin < k; begin += 32) {
      const std::int64_t i = begin + lane;
      const std::int32_t code = i < k ? output.labels[list[i]] : -1;
      const double weight = i < k ? weight_of(by_distance, any_zero, far[i]) : 0;
      const int run = static_cast<int>(k - begin < 32 ? k - begin : 32);
      for (int r = 0; r < run; ++r) {
        const std::int32_t c = __shfl_sync(kWholeWarp, code, r);
        const double w = __shfl_sync(kWholeWarp, weight, r);
        sum += w;
        if (c % 32 == lane) totals[c] += w;
      }
    }
    __syncwarp();
    std::int32_t best = -1;
    double most = -1;
    for (std::int64_t i = lane; i < k; i += 32) {
      const std::int32_t code = output.labels[list[i]];
      const double total = totals[code];
      if (total > most || (total == most && code < best)) {
        best = code;
        most = total;
      }
      if (output.probabilities != nullptr && total > 0) output.probabilities[q * output.classes + code] = total / sum;
    }
    for (int other = 16; other > 0; other /= 2) {
      const std::int32_t code = __shfl_xor_sync(kWholeWarp, best, other);
      const double total = __shfl_xor_sync(kWholeWarp, most, other);
      if (total > most || (total == most && code < best)) {
        best = code;
        most = total;
      }
    }
    if (lane == 0) output.codes[q] = best;
    __syncwarp();
    for (std::int64_t i = lane; i < k; i += 32) totals[output.labels[list[i]]] = 0;
    __syncwarp();
  }
}

unsigned blocks_of(const Engine& engine) {
  return static_cast<unsigned>(engine.multiprocessors) * 8;
}

}  // namespace

std::uint64_t vote_bytes(const Engine& engine, std::int64_t classes) {
  if (classes <= kSharedClasses) return 0;
  return static_cast<std::uint64_t>(blocks_of(engine)) * kWarps * static_cast<std::uint64_t>(classes) * sizeof(double);
}

void vote_on_lists(const Engine& engine, const std::int64_t* ids, const double* distances, std::int64_t m,
                   std::int64_t k, bool by_distance, const VoteArrays& output) {
  const Buffer<double> scratch(engine, static_cast<std::int64_t>(vote_bytes(engine, output.classes) / sizeof(double)));
  const std::size_t shared =
      scratch.data() != nullptr ? 0 : static_cast<std::size_t>(output.classes) * kWarps * sizeof(double);
  const unsigned blocks = std::min(blocks_of(engine), blocks_for(m, kWarps));
  vote_kernel<<<blocks, 32 * kWarps, shared, engine.stream>>>(ids, distances, m, k, by_distance, output,
                                                              scratch.data());
  check_launch("vote");
}

}  // namespace vicinal::cuda
