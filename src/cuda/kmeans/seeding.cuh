// Masses and draws by the lanes of a warp (contract clause 12). What other blocks wrote in the same launch is read from
// the second cache (__ldcg).
#pragma once

#include "cuda/base/exact_key.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/kmeans/seeding.hpp"

namespace vicinal::cuda::kmeans {

__device__ __forceinline__ double mass_of(const SeedView& v, std::int64_t row, double key) {
  return v.weights != nullptr ? __dmul_rn(v.weights[row], key) : key;
}

/// The mass of a row after a trial.
__device__ __forceinline__ double mass_after(const SeedView& v, std::int64_t row, int trial) {
  const std::uint32_t word = __ldcg(v.changed + row / 32 * v.slots + trial);
  const bool changed = (word >> row % 32 & 1) != 0;
  return mass_of(v, row, __ldcg(changed ? v.tried + trial * v.n + row : v.keys + row));
}

/// core::part_under by a warp, a lane a part, which lie in parts[32] too. Every lane adds them up, and keeps what comes
/// before its own.
__device__ __forceinline__ int part_under(double own, const double* parts, double& t) {
  const int lane = threadIdx.x % 32;
  double sum = 0;
  double before = 0;
#pragma unroll
  for (int p = 0; p < core::kMassParts; ++p) {
    if (p == lane) before = sum;
    sum = __dadd_rn(sum, parts[p]);
  }
  const unsigned some = __ballot_sync(kWholeWarp, own != 0);
  const unsigned above = __ballot_sync(kWholeWarp, own != 0 && __dadd_rn(before, own) > t);
  const int taken = above != 0 ? __ffs(static_cast<int>(above)) - 1 : 31 - __clz(static_cast<int>(some));
  t = __dsub_rn(t, __shfl_sync(kWholeWarp, before, taken));
  return taken;
}

/// The row that a draw stands for after a trial; by a warp. parts: [32] of its own.
__device__ inline std::int64_t drawn_row(const SeedView& v, double u, int trial, double* parts) {
  const int lane = threadIdx.x % 32;
  const double total = __ldcg(v.sums + v.tree.total() * v.slots + trial);
  if (total == 0) return core::massless_row(u, v.n);
  double t = __dmul_rn(u, total);
  std::int64_t node = 0;
  for (int level = v.tree.levels - 1; level >= 0; --level) {
    const std::int64_t first = node * core::kMassParts;
    const std::int64_t part = first + lane;
    double value = 0;
    if (level > 0 && part < v.tree.sizes[level - 1]) {
      value = __ldcg(v.sums + (v.tree.begins[level - 1] + part) * v.slots + trial);
    }
    if (level == 0 && part < v.n) value = mass_after(v, part, trial);
    __syncwarp();
    parts[lane] = value;
    __syncwarp();
    node = first + part_under(value, parts, t);
  }
  return node;
}

/// Adds the masses of 32 rows; by eight lanes, the rows' keys given by key(row).
template <class Key>
__device__ __forceinline__ double sum_of_rows(const SeedView& v, std::int64_t first, const Key& key) {
  double sum = 0;
#pragma unroll
  for (int j = 0; j < core::kMassParts; j += 8) {
    const std::int64_t row = first + j + threadIdx.x % 8;
    if (row < v.n) sum = __dadd_rn(sum, mass_of(v, row, key(row)));
  }
  return core::sum_of_eight(sum, core::mask_of_eight());
}

/// Adds the sums below a node of level 1 or more.
__device__ __forceinline__ void add_node(const SeedView& v, int level, std::int64_t node, int slot) {
  const std::int64_t first = node * core::kMassParts;
  const std::int64_t left = v.tree.sizes[level - 1] - first;
  const double* const parts = v.sums + (v.tree.begins[level - 1] + first) * v.slots + slot;
  v.sums[(v.tree.begins[level] + node) * v.slots + slot] =
      core::sum_of_parts(left, [&](std::int64_t p) { return __ldcg(parts + p * v.slots); });
}

}  // namespace vicinal::cuda::kmeans
