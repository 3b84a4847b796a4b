// What both walks through a tree share: keys of rows and boxes, the limit of a list, and what a launch is given.
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/nearest/task.hpp"
#include "cuda/nearest/tree/box.cuh"
#include "cuda/nearest/tree/tree.hpp"

namespace vicinal::cuda {

inline constexpr unsigned long long kTaken = ~0ULL;  ///< no key has these bits
inline constexpr int kLooks = 64;                    ///< steps between two looks at the flag
inline constexpr int kTallies = 256;                 ///< so that not all warps add to the same one

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
