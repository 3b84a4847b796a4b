// Rows of a table that meet some queries by the matrix units, as they lie: a warp takes some rows at a time, cuts their
// columns, less those of the center, to tf32, multiplies them with those of all queries (m16n8k8) and adds up their
// squares; a pair that may be within its query's limit (lemma few_queries.products) has its key formed in float64,
// which is rare. Blocks stay, and go over the table in turns. Contract clauses 1 and 3. O(rows m d) by matrix units, so
// that what counts is one reading of the table.
//
// It is not rare in tight clusters, which tf32 does not tell apart: of relative radius 1e-2 all pairs of a cluster may
// be near. Where many pairs of a warp's rows and eight queries may be, float32 sums of squared differences
// (few_rows.cuh) tell first whose keys are needed.
//
// Rows pass through a ring of slots in shared memory, one of each warp, which copies a later slot while
// it multiplies one. Of each 16 columns lane t of four has the four from 4 t on: the first product takes the columns 4
// t and 4 t + 1, the second the other two. In which order they come does not matter, if both sides have the same.
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/base/mma.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/few_rows.cuh"
#include "formulas/nearest/few_queries.hpp"

namespace vicinal::cuda {

inline constexpr int kProductQueries = 8;  // of a product
inline constexpr int kProductTiles = 1;    // of 16 rows, of a warp
inline constexpr int kProductHalves = 4;   // of 16 columns, of a slot
inline constexpr int kProductSlots = 3;    // of a warp's ring
inline constexpr int kProductBlocks = 2;   // of a multiprocessor, if there is room for their rings
inline constexpr int kLaterPairs = 192;    // of a block
inline constexpr int kManyPairs = 8;       // of a warp's rows and eight queries: more than keys are formed of
inline constexpr int kProductRows = 16 * kProductTiles;
static_assert(kProductRows == kFewRowsOfWarp);
inline constexpr int kProductStep = 16 * kProductHalves;
inline constexpr int kRowLoads = kProductStep / kFewEach;  // of a row in a slot
inline constexpr int kRowsTogether = 32 / kRowLoads;       // rows that a warp copies at a time

/// Bytes of shared memory: the center, the queries in the order in which lanes read them, and the rings.
inline std::size_t product_bytes(int tiles, std::int64_t d, std::int64_t element_bytes) {
  const std::int64_t halves = (d + 15) / 16;
  const std::int64_t ring = kProductSlots * kProductRows * kProductStep * element_bytes;
  return static_cast<std::size_t>(halves * (4 + tiles * 32)) * sizeof(float4) +
         static_cast<std::size_t>(kThreads / 32 * ring);
}

/// What a lane reads of its rows.
template <class T>
__device__ __forceinline__ Four four_of_shared(const T* x) {
  struct alignas(kFewEach * sizeof(T)) Together {
    T at[kFewEach];
  };
  const Together v = *reinterpret_cast<const Together*>(x);
  return {{narrowed(v.at[0]), narrowed(v.at[1]), narrowed(v.at[2]), narrowed(v.at[3])}};
}

/// What a block knows of its queries, and pairs whose keys are formed at the end: a warp that forms one reads nothing
/// meanwhile.
template <int kQueries>
struct ProductLimits {
  std::int64_t later[kLaterPairs];  // row kQueries + query
  int later_count;
  double limits[2][kQueries];  // within the sample, and after it
  float bounds[2][kQueries];
  float sums_bounds[2][kQueries];  // of float32 sums
  float factors[kQueries];
  double norms[kQueries];
};

/// The rows of a warp, and what they have to do with 8 kTiles queries.
template <class T, int kTiles, bool kAligned>
class FewProducts {
 public:
  static constexpr int kQueries = kTiles * kProductQueries;
  using Limits = ProductLimits<kQueries>;

  __device__ FewProducts(const T* rows, const FewTask& task, float4* shared)
      : task_(task),
        rows_(rows),
        halves_(static_cast<int>((task.d + 15) / 16)),
        centre_(shared),
        queries_(shared + 4 * halves_),
        kept_(static_cast<float>(core::few_products_kept(task.d))),
        lane_(static_cast<int>(threadIdx.x) % 32) {}

  /// Sets the first rows going.
  __device__ void prepare() {
#if __CUDA_ARCH__ >= 800
    if constexpr (kAligned) {
      next_.tile = first_tile();
#pragma unroll
      for (int i = 0; i < kProductSlots - 1; ++i) fill(next_, number_of_tiles(), own_ring());
    }
#endif
  }

  /// Queries and limits to shared memory. All threads of the block.
  __device__ void begin(Limits& limits) const {
    auto* const centre = reinterpret_cast<float*>(centre_);
    if (threadIdx.x == 0) limits.later_count = 0;
    for (int i = static_cast<int>(threadIdx.x); i < halves_ * 16; i += kThreads) {
      centre[i] = i < task_.d ? static_cast<float>(task_.centre[i]) : 0.0F;
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kTiles * halves_ * 32; i += kThreads) {
      const int half = i / 32 % halves_;
      const int query = i / 32 / halves_ * kProductQueries + i % 32 / 4;
      const int column = half * 16 + i % 4 * 4;
      const float4 c = centre_[half * 4 + i % 4];
      const Four x = column < task_.stride ? four_of(task_.values + query * task_.stride + column) : Four{};
      queries_[i] =
          make_float4(factor(x.at[0] - c.x), factor(x.at[1] - c.y), factor(x.at[2] - c.z), factor(x.at[3] - c.w));
    }
    for (int query = static_cast<int>(threadIdx.x) / 32; query < kQueries; query += kThreads / 32) {
      double norm = 0;
      for (int column = lane_; column < task_.stride; column += 32) {
        const double w = task_.values[query * task_.stride + column] - centre[column];
        norm = __fma_rn(w, w, norm);
      }
      for (int step = 16; step > 0; step /= 2) norm += __shfl_xor_sync(kWholeWarp, norm, step);
      if (lane_ == 0) limits.norms[query] = norm;
    }
    __syncthreads();
    if (threadIdx.x < 2 * kQueries) {
      const int query = static_cast<int>(threadIdx.x) / 2;
      const int after = static_cast<int>(threadIdx.x) % 2;
      double both[2] = {-1, -1};  // of zeros
      if (query < task_.queries) few_limits(task_, query, both[0], both[1]);
      const double limit = after != 0 ? both[1] : both[0];
      const auto bound = core::few_products_bound(limit, limits.norms[query], task_.d);
      limits.limits[after][query] = limit;
      limits.bounds[after][query] = bound.bound;
      limits.sums_bounds[after][query] = few_sums_bound(limit, task_.d);
      if (after == 0) limits.factors[query] = bound.factor;  // the same
    }
    __syncthreads();
  }

  /// All rows of the launch, by all threads.
  __device__ void run(Limits& limits) const {
#if __CUDA_ARCH__ >= 800
    if constexpr (kAligned) {
      run_in_ring(limits);
    } else {
      run_at_once(limits);
    }
    __syncthreads();
    const int count = min(limits.later_count, kLaterPairs);
    for (int i = static_cast<int>(threadIdx.x) / kFewLanes; i < count; i += kThreads / kFewLanes) {
      const std::int64_t row = limits.later[i] / kQueries;
      const std::int64_t query = limits.later[i] % kQueries;
      offer(task_, rows_, query, row, limits.limits[is_after(row)][query]);
    }
#endif
  }

 private:
  static constexpr int kLaneRows = 2 * kProductTiles;  // of a lane: 8 r + lane / 4
  static constexpr int kSlotBytes = kProductRows * kProductStep * static_cast<int>(sizeof(T));
  static constexpr int kEachBytes = kFewEach * static_cast<int>(sizeof(T));

  /// A warp's way over its tiles, a slot at a time, as far as they were set going.
  struct Filling {
    std::int64_t tile = 0;
    int step = 0;
    int slot = 0;
  };
  struct Sums {
    float products[kProductTiles][kTiles][4] = {};
    float norms[kLaneRows] = {};
  };

  /// Of a query that is refused, whose values may be anything: 0.
  static __device__ float factor(float w) {
    return isfinite(w) ? __uint_as_float(mma::tf32(w)) : 0.0F;
  }

  __device__ std::int64_t first_tile() const {
    return static_cast<std::int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  }

  /// Whether a row comes after the sample: 0 or 1.
  __device__ int is_after(std::int64_t row) const {
    return task_.first_row + row >= task_.sample.first ? 1 : 0;
  }
  __device__ std::int64_t number_of_tiles() const {
    return (task_.count + kProductRows - 1) / kProductRows;
  }
  /// The warp's slots.
  __device__ char* own_ring() const {
    return reinterpret_cast<char*>(queries_ + kTiles * halves_ * 32) +
           static_cast<int>(threadIdx.x) / 32 * kProductSlots * kSlotBytes;
  }

  /// Takes in four columns of each of the lane's rows. half: of 16 columns.
  __device__ __forceinline__ void add(const Four* y, int half, Sums& sums) const {
    const float4 c = centre_[half * 4 + lane_ % 4];
    std::uint32_t a[kLaneRows][kFewEach];
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
      const float z[kFewEach] = {y[r].at[0] - c.x, y[r].at[1] - c.y, y[r].at[2] - c.z, y[r].at[3] - c.w};
#pragma unroll
      for (int i = 0; i < kFewEach; ++i) {
        sums.norms[r] = fmaf(z[i], z[i], sums.norms[r]);
        a[r][i] = mma::tf32(z[i]);
      }
    }
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const uint4 b = *reinterpret_cast<const uint4*>(&queries_[(n * halves_ + half) * 32 + lane_]);
#pragma unroll
      for (int m = 0; m < kProductTiles; ++m) {
        const std::uint32_t first[4] = {a[2 * m][0], a[2 * m + 1][0], a[2 * m][1], a[2 * m + 1][1]};
        const std::uint32_t second[4] = {a[2 * m][2], a[2 * m + 1][2], a[2 * m][3], a[2 * m + 1][3]};
        mma::multiply_add_tf32(sums.products[m][n], first, b.x, b.y);
        mma::multiply_add_tf32(sums.products[m][n], second, b.z, b.w);
      }
    }
  }

  /// Rows that begin within a load are read column by column.
  __device__ void run_at_once(Limits& limits) const {
    const std::int64_t tiles = number_of_tiles();
    const int d = static_cast<int>(task_.d);
    for (std::int64_t tile = first_tile(); tile < tiles; tile += gridDim.x * (kThreads / 32)) {
      const T* rows[kLaneRows];
#pragma unroll
      for (int r = 0; r < kLaneRows; ++r) {
        rows[r] = rows_ + min(tile * kProductRows + 8 * r + lane_ / 4, task_.count - 1) * task_.d;
      }
      Sums sums;
      for (int half = 0; half < halves_; ++half) {
        Four y[kLaneRows];
#pragma unroll
        for (int r = 0; r < kLaneRows; ++r) y[r] = columns_of<false>(rows[r], half * 16 + lane_ % 4 * 4, d);
        add(y, half, sums);
      }
      meet(limits, tile, sums);
    }
  }

  /// Sets the next slot going, if there is one. Four columns of a row lie in the place of their number, with rows in
  /// turns in the one or the other half: so lanes that read together meet all banks.
  __device__ __forceinline__ void fill(Filling& next, std::int64_t tiles, char* ring) const {
    if (next.tile < tiles) {
      const int column = next.step * kProductStep + lane_ % kRowLoads * kFewEach;
      const std::int64_t first = next.tile * kProductRows + lane_ / kRowLoads;
      char* const to = ring + next.slot * kSlotBytes;
      const bool is_column = column < task_.d;
      const auto place = [&](int i) {
        const int row = lane_ / kRowLoads + i * kRowsTogether;
        return to + (row * kRowLoads + (lane_ % kRowLoads ^ row % 2 * 4)) * kEachBytes;
      };
      if ((next.tile + 1) * kProductRows <= task_.count) {
        const T* from = is_column ? rows_ + first * task_.d + column : rows_;
        const std::int64_t further = is_column ? kRowsTogether * task_.d : 0;
#pragma unroll
        for (int i = 0; i < kProductRows / kRowsTogether; ++i) {
          mma::copy_or_clear<kEachBytes>(place(i), from, is_column);
          from += further;
        }
      } else {
        for (int i = 0; i < kProductRows / kRowsTogether; ++i) {
          const std::int64_t row = first + i * kRowsTogether;
          const bool is_there = is_column && row < task_.count;
          mma::copy_or_clear<kEachBytes>(place(i), is_there ? rows_ + row * task_.d + column : rows_, is_there);
        }
      }
      if (++next.step * kProductHalves >= halves_) {
        next.step = 0;
        next.tile += gridDim.x * (kThreads / 32);
      }
      next.slot = next.slot + 1 == kProductSlots ? 0 : next.slot + 1;
    }
    mma::copies_commit();
  }

  __device__ void run_in_ring(Limits& limits) const {
    const std::int64_t tiles = number_of_tiles();
    char* const ring = own_ring();
    Filling next = next_;
    const char* const own = ring + lane_ / 4 * kRowLoads * kEachBytes;
    int slot = 0;
    for (std::int64_t tile = first_tile(); tile < tiles; tile += gridDim.x * (kThreads / 32)) {
      Sums sums;
      for (int half = 0; half < halves_; half += kProductHalves) {
        mma::copies_wait<kProductSlots - 2>();
        __syncwarp();
        fill(next, tiles, ring);  // where all have read what was there
        const char* const from = own + slot * kSlotBytes;
#pragma unroll
        for (int h = 0; h < kProductHalves; ++h) {
          if (half + h >= halves_) break;
          const int place = ((4 * h + lane_ % 4) ^ (lane_ / 4 % 2 * 4)) * kEachBytes;
          Four y[kLaneRows];
#pragma unroll
          for (int r = 0; r < kLaneRows; ++r) {
            y[r] = four_of_shared(reinterpret_cast<const T*>(from + r * 8 * kRowLoads * kEachBytes + place));
          }
          add(y, half + h, sums);
        }
        slot = slot + 1 == kProductSlots ? 0 : slot + 1;
      }
      meet(limits, tile, sums);
    }
  }

  /// Of a bit of what a lane finds near.
  static __device__ int query_of(int bit, int lane) {
    return bit / (2 * kLaneRows) * kProductQueries + lane % 4 * 2 + bit % 2;
  }
  static __device__ int row_of(int bit, int lane) {
    return bit / 2 % kLaneRows * 8 + lane / 4;
  }

  /// Forms the keys of the tile's rows and eight queries that float32 sums do not drop.
  __device__ __forceinline__ void meet_by_differences(const Limits& limits, std::int64_t tile, int first_query) const {
    using Own = FewRows<T, kProductQueries>;
    const int after = is_after(tile * kProductRows);
    const Own own(rows_, task_, tile * kProductRows + lane_ / kFewLanes * kFewRows, first_query);
    float sums[Own::kCount] = {};
    own.add_up(sums);
    own.meet(sums, limits.limits[after] + first_query, limits.sums_bounds[after] + first_query);
  }

  /// Forms the keys that may be within the limits. Lane 4 g + t has the sums of rows 8 r + g with queries 2 t and
  /// 2 t + 1 of each eight.
  __device__ __forceinline__ void meet(Limits& limits, std::int64_t tile, Sums& sums) const {
    const int after = is_after(tile * kProductRows);
    const int t = lane_ % 4;
    unsigned near = 0;  // bit 2 kLaneRows n + 2 r + i: row 8 r + g and query 8 n + 2 t + i
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
      float norm = sums.norms[r];
      norm += __shfl_xor_sync(kWholeWarp, norm, 1);
      norm += __shfl_xor_sync(kWholeWarp, norm, 2);
      const float length = __fsqrt_ru(norm);
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int query = n * kProductQueries + 2 * t + i;
          const core::FewProductsBound of_query = {limits.factors[query], limits.bounds[after][query]};
          const float product = sums.products[r / 2][n][r % 2 * 2 + i];
          if (!core::few_products_drop(of_query, kept_, norm, length, product)) {
            near |= 1U << (2 * kLaneRows * n + 2 * r + i);
          }
        }
      }
    }
    if (!__any_sync(kWholeWarp, near != 0)) return;
#pragma unroll 1
    for (int n = 0; n < kTiles; ++n) {
      const unsigned eight = ((1U << 2 * kLaneRows) - 1) << 2 * kLaneRows * n;
      if (sum_of_warp(__popc(near & eight)) <= kManyPairs) continue;
      meet_by_differences(limits, tile, n * kProductQueries);
      near &= ~eight;
    }
    for (; near != 0; near &= near - 1) {
      const int place = atomicAdd(&limits.later_count, 1);
      if (place >= kLaterPairs) break;
      const int bit = __ffs(static_cast<int>(near)) - 1;
      limits.later[place] = (tile * kProductRows + row_of(bit, lane_)) * kQueries + query_of(bit, lane_);
    }
    // Those that there is no room for, at once.
    const int shift = lane_ / kFewLanes * kFewLanes;
    unsigned lanes = __ballot_sync(kWholeWarp, near != 0) >> shift & ((1U << kFewLanes) - 1);
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = shift + __ffs(static_cast<int>(lanes)) - 1;
      for (unsigned those = __shfl_sync(core::mask_of_eight(), near, lane); those != 0; those &= those - 1) {
        const int bit = __ffs(static_cast<int>(those)) - 1;
        const int query = query_of(bit, lane);
        offer(task_, rows_, query, tile * kProductRows + row_of(bit, lane), limits.limits[after][query]);
      }
    }
    __syncwarp();
  }

  const FewTask& task_;
  const T* rows_;
  int halves_;       // 16 columns each
  float4* centre_;   // [halves, 4]
  float4* queries_;  // [kTiles, halves, 32]
  float kept_;
  int lane_;
  Filling next_;
};

template <class T, int kTiles, bool kAligned>
__global__ void __launch_bounds__(kThreads, kProductBlocks)
    few_products_kernel(const T* rows, const __grid_constant__ FewTask task) {
  extern __shared__ float4 memory[];
  __shared__ ProductLimits<kTiles * kProductQueries> limits;
  FewProducts<T, kTiles, kAligned> own(rows, task, memory);
  own.prepare();
  own.begin(limits);
  own.run(limits);
}

}  // namespace vicinal::cuda
