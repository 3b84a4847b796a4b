// The screen of k-means for few narrow centers: that of half.cu, with its scores, its bound and its proof, but a warp
// multiplies 32 rows at a time (mma.sync) with all centers, which lie in shared memory in the order of the instruction.
// The four lanes that share the scores of eight rows hand them over such that each lane ends with one row. A row that
// the bound does not decide waits in shared memory until the block has seen all of its rows; then its warps take such
// rows in turns and compute the float64 keys of all centers, a lane a center, of which the least counts, or the smaller
// number of equal ones. Where more rows are open than there is room for, their warps decide them at once. Contract
// clauses 3 and 12. The bound is that of wgmma's sums, so the kernel is only for devices whose mma.sync was seen to add
// as well (screen/self_test.hpp). Cost: one read of the packed rows; 2 n k K products; k keys an open row.
#include <cmath>
#include <cstdint>

#include "core/distance.hpp"
#include "cuda/base/element.hpp"
#include "cuda/base/mma.cuh"
#include "cuda/base/shared_memory.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/kmeans/cluster.hpp"
#include "cuda/kmeans/list.cuh"
#include "cuda/nearest/screen/screen.hpp"
#include "formulas/nearest/half_screen.hpp"

namespace vicinal::cuda::kmeans {
namespace {

constexpr int kFewWarps = 8;
constexpr int kFewBlocks = 4;     // of a multiprocessor
constexpr int kFewRows = 32;      // of a warp at a time
constexpr int kPairCentres = 16;  // multiplied at a time
constexpr int kMostFewCentres = 64;
constexpr int kMostFewSteps = 4;
constexpr int kMostWaiting = 512;                    // open rows of a block
constexpr unsigned kFewNumberBits = kTableTile - 1;  // of a score: they hold the center's number
using Lists = WarpLists<kFewRows>;

/// What a block keeps in shared memory, as offsets in bytes.
struct Places {
  int pairs;    ///< of tiles of eight centers
  int columns;  ///< of the exact centers: d, up to whole accumulators of the key
  int facts;
  int centres;  ///< [columns][k] float64
  int rows;     ///< [warp][columns] float64: the row whose keys a warp computes
  int lists;
  int bytes;
};
Places places_of(const ClusterView& v) {
  Places p{};
  const auto k = static_cast<int>(v.k);
  const auto lanes = static_cast<int>(core::kLanes);
  p.pairs = (k + kPairCentres - 1) / kPairCentres;
  p.columns = (static_cast<int>(v.rows.d) + lanes - 1) / lanes * lanes;
  p.facts = p.pairs * (v.half.columns / kStep) * 32 * static_cast<int>(sizeof(uint4));
  p.centres = p.facts + p.pairs * kPairCentres * static_cast<int>(sizeof(HalfFacts));
  p.rows = p.centres + p.columns * k * static_cast<int>(sizeof(double));
  p.lists = p.rows + kFewWarps * p.columns * static_cast<int>(sizeof(double));
  p.bytes = p.lists + kFewWarps * 2 * static_cast<int>(sizeof(Lists::Store));
  return p;
}

__device__ double element_at(const Rows& rows, std::int64_t at) {
  switch (rows.dtype) {
    case DType::uint8:
      return widen(static_cast<const std::uint8_t*>(rows.data)[at]);
    case DType::float16:
      return widen(static_cast<const float16*>(rows.data)[at]);
    case DType::bfloat16:
      return widen(static_cast<const bfloat16*>(rows.data)[at]);
    case DType::float32:
      return widen(static_cast<const float*>(rows.data)[at]);
    default:
      return static_cast<const double*>(rows.data)[at];
  }
}

// By a warp: the center of the least key of a row. `row`: room for it.
__device__ __noinline__ int nearest_by_keys(const ClusterView& v, const Places& p, std::int64_t number,
                                            const double* centres, double* row) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const auto k = static_cast<int>(v.k);
  const auto d = static_cast<int>(v.rows.d);
  for (int j = lane; j < p.columns; j += 32) row[j] = j < d ? element_at(v.rows, number * d + j) : 0.0;
  __syncwarp();
  double least = HUGE_VAL;
  int label = k;
  for (int c = lane; c < k; c += 32) {
    double sums[core::kLanes] = {};
#pragma unroll 1
    for (int j = 0; j < p.columns; j += static_cast<int>(core::kLanes)) {
#pragma unroll
      for (int i = 0; i < static_cast<int>(core::kLanes); ++i) {
        // Zeros beyond the last column add nothing.
        const double t = __dsub_rn(row[j + i], centres[(j + i) * k + c]);
        sums[i] = __fma_rn(t, t, sums[i]);
      }
    }
    const double key = core::sum_of_lanes(sums);
    if (key < least) {
      least = key;
      label = c;
    }
  }
  __syncwarp();
#pragma unroll
  for (int other = 16; other > 0; other /= 2) {
    const double their_least = __shfl_xor_sync(kWholeWarp, least, other);
    const int their_label = __shfl_xor_sync(kWholeWarp, label, other);
    if (their_least < least || (their_least == least && their_label < label)) {
      least = their_least;
      label = their_label;
    }
  }
  return label;
}

// The centers as the instruction wants them, their facts, and the exact ones.
template <int kSteps>
__device__ void bring_centres(const ClusterView& v, const Places& p, uint4* fragments, HalfFacts* facts,
                              double* centres) {
  const auto k = static_cast<int>(v.k);
  const auto d = static_cast<int>(v.rows.d);
  for (int i = static_cast<int>(threadIdx.x); i < p.pairs * kSteps * 32; i += kFewWarps * 32) {
    const int centre = i / (kSteps * 32) * kPairCentres + i % 32 / 4;
    const int column = i / 32 % kSteps * kStep + i % 4 * 2;
    const auto two = [&](int row, int of) {
      return *reinterpret_cast<const std::uint32_t*>(v.half.centre_tiles + packed_offset(kTableTile, row, of));
    };
    fragments[i] = {two(centre, column), two(centre, column + 8), two(centre + 8, column), two(centre + 8, column + 8)};
  }
  for (int c = static_cast<int>(threadIdx.x); c < p.pairs * kPairCentres; c += kFewWarps * 32) {
    facts[c] = v.half.centre_facts[c];
  }
  for (int c = static_cast<int>(threadIdx.x / 32); c < k; c += kFewWarps) {
    for (int column = static_cast<int>(threadIdx.x % 32); column < p.columns; column += 32) {
      centres[column * k + c] = column < d ? v.centres[c * d + column] : 0.0;
    }
  }
}

// The best two of a row, as far as they are known; numbers in the last bits.
struct BestTwo {
  float best = -HUGE_VALF;
  float second = -HUGE_VALF;

  __device__ __forceinline__ void take(float score) {
    second = fmaxf(second, fminf(score, best));
    best = fmaxf(best, score);
  }
  __device__ __forceinline__ void join(float their_best, float their_second) {
    second = fmaxf(fmaxf(second, their_second), fminf(best, their_best));
    best = fmaxf(best, their_best);
  }
};

// Two lanes that have parts of two rows: each keeps its own and hands the other's over.
__device__ __forceinline__ BestTwo exchanged(const BestTwo& lower, const BestTwo& upper, bool keeps_upper, int other) {
  BestTwo mine = keeps_upper ? upper : lower;
  const BestTwo theirs = keeps_upper ? lower : upper;
  const float best = __shfl_xor_sync(kWholeWarp, theirs.best, other);
  const float second = __shfl_xor_sync(kWholeWarp, theirs.second, other);
  mine.join(best, second);
  return mine;
}

// A score with its last bits replaced: (score & mask) | number in one instruction, which takes one constant only.
__device__ __forceinline__ float numbered(float score, unsigned mask, unsigned number) {
  unsigned bits;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(bits) : "r"(__float_as_uint(score)), "r"(mask), "r"(number));
  return __uint_as_float(bits);
}

// What a warp reads of 32 rows.
template <int kSteps>
struct FewRows {
  std::uint32_t halves[2][kSteps][4];
  std::int64_t own;  // the row that the lane ends with
  HalfFacts facts;   // of that
  std::int32_t label;

  __device__ __forceinline__ FewRows(const ClusterView& v, std::int64_t group) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const std::int64_t first = group * kFewRows;
    // A register of the instruction has the same four bytes of eight rows, which lie together.
    const auto* const words =
        reinterpret_cast<const std::uint32_t*>(v.half.tiles + first / kQueryTile * (kQueryTile * kSteps * kStep)) +
        first % kQueryTile * 4 + lane;
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          halves[m][step][i] = __ldg(words + (2 * step + i / 2) * (kQueryTile * 4) + 64 * m + 32 * (i % 2));
        }
      }
    }
    own = first + lane % 4 / 2 * 16 + lane % 2 * 8 + lane / 4;
    facts = v.half.row_facts[own];
    label = own < v.rows.n ? v.labels[own] : 0;
  }
};

template <int kSteps>
__global__ void __launch_bounds__(kFewWarps * 32, kSteps < kMostFewSteps ? kFewBlocks : 3)
    few_centres_kernel(const __grid_constant__ ClusterView v, const __grid_constant__ Places p, unsigned mask) {
  extern __shared__ __align__(16) char memory[];
  __shared__ typename Lists::Ends<kFewWarps> ends;
  __shared__ std::uint32_t waiting[kMostWaiting];
  __shared__ int wait;  // rows, those included that had no room
  auto* const fragments = reinterpret_cast<uint4*>(memory);
  auto* const facts = reinterpret_cast<HalfFacts*>(memory + p.facts);
  auto* const centres = reinterpret_cast<double*>(memory + p.centres);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  double* const wide_row = reinterpret_cast<double*>(memory + p.rows) + warp * p.columns;
  Lists lists(v, reinterpret_cast<Lists::Store*>(memory + p.lists) + 2 * warp);
  bring_centres<kSteps>(v, p, fragments, facts, centres);
  if (threadIdx.x == 0) wait = 0;
  __syncthreads();
  const bool usable = v.outcome->tally.unusable == 0;
  const std::int64_t groups = (v.rows.n + kFewRows - 1) / kFewRows;
  for (std::int64_t group = std::int64_t{blockIdx.x} * kFewWarps + warp; group < groups;
       group += std::int64_t{gridDim.x} * kFewWarps) {
    const FewRows<kSteps> rows(v, group);
    const auto& x = rows.halves;
    const bool is_row = rows.own < v.rows.n;
    BestTwo best[4];  // [2 m + half]; of an array of arrays nvcc 13.0 initializes the first one only
#pragma unroll 1
    for (int pair = 0; pair < p.pairs; ++pair) {
      float sums[2][2][4];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const uint4 y = fragments[(pair * kSteps + step) * 32 + lane];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          if (step == 0) {
            mma::multiply(sums[m][0], x[m][step], y.x, y.y);
            mma::multiply(sums[m][1], x[m][step], y.z, y.w);
          } else {
            mma::multiply_add(sums[m][0], x[m][step], y.x, y.y);
            mma::multiply_add(sums[m][1], x[m][step], y.z, y.w);
          }
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto number = static_cast<unsigned>(pair * kPairCentres + i / 2 * 8 + i % 2);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          best[2 * m].take(numbered(sums[m][i / 2][i % 2], mask, number));
          best[2 * m + 1].take(numbered(sums[m][i / 2][2 + i % 2], mask, number));
        }
      }
    }
    // Of the eight centers of a tile two are the lane's.
#pragma unroll
    for (BestTwo& of_row : best) {
      of_row.best = __uint_as_float(__float_as_uint(of_row.best) | static_cast<unsigned>(lane % 4 * 2));
    }
    const bool odd = lane % 2 != 0;
    const BestTwo own =
        exchanged(exchanged(best[0], best[1], odd, 1), exchanged(best[2], best[3], odd, 1), lane % 4 >= 2, 2);
    auto label = static_cast<int>(__float_as_uint(own.best) & kFewNumberBits);
    const bool decided = usable && own.second < half_reach(v.half, own.best, rows.facts, facts[label]);
    const unsigned open = __ballot_sync(kWholeWarp, is_row && !decided);
    bool waits = false;
    if (open != 0) {
      int place = 0;
      if (lane == 0) place = atomicAdd(&wait, __popc(open));
      place = __shfl_sync(kWholeWarp, place, 0) + __popc(open & ((1U << lane) - 1));
      waits = is_row && !decided && place < kMostWaiting;
      if (waits) waiting[place] = static_cast<std::uint32_t>(rows.own);
      unsigned left = __ballot_sync(kWholeWarp, is_row && !decided && !waits);
      for (; left != 0; left &= left - 1) {
        const int which = __ffs(static_cast<int>(left)) - 1;
        const int found = nearest_by_keys(v, p, __shfl_sync(kWholeWarp, rows.own, which), centres, wide_row);
        if (lane == which) label = found;
      }
    }
    lists.take(rows.own, is_row && !waits, true, label, rows.label, 0);
  }
  __syncthreads();
  if (threadIdx.x == 0 && wait > 0) atomicAdd(&v.outcome->tally.open, static_cast<unsigned long long>(wait));
  for (int i = warp; i < min(wait, kMostWaiting); i += kFewWarps) {
    const std::int64_t row = waiting[i];
    const int label = nearest_by_keys(v, p, row, centres, wide_row);
    lists.take(row, lane == 0, true, label, v.labels[row], 0);
  }
  lists.end(ends);
}

using FewKernel = void (*)(ClusterView, Places, unsigned);
constexpr FewKernel kFewKernels[kMostFewSteps] = {few_centres_kernel<1>, few_centres_kernel<2>, few_centres_kernel<3>,
                                                  few_centres_kernel<4>};

}  // namespace

bool screens_few(const Engine& engine, std::int64_t d, std::int64_t k) {
  const core::Accumulation sums = engine.warp_sums.model;
  return sums.width > 0 && core::half_beta(sums) <= core::half_beta(engine.sums.model) && k <= kMostFewCentres &&
         core::half_columns(d) <= kMostFewSteps * kStep;
}

void screen_few(const Engine& engine, const ClusterView& view) {
  const Places places = places_of(view);
  const FewKernel kernel = kFewKernels[view.half.columns / kStep - 1];
  const auto bytes = static_cast<std::size_t>(places.bytes);
  allow_shared_memory(engine, reinterpret_cast<const void*>(kernel), bytes);
  const std::int64_t blocks = (view.rows.n + kFewWarps * kFewRows - 1) / (kFewWarps * kFewRows);
  const std::int64_t most = std::int64_t{engine.multiprocessors} * kFewBlocks;
  kernel<<<static_cast<unsigned>(blocks < most ? blocks : most), kFewWarps * 32, bytes, engine.stream>>>(
      view, places, ~kFewNumberBits);
  check_launch("label rows by few centers");
}

}  // namespace vicinal::cuda::kmeans
