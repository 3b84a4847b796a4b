// What k-means does with rows as they are, of any type: looking through them once, packing them for the screen, keys of
// those that the screen left open. The work lists lie in device memory, so that no
// launch waits for their lengths. Contract clauses 1, 8 and 12.
#include <algorithm>
#include <cmath>

#include "cuda/base/exact_key.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/kmeans/cluster.hpp"
#include "cuda/nearest/screen/screen.hpp"
#include "formulas/kmeans/limits.hpp"
#include "formulas/nearest/half_screen.hpp"

namespace vicinal::cuda::kmeans {
namespace {

constexpr int kWarps = kThreads / 32;
constexpr std::int64_t kScanThreads = std::int64_t{1} << 17;

/// Blocks of a kernel that takes as many items as it finds.
unsigned wide_grid(const Engine& engine) {
  return static_cast<unsigned>(engine.multiprocessors * 8);
}

// A thread looks at elements of one column only: the threads of all blocks together are a multiple of the columns.
template <class T>
__global__ void __launch_bounds__(kThreads)
    scan_kernel(const T* rows, std::int64_t n, std::int64_t d, std::int64_t first_row, std::int64_t threads,
                const double* weights, ColumnScan* columns, unsigned long long* refused) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (begin >= threads || begin >= n * d) return;
  unsigned long long largest = 0;
  unsigned long long largest_term = 0;
  int last = 4096;
  const auto take = [&](double value, double term, std::int64_t at) {
    if (!(fabs(value) < core::kTooLarge)) atomicMin(refused, static_cast<unsigned long long>(first_row * d + at));
    const auto bits = static_cast<unsigned long long>(__double_as_longlong(fabs(value)));
    const auto term_bits = static_cast<unsigned long long>(__double_as_longlong(fabs(term)));
    largest = bits > largest ? bits : largest;
    if (term_bits == 0) return;
    largest_term = term_bits > largest_term ? term_bits : largest_term;
    const auto exponent = static_cast<int>(term_bits >> 52);
    unsigned long long fraction = term_bits & ((1ULL << 52) - 1);
    if (exponent != 0) fraction |= 1ULL << 52;
    last = min(last, (exponent == 0 ? 1 : exponent) - 1 + __ffsll(static_cast<long long>(fraction)) - 1);
  };
  const std::int64_t step = threads / d;  // rows from one element of a thread to its next
  std::int64_t row = begin / d;
  for (std::int64_t i = begin; i < n * d; i += threads, row += step) {
    const double value = widen(rows[i]);
    take(value, weights != nullptr ? __dmul_rn(weights[row], value) : value, i);
  }
  ColumnScan& column = columns[begin % d];
  atomicMax(&column.largest, largest);
  atomicMax(&column.term, largest_term);
  atomicMin(&column.last, last);
}

__global__ void scan_weights_kernel(const double* weights, std::int64_t n, ColumnScan* column) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned long long largest = 0;
  int last = 4096;
  for (std::int64_t i = own_number(); i < n; i += step) {
    const auto bits = static_cast<unsigned long long>(__double_as_longlong(weights[i]));
    if (bits == 0) continue;
    largest = bits > largest ? bits : largest;
    const auto exponent = static_cast<int>(bits >> 52);
    unsigned long long fraction = bits & ((1ULL << 52) - 1);
    if (exponent != 0) fraction |= 1ULL << 52;
    last = min(last, (exponent == 0 ? 1 : exponent) - 1 + __ffsll(static_cast<long long>(fraction)) - 1);
  }
  atomicMax(&column->term, largest);
  atomicMin(&column->last, last);
}

// A block packs a tile of 32 rows, 32 columns at a time through shared memory, so that both sides are whole lines.
template <class T>
__global__ void __launch_bounds__(kThreads)
    pack_kernel(const T* rows, std::int64_t n, std::int64_t d, PointFrame frame, float* points, float* norms) {
  __shared__ float block[32][33];
  __shared__ double parts[kWarps][32];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kPointTile;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  double square = 0;
  for (std::int64_t column = 0; column < d; column += 32) {
    __syncthreads();
    for (int r = warp; r < 32; r += kWarps) {
      const bool inside = first + r < n && column + lane < d;
      float value = 0;
      if (inside) {
        const double wide = widen(rows[(first + r) * d + column + lane]);
        value = static_cast<float>(
            __dsub_rn(__dmul_rn(wide, frame.scale), static_cast<double>(frame.shift[column + lane])));
      }
      block[r][lane] = value;
    }
    __syncthreads();
    for (int j = warp; j < 32 && column + j < d; j += kWarps) {
      const float value = block[lane][j];
      points[(first * d + (column + j) * kPointTile) + lane] = value;
      square += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  parts[warp][lane] = square;
  __syncthreads();
  if (warp != 0) return;
  double sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += parts[w][lane];
  norms[first + lane] = static_cast<float>(sum);
}

// Eight threads a row, each takes every eighth chunk of eight columns; the last chunk has the spare ones.
template <class T>
__global__ void __launch_bounds__(kThreads)
    pack_half_kernel(const T* rows, Rows of, const __grid_constant__ HalfView h) {
  const int d = static_cast<int>(of.d);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (kThreads / 8) + threadIdx.x / 8;
  const bool is_row = row < of.n;
  __half* const tile = h.tiles + row / kQueryTile * kQueryTile * h.columns;
  const double scale = core::power_of_two(h.exponent);
  core::HalfSums sums;
  const int chunks = h.columns / 8;
  union {
    std::uint16_t halves[8];
    uint4 bits;
  } chunk;
  for (int c = threadIdx.x % 8; c < chunks; c += 8) {
    for (int i = 0; i < 8; ++i) {
      const int j = c * 8 + i;
      chunk.halves[i] = 0;
      if (!is_row || j >= d) continue;
      const double value = __dmul_rn(__dsub_rn(widen(rows[row * d + j]), h.middle[j]), scale);
      chunk.halves[i] = core::add_half(value, core::half_weight(j, h.columns), sums);
    }
    if (c + 1 == chunks) break;
    *reinterpret_cast<uint4*>(tile + packed_offset(kQueryTile, static_cast<int>(row % kQueryTile), c * 8)) = chunk.bits;
  }
  for (int step = 4; step > 0; step /= 2) {
    sums.exact_sq += __shfl_xor_sync(kWholeWarp, sums.exact_sq, step);
    sums.rounded_sq += __shfl_xor_sync(kWholeWarp, sums.rounded_sq, step);
    sums.error_sq += __shfl_xor_sync(kWholeWarp, sums.error_sq, step);
    sums.weighted_sq += __shfl_xor_sync(kWholeWarp, sums.weighted_sq, step);
  }
  if (static_cast<int>(threadIdx.x % 8) != (chunks - 1) % 8) return;
  const core::HalfRow facts = core::half_row(sums);
  const double length = core::root_above(sums.exact_sq);
  if (is_row) {
    std::uint16_t* const spare = chunk.halves + 8 - core::kSpareColumns;
    spare[0] = core::half_bits(-0x1p13, core::HalfRounding::nearest_even);
    spare[1] = core::half_bits(-0x1p2, core::HalfRounding::nearest_even);
    spare[2] = core::half_screen::factor(facts.kappa * 0x1p-3);
    spare[3] = core::half_screen::factor(length * (1 + 0x1p-9));
    spare[4] = core::half_screen::factor(facts.rho * (1 + 0x1p-9));
  }
  *reinterpret_cast<uint4*>(tile + packed_offset(kQueryTile, static_cast<int>(row % kQueryTile), (chunks - 1) * 8)) =
      chunk.bits;
  h.row_facts[row] = {__double2float_ru(length), __double2float_ru(facts.rho), __double2float_ru(facts.kappa), 0};
}

__device__ void relabel_later(const ClusterView& v, std::int64_t row, std::int32_t label) {
  if (v.labels[row] == label) return;
  v.fresh[row] = label;
  v.changed[atomicAdd(&v.outcome->tally.changed, 1ULL)] = static_cast<std::uint32_t>(row);
}

// Eight lanes an open row.
template <class T>
__global__ void __launch_bounds__(kThreads) decide_narrow_kernel(const T* rows, const __grid_constant__ ClusterView v) {
  const HalfView& h = v.half;
  ClusterTally& tally = v.outcome->tally;
  const auto open = static_cast<std::int64_t>(tally.open);
  const auto d = static_cast<int>(v.rows.d);
  const std::int64_t step = std::int64_t{gridDim.x} * (kThreads / 8);
  for (std::int64_t at = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / 8; at < open; at += step) {
    const std::int64_t row = v.open[at];
    const int count = at < h.open_room ? h.candidate_counts[at] : 0;
    double least = INFINITY;
    auto label = static_cast<std::int32_t>(v.k);
    // Two at a time, the last one twice where they are odd.
    for (int i = 0; i < count && count <= kMaxCandidates; i += 2) {
      const std::int32_t* const candidates = h.candidates + at * kMaxCandidates;
      const std::int32_t two[2] = {candidates[i], candidates[min(i + 1, count - 1)]};
      const double* const centres[2] = {v.centres + min(std::int64_t{two[0]}, v.k - 1) * d,
                                        v.centres + min(std::int64_t{two[1]}, v.k - 1) * d};
      double keys[2];
      squared_differences(rows + row * d, centres, d, core::mask_of_eight(), keys);
      for (int c = 0; c < 2; ++c) {
        if (two[c] < v.k && (keys[c] < least || (keys[c] == least && two[c] < label))) {
          least = keys[c];
          label = two[c];
        }
      }
    }
    if (threadIdx.x % 8 != 0) continue;
    if (label < v.k) {
      relabel_later(v, row, label);
    } else {
      v.wide[atomicAdd(&tally.wide, 1ULL)] = static_cast<std::uint32_t>(row);
    }
  }
}

// A block decides 16 rows at a time against 32 centers at a time, which meet in shared memory, 64 columns at a time:
// eight lanes share a pair, as the contract's key has it, and keep four rows by four centers, so that what is read from
// shared memory serves four times.
constexpr int kDecideRows = 16;
constexpr int kDecideCentres = 32;
constexpr int kDecideColumns = 64;
constexpr int kDecideStride = kDecideColumns + 8;  // eight lanes more, so that neighbors lie in other banks
constexpr int kDecideEach = 4;
constexpr int kDecideGroups = kDecideCentres / kDecideEach;
static_assert(kDecideRows / kDecideEach * kDecideGroups * 8 == kThreads);

template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    decide_wide_kernel(const T* rows, const __grid_constant__ ClusterView v, const std::uint32_t* list,
                       const unsigned long long* count) {
  __shared__ double row_part[kDecideRows][kDecideStride];
  __shared__ double centre_part[kDecideCentres][kDecideStride];
  __shared__ double best_of[kDecideRows][kDecideGroups];
  __shared__ std::int32_t label_of[kDecideRows][kDecideGroups];
  const auto open = static_cast<std::int64_t>(*count);
  const auto d = static_cast<int>(v.rows.d);
  const auto k = static_cast<int>(v.k);
  const int lane = static_cast<int>(threadIdx.x % 8);
  const int centre_group = static_cast<int>(threadIdx.x / 8 % kDecideGroups);
  const int first_own = static_cast<int>(threadIdx.x / 8 / kDecideGroups) * kDecideEach;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kDecideRows; first < open;
       first += std::int64_t{gridDim.x} * kDecideRows) {
    double best[kDecideEach];
    std::int32_t label[kDecideEach];
    for (int r = 0; r < kDecideEach; ++r) {
      best[r] = INFINITY;
      label[r] = k;
    }
    for (int tile = 0; tile < k; tile += kDecideCentres) {
      double sums[kDecideEach][kDecideEach] = {};
      for (int column = 0; column < d; column += kDecideColumns) {
        __syncthreads();
        // Zeros beyond the last column add nothing.
        for (int e = static_cast<int>(threadIdx.x); e < kDecideRows * kDecideColumns; e += kThreads) {
          const int j = e % kDecideColumns;
          const std::int64_t row = list[min(first + e / kDecideColumns, open - 1)];
          row_part[e / kDecideColumns][j] = column + j < d ? widen(rows[row * d + column + j]) : 0.0;
        }
        for (int e = static_cast<int>(threadIdx.x); e < kDecideCentres * kDecideColumns; e += kThreads) {
          const int j = e % kDecideColumns;
          const std::int64_t c = min(tile + e / kDecideColumns, k - 1);
          centre_part[e / kDecideColumns][j] = column + j < d ? v.centres[c * d + column + j] : 0.0;
        }
        __syncthreads();
        for (int j = lane; j < min(kDecideColumns, d - column); j += 8) {
          double x[kDecideEach];
          double y[kDecideEach];
#pragma unroll
          for (int i = 0; i < kDecideEach; ++i) {
            x[i] = centre_part[i * kDecideGroups + centre_group][j];
            y[i] = row_part[first_own + i][j];
          }
#pragma unroll
          for (int r = 0; r < kDecideEach; ++r) {
#pragma unroll
            for (int c = 0; c < kDecideEach; ++c) {
              const double t = __dsub_rn(x[c], y[r]);
              sums[r][c] = __fma_rn(t, t, sums[r][c]);
            }
          }
        }
      }
#pragma unroll
      for (int r = 0; r < kDecideEach; ++r) {
#pragma unroll
        for (int c = 0; c < kDecideEach; ++c) {
          const double key = core::sum_of_eight(sums[r][c], kWholeWarp);
          const std::int32_t centre = tile + c * kDecideGroups + centre_group;
          if (centre < k && key < best[r]) {
            best[r] = key;
            label[r] = centre;
          }
        }
      }
    }
    for (int r = 0; r < kDecideEach; ++r) {
      if (lane != 0) continue;
      best_of[first_own + r][centre_group] = best[r];
      label_of[first_own + r][centre_group] = label[r];
    }
    __syncthreads();
    if (threadIdx.x >= kDecideRows || first + threadIdx.x >= open) continue;
    double least = INFINITY;
    std::int32_t found = k;
    for (int g = 0; g < kDecideGroups; ++g) {
      const double key = best_of[threadIdx.x][g];
      const std::int32_t theirs = label_of[threadIdx.x][g];
      if (key < least || (key == least && theirs < found)) {
        least = key;
        found = theirs;
      }
    }
    relabel_later(v, list[first + threadIdx.x], found);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    keys_kernel(const T* rows, const __grid_constant__ ClusterView v, double* keys) {
  const int d = static_cast<int>(v.rows.d);
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 8;
  const std::int64_t at = row < v.rows.n ? row : v.rows.n - 1;
  const double key = squared_differences(v.centres + std::int64_t{v.labels[at]} * d, rows + at * d, d, kWholeWarp);
  if (row < v.rows.n && threadIdx.x % 8 == 0) keys[row] = key;
}

__device__ std::int64_t sum_of_warp(std::int64_t x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(kWholeWarp, x, step);
  return x;
}

// Lanes whose terms begin in the same limb are added up before they go to the block's sum.
__global__ void __launch_bounds__(kThreads)
    add_keys_kernel(const __grid_constant__ ClusterView v, const double* keys, std::int64_t* limbs) {
  __shared__ unsigned long long sums[kKeyLimbs];
  for (int i = threadIdx.x; i < kKeyLimbs; i += kThreads) sums[i] = 0;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x / 32 * 32; first < v.rows.n;
       first += step) {
    const std::int64_t row = first + lane;
    const double key = row < v.rows.n ? keys[row] : 0;
    const double term = row < v.rows.n && v.weights != nullptr ? __dmul_rn(v.weights[row], key) : key;
    const core::LimbParts to = core::limb_parts(term, -1074, 32);
    unsigned pending = __ballot_sync(kWholeWarp, term != 0);
    while (pending != 0) {
      const int limb = __shfl_sync(kWholeWarp, to.limb, __ffs(static_cast<int>(pending)) - 1);
      const bool joins = (pending >> lane & 1) != 0 && to.limb == limb;
      for (int i = 0; i < 3; ++i) {
        const std::int64_t sum = sum_of_warp(joins ? static_cast<std::int64_t>(to.parts[i]) : 0);
        if (lane == 0 && sum != 0) atomicAdd(sums + limb + i, static_cast<unsigned long long>(sum));
      }
      pending &= ~__ballot_sync(kWholeWarp, joins);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kKeyLimbs; i += kThreads) {
    if (sums[i] != 0) atomicAdd(reinterpret_cast<unsigned long long*>(limbs) + i, sums[i]);
  }
}

template <class T>
__global__ void widen_kernel(const T* rows, std::int64_t d, const std::int64_t* chosen, std::int64_t count,
                             double* values) {
  const std::int64_t i = own_number();
  if (i < count * d) values[i] = widen(rows[chosen[i / d] * d + i % d]);
}

}  // namespace

void scan_rows(const Engine& engine, const Rows& rows, std::int64_t first_row, const double* weights,
               ColumnScan* columns, unsigned long long* refused) {
  const std::int64_t threads = std::max<std::int64_t>(1, kScanThreads / rows.d) * rows.d;
  with_elements(rows.data, rows.dtype, [&](const auto* data) {
    scan_kernel<<<blocks_for(threads, kThreads), kThreads, 0, engine.stream>>>(data, rows.n, rows.d, first_row, threads,
                                                                               weights, columns, refused);
  });
  check_launch("scan rows");
  if (weights == nullptr) return;
  scan_weights_kernel<<<wide_grid(engine), kThreads, 0, engine.stream>>>(weights, rows.n, columns + rows.d);
  check_launch("scan weights");
}

void pack_points(const Engine& engine, const Rows& rows, const PointFrame& frame, float* points, float* norms) {
  with_elements(rows.data, rows.dtype, [&](const auto* data) {
    pack_kernel<<<blocks_for(rows.n, kPointTile), kThreads, 0, engine.stream>>>(data, rows.n, rows.d, frame, points,
                                                                                norms);
  });
  check_launch("pack points");
}

void pack_half(const Engine& engine, const Rows& rows, const HalfView& half) {
  with_elements(rows.data, rows.dtype, [&](const auto* data) {
    pack_half_kernel<<<blocks_for(half.tile_count * kQueryTile, kThreads / 8), kThreads, 0, engine.stream>>>(data, rows,
                                                                                                             half);
  });
  check_launch("pack rows in float16");
}

void decide_narrow(const Engine& engine, const ClusterView& view) {
  with_elements(view.rows.data, view.rows.dtype, [&](const auto* data) {
    decide_narrow_kernel<<<wide_grid(engine), kThreads, 0, engine.stream>>>(data, view);
  });
  check_launch("decide rows among their candidates");
}

void decide_wide(const Engine& engine, const ClusterView& view) {
  const ClusterTally& tally = view.outcome->tally;
  const bool narrowed = view.half.open_room > 0;
  with_elements(view.rows.data, view.rows.dtype, [&](const auto* data) {
    decide_wide_kernel<<<wide_grid(engine), kThreads, 0, engine.stream>>>(data, view, narrowed ? view.wide : view.open,
                                                                          narrowed ? &tally.wide : &tally.open);
  });
  check_launch("decide rows among all centers");
}

void own_keys(const Engine& engine, const ClusterView& view, double* keys) {
  with_elements(view.rows.data, view.rows.dtype, [&](const auto* data) {
    keys_kernel<<<blocks_for(view.rows.n * 8, kThreads), kThreads, 0, engine.stream>>>(data, view, keys);
  });
  check_launch("keys of rows");
}

void add_keys(const Engine& engine, const ClusterView& view, const double* keys, std::int64_t* limbs) {
  add_keys_kernel<<<wide_grid(engine), kThreads, 0, engine.stream>>>(view, keys, limbs);
  check_launch("add keys");
}

void widen_chosen(const Engine& engine, const Rows& rows, const std::int64_t* chosen, std::int64_t count,
                  double* values) {
  with_elements(rows.data, rows.dtype, [&](const auto* data) {
    widen_kernel<<<blocks_for(count * rows.d, kThreads), kThreads, 0, engine.stream>>>(data, rows.d, chosen, count,
                                                                                       values);
  });
  check_launch("widen rows");
}

}  // namespace vicinal::cuda::kmeans
