// What both walks through a tree share: keys of rows and boxes, the limit of a list, and what a launch is given.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/distance.hpp"
#include "cuda/base/metric_ops.cuh"
#include "cuda/nearest/tree/tree.hpp"

namespace vicinal::cuda {

inline constexpr unsigned long long kTaken = ~0ULL;  ///< no key has these bits
inline constexpr int kLooks = 64;                    ///< steps between two looks at the flag
inline constexpr int kTallies = 256;                 ///< so that not all warps add to the same one

/// The contract's key of d differences.
template <class Op, class Difference>
__device__ __forceinline__ double key_of(int d, double p, Difference difference) {
  double a[core::kLanes] = {};
  for (int j = 0; j < d; j += 8) {
    double t[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      if (j + u < d) t[u] = difference(j + u);
    }
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      if (j + u < d) Op::add(a[u], t[u], p);
    }
  }
  return join_lanes<Op>(a);
}

/// The key of the box that begins at `box` ([d][2][32]): of the gaps to it.
template <class Op, class Value>
__device__ __forceinline__ double box_key(const double* x, const Value* box, int d, double p) {
  return key_of<Op>(d, p, [&](int j) {
    const double below = static_cast<double>(box[j * kBoxValues]) - x[j];
    const double above = x[j] - static_cast<double>(box[j * kBoxValues + kTreeWidth]);
    const double gap = below > above ? below : above;
    return gap > 0 ? gap : 0.0;
  });
}

/// core::nearer of a tree's ids, which have 32 bits.
__device__ __forceinline__ bool is_nearer(double key_a, std::uint32_t id_a, double key_b, std::uint32_t id_b) {
  return key_a < key_b || (key_a == key_b && id_a < id_b);
}

/// The answer's last place, before which something must come to be of use.
struct Limit {
  double key = INFINITY;
  std::uint32_t id = ~0U;

  __device__ bool lets(double other_key, std::uint32_t other_id) const {
    return is_nearer(other_key, other_id, key, id);
  }
};

struct ListTask {
  int k;
  std::int64_t* ids;  ///< [m, k]
  double* distances;
  Metric metric;
  double p;
};

/// Queries of one launch.
struct Walk {
  TreeView tree;
  const double* queries;       // [count, d]
  const std::uint32_t* turns;  // [count] numbers of queries in the order of the leaves, or null
  bool in_leaves;              // `queries` are in that order, too, and the numbers are those within the search
  std::int64_t first;          // of the launch, within the search
  std::int64_t count;
  double p;
  Eligible eligible;
  const int* stop;              // not 0: the caller wants no answer any more
  unsigned long long* touched;  // [kTallies] rows whose keys were formed
  int shared_doubles;           // of a warp
};

/// Doubles of shared memory for the levels that a lane keeps.
__host__ __device__ constexpr int kept_doubles(int height) {
  return (height - 1) * 48;
}

}  // namespace vicinal::cuda
