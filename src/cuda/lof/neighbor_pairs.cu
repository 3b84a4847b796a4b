// See neighbor_pairs.hpp. A warp a neighborhood; its lanes take pairs side by side, each all columns of its own, and
// add them in the contract's order by shuffles. O(k^2 d) a row.
#include <algorithm>

#include "cuda/base/metric_ops.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/lof/neighbor_pairs.hpp"

namespace vicinal::cuda::lof {
namespace {

constexpr int kPairWarps = 8;  // of a block
constexpr unsigned long long kNoOverflow = ~0ULL;

/// What the kernels see of the rows.
struct WideView {
  const double* values;
  const std::uint8_t* zero;
  std::int64_t d;
  Metric metric;
  double p;
};

template <class Op>
__device__ double lanes_sum(const double* x, const double* y, std::int64_t d, double p) {
  double a[core::kLanes] = {};
  for (std::int64_t begin = 0; begin < d; begin += core::kLanes) {
#pragma unroll
    for (std::int64_t l = 0; l < core::kLanes; ++l) {
      if (begin + l < d) Op::add(a[l], x[begin + l], y[begin + l], p);
    }
  }
  return join_lanes<Op>(a);
}

__device__ __forceinline__ double key_of(const WideView& rows, std::int64_t first, std::int64_t second) {
  const double* const x = rows.values + first * rows.d;
  const double* const y = rows.values + second * rows.d;
  switch (rows.metric) {
    case Metric::manhattan:
      return lanes_sum<Absolutes>(x, y, rows.d, rows.p);
    case Metric::minkowski:
      return lanes_sum<Powers>(x, y, rows.d, rows.p);
    case Metric::chebyshev:
      return core::chebyshev_key(x, y, rows.d);
    case Metric::hamming:
      return core::hamming_key(x, y, rows.d);
    default: {
      const bool cosine = rows.metric == Metric::cosine;
      if (cosine && (rows.zero[first] != 0 || rows.zero[second] != 0)) return 1;
      const double sum = lanes_sum<Squares>(x, y, rows.d, rows.p);
      return cosine ? 0.5 * sum : sum;
    }
  }
}

__device__ __noinline__ double distance_of(const WideView& rows, std::int64_t first, std::int64_t second,
                                           unsigned long long* overflow) {
  const double key = key_of(rows, first, second);
  if (!isfinite(key)) atomicMin(overflow, static_cast<unsigned long long>(first) << 32 | static_cast<unsigned>(second));
  if (rows.metric == Metric::minkowski) return Powers::report(rows.metric, key, rows.p);
  return Squares::report(rows.metric, key, rows.p);
}

__global__ void ldof_kernel(core::Neighborhoods near, WideView rows, unsigned long long* overflow, double* scores) {
  const std::int64_t p = (own_number()) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (p >= near.rows) return;
  const core::Neighborhood list(near, p);
  double a = 0;  // the accumulator lane % 8
  std::int64_t pair = 0;
  for (std::int64_t i = 0; i < list.size; ++i) {
    for (std::int64_t begin = i + 1; begin < list.size; begin += 32) {
      const std::int64_t j = begin + lane;
      const double distance = j < list.size ? distance_of(rows, list.ids[i], list.ids[j], overflow) : 0;
      const int count = static_cast<int>(list.size - begin < 32 ? list.size - begin : 32);
      // The first lane whose pair is of this accumulator.
      const int first = static_cast<int>((lane - pair % 8 + 8) % 8);
      for (int from = first; from < first + 32; from += 8) {
        const double other = __shfl_sync(kWholeWarp, distance, from % 32);
        if (from < count) a += other;
      }
      pair += count;
    }
  }
  const double inner = core::sum_of_eight(a) / static_cast<double>(pair);
  const double outer = list.mean([&](std::int64_t i) { return list.distances[i]; });
  if (lane == 0) scores[p] = core::ratio_or_one(outer, inner);
}

/// `scratch`: k numbers a warp, the distance of each neighbor to the chain; below 0 once it is on it.
__global__ void chain_kernel(core::Neighborhoods near, WideView rows, bool in_order, unsigned long long* overflow,
                             double* scratch, double* chains) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * kPairWarps;
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * kPairWarps + threadIdx.x / 32;
  double* const nearest = scratch + warp * near.k;
  for (std::int64_t p = warp; p < near.rows; p += warps) {
    const core::Neighborhood list(near, p);
    const std::int64_t k = list.size;
    for (std::int64_t i = lane; i < k; i += 32) nearest[i] = list.distances[i];
    __syncwarp();
    double a[core::kLanes] = {};
    for (std::int64_t begin = 0; begin < k; begin += core::kLanes) {
#pragma unroll
      for (std::int64_t l = 0; l < core::kLanes; ++l) {
        const std::int64_t step = begin + l;
        if (step >= k) break;
        std::int64_t next = step;
        if (!in_order) {
          double least = INFINITY;
          next = k;
          for (std::int64_t i = lane; i < k; i += 32) {
            if (nearest[i] >= 0 && nearest[i] < least) {
              least = nearest[i];
              next = i;
            }
          }
          for (int other = 16; other > 0; other /= 2) {
            const double distance = __shfl_xor_sync(kWholeWarp, least, other);
            const std::int64_t rank = __shfl_xor_sync(kWholeWarp, next, other);
            if (distance < least || (distance == least && rank < next)) {
              least = distance;
              next = rank;
            }
          }
          if (next >= k) next = 0;  // distances overflowed, and nobody will see the result
        }
        a[l] = fma(static_cast<double>(k - step), nearest[next], a[l]);
        __syncwarp();
        if (lane == 0) nearest[next] = -1;
        __syncwarp();
        for (std::int64_t i = lane; i < k; i += 32) {
          if (nearest[i] < 0) continue;
          const double distance = distance_of(rows, list.ids[next], list.ids[i], overflow);
          if (distance < nearest[i]) nearest[i] = distance;
        }
        __syncwarp();
      }
    }
    if (lane == 0) chains[p] = 2 * core::sum_of_lanes(a) / static_cast<double>(k * (k + 1));
    __syncwarp();
  }
}

WideView view_of(const WideRows& rows) {
  return {rows.values(), rows.zero(), rows.cols(), rows.metric(), rows.p()};
}

/// Runs launch(overflow) and refuses what overflowed.
template <class Launch>
void checked(const Engine& engine, const char* what, const Launch& launch) {
  const Buffer<unsigned long long> overflow(engine, 1);
  check(cudaMemsetAsync(overflow.data(), 0xff, sizeof(unsigned long long), engine.stream), "clear a flag");
  launch(overflow.data());
  check_launch(what);
  unsigned long long found = 0;
  to_host(engine, &found, overflow.data(), 1);
  engine.synchronize();
  if (found == kNoOverflow) return;
  throw Failure{ErrorCode::bad_data, "the distance of table rows " + std::to_string(found >> 32) + " and " +
                                         std::to_string(found & 0xffffffffU) +
                                         " overflows float64; scale the data down"};
}

unsigned chain_blocks(const Engine& engine) {
  return static_cast<unsigned>(engine.multiprocessors) * 8;
}

}  // namespace

std::uint64_t pair_bytes(const Engine& engine, std::int64_t k) {
  return std::uint64_t{chain_blocks(engine)} * kPairWarps * static_cast<std::uint64_t>(k) * sizeof(double);
}

void find_ldof(const Engine& engine, const core::Neighborhoods& near, const WideRows& rows, double* scores) {
  checked(engine, "ldof", [&](unsigned long long* overflow) {
    ldof_kernel<<<blocks_for(near.rows, kPairWarps), 32 * kPairWarps, 0, engine.stream>>>(near, view_of(rows), overflow,
                                                                                          scores);
  });
}

void find_chains(const Engine& engine, const core::Neighborhoods& near, const WideRows& rows, bool in_order,
                 double* chains) {
  const Buffer<double> scratch(engine, static_cast<std::int64_t>(pair_bytes(engine, near.k) / sizeof(double)));
  checked(engine, "chains", [&](unsigned long long* overflow) {
    chain_kernel<<<chain_blocks(engine), 32 * kPairWarps, 0, engine.stream>>>(near, view_of(rows), in_order, overflow,
                                                                              scratch.data(), chains);
  });
}

}  // namespace vicinal::cuda::lof
