// Centers of k-means on the device: made ready for the screen, and made anew from the sums. A block a center, and what
// is to be done when all have finished is done by the one that finishes last. Cost O(k d). Centers that are equal bit
// for bit are found by their hashes: the screen must not see them twice, because it could never tell them apart.
#include <cmath>

#include "core/distance.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/kmeans/cluster.hpp"
#include "cuda/nearest/screen/screen.hpp"
#include "formulas/nearest/half_screen.hpp"

namespace vicinal::cuda::kmeans {
namespace {

constexpr int kCentreThreads = 128;
constexpr int kChunk = 1024;
constexpr int kFewCentres = 256;  // their hashes are compared in pairs

/// The sum of the threads' numbers, in a fixed order; in all threads.
template <class Number>
__device__ Number sum_of_block(Number x) {
  __shared__ Number parts[kCentreThreads / 32];
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(kWholeWarp, x, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  Number sum = 0;
  for (const Number part : parts) sum += part;
  return sum;
}

/// Whether the block is the last one to get here; what the others wrote before is there then. By all its threads.
__device__ bool finishes_last(const ClusterView& v) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&v.outcome->finished, 1U) + 1 == gridDim.x;
    if (last) v.outcome->finished = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

__device__ unsigned long long mixed(unsigned long long x) {
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
  return x ^ x >> 32;
}

// All ones are no hash: they mark a free place.
__device__ unsigned long long hash_of(unsigned long long sum) {
  return sum != ~0ULL ? sum : 0;
}

__device__ std::int64_t place_of_hash(const ClusterView& v, unsigned long long hash) {
  return static_cast<std::int64_t>(mixed(hash)) & v.hash_mask;
}

// Where element (c, column) of the packed centers lies.
__device__ __half& packed_centre(const HalfView& h, std::int64_t c, int column) {
  return h.centre_tiles[c / kTableTile * kTableTile * h.columns +
                        packed_offset(kTableTile, static_cast<int>(c % kTableTile), column)];
}

// Its score is below all others: zeros, and as much norm as fits.
__device__ void hide_centre(const HalfView& h, std::int64_t c, int first, int step) {
  for (int j = first; j < h.columns; j += step) {
    packed_centre(h, c, j) = __ushort_as_half(j == h.columns - core::kSpareColumns ? 0x7BFF : 0);
  }
}

// The screen sees a center no more; `lane` of `lanes` threads.
__device__ void drop_centre(const ClusterView& v, std::int64_t c, int lane, int lanes) {
  if (v.half.used) {
    hide_centre(v.half, c, lane, lanes);
    if (lane == 0) v.half.centre_facts[c].half_square = INFINITY;
  } else if (lane == 0) {
    v.panels[c / v.panel * (v.rows.d + 2) * v.panel + c % v.panel] = -INFINITY;
  }
}

// Other blocks of the same kernel may have made the centers.
__device__ bool differ_at(const ClusterView& v, std::int64_t a, std::int64_t b, std::int64_t j) {
  return __double_as_longlong(__ldcg(v.centres + a * v.rows.d + j)) !=
         __double_as_longlong(__ldcg(v.centres + b * v.rows.d + j));
}

// By one block: a thread looks for the first center that has the hash of its own.
__device__ void drop_equal_of_few(const ClusterView& v) {
  __shared__ unsigned long long hashes[kFewCentres];
  const auto k = static_cast<int>(v.k);
  for (int c = static_cast<int>(threadIdx.x); c < k; c += kCentreThreads) hashes[c] = __ldcg(v.hashes + c);
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < k; c += kCentreThreads) {
    int first = 0;
    while (hashes[first] != hashes[c]) ++first;
    if (first == c) continue;
    bool differs = false;
    for (std::int64_t j = 0; j < v.rows.d && !differs; ++j) differs = differ_at(v, c, first, j);
    if (!differs) drop_centre(v, c, 0, 1);
  }
}

__device__ void ready_panel(const ClusterView& v, std::int64_t c) {
  const std::int64_t d = v.rows.d;
  float* const panel = v.panels + c / v.panel * (d + 2) * v.panel + c % v.panel;
  if (c >= v.k) {  // no center: minus infinity is never the best
    for (std::int64_t j = threadIdx.x; j < d + 2; j += kCentreThreads) panel[j * v.panel] = j == 0 ? -INFINITY : 0;
    if (threadIdx.x == 0) v.lengths[c] = v.allowances[c] = 0;
    return;
  }
  double squares = 0;
  unsigned long long hash = 0;
  for (std::int64_t j = threadIdx.x; j < d; j += kCentreThreads) {
    const double centre = v.centres[c * d + j];
    const float value = static_cast<float>(__fma_rn(centre, v.frame.scale, -static_cast<double>(v.frame.shift[j])));
    panel[(j + 1) * v.panel] = value;
    squares += static_cast<double>(value) * static_cast<double>(value);
    hash += mixed(static_cast<unsigned long long>(__double_as_longlong(centre)) +
                  mixed(static_cast<unsigned long long>(j)));
  }
  squares = sum_of_block(squares);
  hash = sum_of_block(hash);
  if (threadIdx.x != 0) return;
  v.hashes[c] = hash_of(hash);
  if (!(squares <= core::kMaxLloydSquares)) {
    v.outcome->tally.unusable = 1;
    return;
  }
  const core::LloydCentre facts = core::lloyd_centre(squares, static_cast<double>(v.frame.bound.beta));
  panel[0] = __double2float_ru(facts.start);
  panel[(d + 1) * v.panel] = v.lengths[c] = __double2float_ru(facts.length);
  v.allowances[c] = __double2float_ru(facts.allowance);
  atomicMin(&v.outcome->tally.least_norm, __float_as_uint(__double2float_rd(sqrt(squares) * (1 - 0x1p-30))));
}

// `unusable`: set where the center is too far away.
__device__ void ready_half(const ClusterView& v, std::int64_t c, unsigned* unusable) {
  const std::int64_t d = v.rows.d;
  const HalfView& h = v.half;
  if (c >= v.k) return hide_centre(h, c, static_cast<int>(threadIdx.x), kCentreThreads);
  const double scale = core::power_of_two(h.exponent);
  core::HalfSums sums;
  unsigned long long hash = 0;
  for (int j = static_cast<int>(threadIdx.x); j < h.columns - core::kSpareColumns; j += kCentreThreads) {
    std::uint16_t bits = 0;
    if (j < d) {
      const double centre = v.centres[c * d + j];
      const double value = __dmul_rn(__dsub_rn(centre, h.middle[j]), scale);
      bits = core::add_half(value, core::half_weight(j, h.columns), sums);
      hash += mixed(static_cast<unsigned long long>(__double_as_longlong(centre)) +
                    mixed(static_cast<unsigned long long>(j)));
    }
    packed_centre(h, c, j) = __ushort_as_half(bits);
    if (h.centre_rows != nullptr) h.centre_rows[c * h.columns + j] = __ushort_as_half(bits);
  }
  sums.exact_sq = sum_of_block(sums.exact_sq);
  sums.rounded_sq = sum_of_block(sums.rounded_sq);
  sums.error_sq = sum_of_block(sums.error_sq);
  sums.weighted_sq = sum_of_block(sums.weighted_sq);
  hash = sum_of_block(hash);
  if (threadIdx.x != 0) return;
  v.hashes[c] = hash_of(hash);
  const core::HalfRow row = core::half_row(sums);
  if (!(row.norm <= core::half_screen::kLongest && row.rho <= core::half_screen::kLongest)) {
    *unusable = 1;
    return;
  }
  const double square = sums.exact_sq / 2;
  std::uint16_t spare[core::kSpareColumns];
  core::half_screen::split_norm(square * (1 - h.beta_wide * (1 + 0x1p-8)), spare);
  spare[2] = core::half_screen::factor(8 * h.beta_wide * row.kappa * (1 + 0x1p-9));
  spare[3] = core::half_screen::factor(row.rho);
  spare[4] = core::half_screen::factor(row.norm);
  for (int i = 0; i < core::kSpareColumns; ++i) {
    packed_centre(h, c, h.columns - static_cast<int>(core::kSpareColumns) + i) = __ushort_as_half(spare[i]);
  }
  h.centre_facts[c] = {__double2float_ru(row.norm), __double2float_ru(row.rho), __double2float_ru(row.kappa),
                       __double2float_ru(square * (1 + 0x1p-30))};
}

template <bool kHalf>
__global__ void __launch_bounds__(kCentreThreads) ready_kernel(const __grid_constant__ ClusterView v) {
  if constexpr (kHalf) {
    ready_half(v, blockIdx.x, &v.outcome->tally.unusable);
  } else {
    ready_panel(v, blockIdx.x);
  }
  if (v.k <= kFewCentres && finishes_last(v)) drop_equal_of_few(v);
}

__global__ void clear_kernel(ClusterOutcome* outcome, bool first) {
  outcome->open = first ? 0 : outcome->open + outcome->tally.open;
  outcome->changed = first ? 0 : outcome->changed + outcome->tally.changed;
  outcome->tally = {0, 0, 0, 0x7F800000U, 0};
}

// A thread a center: the table of hashes keeps the smallest number of each.
__global__ void __launch_bounds__(kCentreThreads) enter_hashes_kernel(const __grid_constant__ ClusterView v) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kCentreThreads + threadIdx.x;
  if (c >= v.k) return;
  for (std::int64_t place = place_of_hash(v, v.hashes[c]);; place = (place + 1) & v.hash_mask) {
    const unsigned long long found = atomicCAS(&v.hash_table[place].hash, ~0ULL, v.hashes[c]);
    if (found != ~0ULL && found != v.hashes[c]) continue;
    atomicMin(&v.hash_table[place].first, static_cast<unsigned long long>(c));
    return;
  }
}

// A warp a center: one that is equal to the first of its hash is never the best. Two that differ and have one hash are
// both kept; an equal center that such a pair hides is found by no screen, but rows next to it are left to keys.
__global__ void __launch_bounds__(kCentreThreads) drop_equal_kernel(const __grid_constant__ ClusterView v) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * (kCentreThreads / 32) + threadIdx.x / 32;
  if (c >= v.k) return;
  const int lane = threadIdx.x % 32;
  std::int64_t place = place_of_hash(v, v.hashes[c]);
  while (v.hash_table[place].hash != v.hashes[c]) place = (place + 1) & v.hash_mask;
  const auto first = static_cast<std::int64_t>(v.hash_table[place].first);
  if (first == c) return;
  bool differs = false;
  for (std::int64_t j = lane; j < v.rows.d; j += 32) differs = differs || differ_at(v, c, first, j);
  if (!__any_sync(kWholeWarp, differs)) drop_centre(v, c, lane, 32);
}

__device__ double rounded_sum(const ClusterView& v, std::int64_t cluster, int column) {
  std::int64_t* const limbs = v.sums + cluster * v.limbs * v.columns + column;
  const std::int64_t carry = core::settle_limbs(limbs, v.columns, v.limbs, v.bits);
  const double sum = core::rounded_limbs(limbs, v.columns, v.limbs, v.bits, carry, v.bases[column]);
  // The carry goes back to where it came from.
  limbs[static_cast<std::int64_t>(v.limbs - 1) * v.columns] += carry * (std::int64_t{1} << v.bits);
  return sum;
}

// The new center, and how far it is from the one before.
__device__ void make_mean(const ClusterView& v, std::int64_t c) {
  const std::int64_t d = v.rows.d;
  __shared__ double weight;
  __shared__ double differences[kChunk];
  __shared__ double parts[core::kLanes];
  if (threadIdx.x == 0)
    weight = v.weights != nullptr ? rounded_sum(v, c, static_cast<int>(d)) : static_cast<double>(v.sizes[c]);
  double sum = 0;  // of the first eight threads: an accumulator of the key
  for (std::int64_t first = 0; first < d; first += kChunk) {
    const int count = static_cast<int>(d - first < kChunk ? d - first : kChunk);
    __syncthreads();
    for (int j = threadIdx.x; j < count; j += kCentreThreads) {
      double& centre = v.centres[c * d + first + j];
      const double mean = __ddiv_rn(rounded_sum(v, c, static_cast<int>(first) + j), weight);
      differences[j] = __dsub_rn(centre, mean);
      centre = mean;
    }
    __syncthreads();
    if (threadIdx.x < core::kLanes) {
      for (int j = threadIdx.x; j < count; j += core::kLanes) sum = __fma_rn(differences[j], differences[j], sum);
    }
  }
  if (threadIdx.x < core::kLanes) parts[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) v.shifts[c] = core::sum_of_lanes(parts);
}

// By one block, in the order of the clusters; in its first thread.
__device__ double sum_of_shifts(const ClusterView& v) {
  __shared__ double shifts[kChunk];
  double sum = 0;
  for (std::int64_t first = 0; first < v.k; first += kChunk) {
    const int count = static_cast<int>(v.k - first < kChunk ? v.k - first : kChunk);
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += kCentreThreads) shifts[i] = __ldcg(v.shifts + first + i);
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 0; i < count; ++i) sum = __dadd_rn(sum, shifts[i]);
    }
  }
  return sum;
}

// The block's center; returns whether the centers move.
__device__ bool move_centre(const ClusterView& v, bool wait) {
  const std::int64_t c = blockIdx.x;
  const bool moves = !(wait && v.outcome->filled < v.k);
  if (moves && v.sizes[c] > 0) {
    make_mean(v, c);
  } else if (threadIdx.x == 0) {
    v.shifts[c] = 0;
  }
  return moves;
}

__global__ void __launch_bounds__(kCentreThreads) means_kernel(const __grid_constant__ ClusterView v, bool wait) {
  const bool moves = move_centre(v, wait);
  if (!finishes_last(v)) return;
  const double sum = sum_of_shifts(v);
  if (threadIdx.x != 0) return;
  v.outcome->shift = sum;
  v.outcome->moved = moves ? 1 : 0;
}

__global__ void __launch_bounds__(kCentreThreads)
    advance_kernel(const __grid_constant__ ClusterView v, bool wait, ClusterOutcome* told) {
  const bool moves = move_centre(v, wait);
  __syncthreads();
  ready_half(v, blockIdx.x, &v.outcome->unusable);
  if (!finishes_last(v)) return;
  drop_equal_of_few(v);
  const double sum = sum_of_shifts(v);
  if (threadIdx.x != 0) return;
  ClusterOutcome& outcome = *v.outcome;
  outcome.shift = sum;
  outcome.moved = moves ? 1 : 0;
  const unsigned unusable = __ldcg(&outcome.unusable);
  *told = outcome;
  outcome.open = outcome.changed = 0;
  outcome.tally = {0, 0, 0, 0x7F800000U, unusable};
  outcome.unusable = 0;
}

}  // namespace

void clear_tally(const Engine& engine, const ClusterView& view, bool first) {
  clear_kernel<<<1, 1, 0, engine.stream>>>(view.outcome, first);
  check_launch("clear the tally");
}

void ready_centres(const Engine& engine, const ClusterView& view) {
  if (view.half.used) {
    const std::int64_t tiles = (view.k + kTableTile - 1) / kTableTile;
    ready_kernel<true><<<static_cast<unsigned>(tiles * kTableTile), kCentreThreads, 0, engine.stream>>>(view);
  } else {
    ready_kernel<false>
        <<<static_cast<unsigned>(view.panel_count() * view.panel), kCentreThreads, 0, engine.stream>>>(view);
  }
  check_launch("make centers ready");
  if (view.k <= kFewCentres) return;
  check(cudaMemsetAsync(view.hash_table, 0xFF, static_cast<std::size_t>(view.hash_mask + 1) * sizeof(HashPlace),
                        engine.stream),
        "clear the table of hashes");
  enter_hashes_kernel<<<blocks_for(view.k, kCentreThreads), kCentreThreads, 0, engine.stream>>>(view);
  check_launch("enter hashes");
  drop_equal_kernel<<<blocks_for(view.k, kCentreThreads / 32), kCentreThreads, 0, engine.stream>>>(view);
  check_launch("drop equal centers");
}

void move_centres(const Engine& engine, const ClusterView& view, bool wait) {
  means_kernel<<<static_cast<unsigned>(view.k), kCentreThreads, 0, engine.stream>>>(view, wait);
  check_launch("make means");
}

bool advances(std::int64_t k) {
  return k <= kFewCentres;
}

void advance(const Engine& engine, const ClusterView& view, bool wait, ClusterOutcome* told) {
  advance_kernel<<<static_cast<unsigned>(view.k), kCentreThreads, 0, engine.stream>>>(view, wait, told);
  check_launch("make means and centers ready");
}

}  // namespace vicinal::cuda::kmeans
