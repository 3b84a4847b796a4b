// Rows of a table that meet a few queries, as they lie: eight lanes share four rows at a time and add up the squared
// differences to all queries in float32; a sum that is not above the bound of its query's limit
// (formulas/nearest/few_queries.hpp) has its key formed in float64, which is rare. A lane takes four neighboring
// columns of every 32, so that N of the lemma is at most d / 8 + 7. Contract clauses 1 and 3. O(rows m d).
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/base/element.hpp"
#include "cuda/base/exact_key.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/keys.hpp"
#include "cuda/nearest/task.hpp"
#include "formulas/nearest/few_queries.hpp"

namespace vicinal::cuda {

inline constexpr int kFewLanes = 8;  // of a row
inline constexpr int kFewRows = 4;   // of these lanes, at a time
inline constexpr int kFewEach = 4;   // columns of a lane
inline constexpr int kFewStep = kFewLanes * kFewEach;
inline constexpr std::int64_t kFewRowsOfWarp = 32 / kFewLanes * kFewRows;
inline constexpr std::int64_t kFewRowsOfBlock = kThreads / kFewLanes * kFewRows;

/// Rows of which some warps take kFewRowsOfWarp each: the first ones, and others that are spread over the table.
struct FewSample {
  std::int64_t first = 0;         // rows, of whole blocks; 0: there is no sample
  std::int64_t spread_warps = 0;  // of whole blocks
  std::int64_t step = 0;          // rows from one of these warps to the next

  [[nodiscard]] __host__ __device__ std::int64_t first_warps() const { return first / kFewRowsOfWarp; }
  [[nodiscard]] __host__ __device__ std::int64_t warps() const { return first_warps() + spread_warps; }
  /// The first row of a warp.
  [[nodiscard]] __device__ std::int64_t row(std::int64_t warp) const {
    const std::int64_t beyond = warp - first_warps();
    return beyond < 0 ? warp * kFewRowsOfWarp : first + beyond * step;
  }
};

struct FewTask {
  Eligible eligible;
  std::int64_t first_row;
  std::int64_t count;
  std::int64_t d;
  bool is_aligned;  // rows begin where four columns are one load
  std::int64_t queries;
  std::int64_t stride;
  const float* values;  // [a kernel's number of queries, stride]: float32 holds all types but float64
  FewSample sample;
  double* nearest;              // [queries, sample.warps()] keys of the nearest row of each warp
  const double* sample_limits;  // [2, queries], of the first rows and of all, where there is a sample
  const double* centre;         // [d] null: not known
  KeySink sink;
};

/// Where blocks divide the rows among their warps: the first of a lane's.
__device__ inline std::int64_t few_first_row() {
  return static_cast<std::int64_t>(blockIdx.x) * kFewRowsOfBlock +
         static_cast<std::int64_t>(threadIdx.x / kFewLanes * kFewRows);
}

struct Four {
  float at[kFewEach];
};

__device__ inline Four four_of(const float* x) {
  const float4 v = __ldg(reinterpret_cast<const float4*>(x));
  return {{v.x, v.y, v.z, v.w}};
}
__device__ inline Four four_of(const std::uint8_t* x) {
  const uchar4 v = __ldg(reinterpret_cast<const uchar4*>(x));
  return {{narrowed(v.x), narrowed(v.y), narrowed(v.z), narrowed(v.w)}};
}
template <class Half>  // float16 and bfloat16
__device__ Four four_of(const Half* x) {
  const ushort4 v = __ldg(reinterpret_cast<const ushort4*>(x));
  return {{narrowed(Half{v.x}), narrowed(Half{v.y}), narrowed(Half{v.z}), narrowed(Half{v.w})}};
}

/// Four columns of a row; 0 beyond the last one.
template <bool kAligned, class T>
__device__ Four columns_of(const T* row, int column, int d) {
  if constexpr (kAligned) return four_of(row + column);
  Four found{};
#pragma unroll
  for (int i = 0; i < kFewEach; ++i) {
    if (column + i < d) found.at[i] = narrowed(row[column + i]);
  }
  return found;
}

/// Up to which key a query's neighbors may be, of rows within the first of the sample and after them.
__device__ inline void few_limits(const FewTask& task, int query, double& within, double& after) {
  within = after = task.sink.limits[query];
  if (task.sample.first == 0) return;
  const double first = task.sample_limits[query];
  within = fmin(within, task.sample_limits[task.queries + query]);
  after = fmin(within, nextafter(first, -INFINITY));
  // Keys of finite rows are finite, and each warp of the sample has a row that may be a neighbor: the query has a value
  // that is not finite, and the search is refused. Else every row would get a key.
  if (!(first < INFINITY)) within = after = -1;
}

/// No float32 sum of a pair within the limit is above this; below 0: no sum is within it.
__device__ inline float few_sums_bound(double limit, std::int64_t d) {
  return limit < 0 ? -1 : __double2float_ru(core::few_queries_bound(limit, d));
}

/// By all eight lanes.
template <class T>
__device__ double few_key(const FewTask& task, const T* rows, std::int64_t query, std::int64_t row) {
  return squared_differences(task.values + query * task.stride, rows + row * task.d, static_cast<int>(task.d),
                             core::mask_of_eight());
}
/// Forms the key of a query and a row of the block of the table, and hands it over where it is within the limit. By all
/// eight lanes.
template <class T>
__device__ void offer(const FewTask& task, const T* rows, std::int64_t query, std::int64_t row, double limit) {
  const std::int64_t number = task.first_row + row;
  if (limit < 0 || row >= task.count || !task.eligible(query, number)) return;  // below 0: refused, or no query
  const double key = few_key(task, rows, query, row);
  const KeySink& sink = task.sink;
  if (threadIdx.x % kFewLanes != 0 || !(key <= limit)) return;
  const auto at = static_cast<std::int64_t>(atomicAdd(&sink.counts[query], 1ULL));
  if (at >= sink.room) return;
  sink.keys[query * sink.room + at] = key;
  sink.ids[query * sink.room + at] = task.eligible.first_row + number;
}

/// Adds up over eight lanes, each of which gives kCount sums: lane l of them is left with the whole sums
/// l kCount / 8 .. (l + 1) kCount / 8 - 1 at the beginning; of fewer than eight, with number l kCount / 8.
template <int kCount, int kStep = kFewLanes / 2>
__device__ __forceinline__ void share_sums(float* sums) {
  if constexpr (kCount > 1) {
    const bool upper = (threadIdx.x & kStep) != 0;
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      const float mine = upper ? sums[i + kCount / 2] : sums[i];
      const float theirs = upper ? sums[i] : sums[i + kCount / 2];
      sums[i] = mine + __shfl_xor_sync(kWholeWarp, theirs, kStep);
    }
  } else {
    sums[0] += __shfl_xor_sync(kWholeWarp, sums[0], kStep);
  }
  if constexpr (kStep > 1) share_sums<(kCount > 1 ? kCount / 2 : 1), kStep / 2>(sums);
}

/// The rows of some lanes, and what they have to do with the queries: kQueries, of which the last ones may be zeros.
template <class T, int kQueries>
class FewRows {
 public:
  /// first_row, first_query: of the lanes' rows, in the block of the table, and of the queries.
  __device__ FewRows(const T* rows, const FewTask& task, std::int64_t first_row, int first_query)
      : task_(task),
        first_query_(first_query),
        lane_(static_cast<int>(threadIdx.x) % kFewLanes),
        first_(first_row),
        rows_(rows) {}

  static constexpr int kCount = kQueries * kFewRows;                            // sums of eight lanes
  static constexpr int kOwn = kCount > kFewLanes ? kCount / kFewLanes : 1;      // of a lane
  static constexpr int kSharing = kCount < kFewLanes ? kFewLanes / kCount : 1;  // lanes with the same sum

  /// The lane's sums are the first kOwn of `sums`, in which kCount zeros were. All threads of a warp.
  __device__ void add_up(float* sums) const {
    add_squares(sums);
    share_sums<kCount>(sums);
  }

  /// Forms the keys that may be within the limits, by the sums of `add_up`. limits, bounds: of the queries from
  /// first_query on. All threads of a warp.
  __device__ void meet(const float* sums, const double* limits, const float* bounds) const {
    unsigned near = 0;  // which of the lane's sums
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      if (sums[i] <= bounds[(lane_ / kSharing * kOwn + i) / kFewRows]) near |= 1U << i;  // NaN: the query is refused
    }
    if (lane_ % kSharing != 0) near = 0;
    const int shift = static_cast<int>(threadIdx.x) % 32 / kFewLanes * kFewLanes;
    unsigned lanes = __ballot_sync(kWholeWarp, near != 0) >> shift & ((1U << kFewLanes) - 1);
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = __ffs(static_cast<int>(lanes)) - 1;
      for (unsigned those = __shfl_sync(core::mask_of_eight(), near, shift + lane); those != 0; those &= those - 1) {
        const int number = lane / kSharing * kOwn + __ffs(static_cast<int>(those)) - 1;
        const int query = number / kFewRows;
        offer(task_, rows_, first_query_ + query, first_ + number % kFewRows, limits[query]);
      }
    }
  }

  /// Forms the key of the row that seems to be nearest, for each query. warp: of the sample.
  __device__ void sample(std::int64_t warp) const {
    float sums[kCount] = {};
    add_up(sums);
    const int own = lane_ / kSharing * kOwn;
    unsigned long long nearest[kOwnQueries];  // sum and row of each of the lane's queries; sums by their bits
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int query = first_query_ + (own + i) / kFewRows;
      const int r = (own + i) % kFewRows;
      unsigned long long at = static_cast<unsigned long long>(__float_as_uint(sums[i])) << 32 |
                              static_cast<unsigned>(threadIdx.x % 32 / kFewLanes * kFewRows + r);
      if (query >= task_.queries || !task_.eligible(query, task_.first_row + first_ + r)) at = kNone;
      unsigned long long& least = nearest[i / kFewRows];
      if (i % kFewRows == 0 || at < least) least = at;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      if (step < kFewLanes && step * kQueries >= kFewLanes) continue;  // other queries' lanes
#pragma unroll
      for (unsigned long long& own_nearest : nearest) {
        const unsigned long long theirs = __shfl_xor_sync(kWholeWarp, own_nearest, step);
        own_nearest = theirs < own_nearest ? theirs : own_nearest;
      }
    }
    const int group = static_cast<int>(threadIdx.x) % 32 / kFewLanes;
#pragma unroll
    for (int first = 0; first < kQueries; first += 32 / kFewLanes) {
      const int query = first + group;
      unsigned long long of_query = kNone;
#pragma unroll
      for (int i = 0; i < kOwnQueries; ++i) {
        const auto theirs = __shfl_sync(kWholeWarp, nearest[i], query * kFewLanes / kQueries % kFewLanes);
        if (query % kOwnQueries == i) of_query = theirs;
      }
      if (first_query_ + query >= task_.queries) continue;
      const std::int64_t row = task_.sample.row(warp) + static_cast<std::int64_t>(of_query & 0xFFFFFFFFU);
      const double key = of_query == kNone ? INFINITY : few_key(task_, rows_, first_query_ + query, row);
      if (lane_ == 0) task_.nearest[(first_query_ + query) * task_.sample.warps() + warp] = key;
    }
  }

 private:
  static constexpr int kOwnQueries = kOwn > kFewRows ? kOwn / kFewRows : 1;
  static constexpr unsigned long long kNone = ~0ULL;

  __device__ void add_squares(float* sums) const {
    if (task_.is_aligned) return add_squares_of<true>(sums);
    add_squares_of<false>(sums);
  }
  template <bool kAligned>
  __device__ void add_squares_of(float* sums) const {
    const T* rows[kFewRows];
#pragma unroll
    for (int r = 0; r < kFewRows; ++r) rows[r] = rows_ + min(first_ + r, task_.count - 1) * task_.d;
    const float* const x = task_.values + first_query_ * task_.stride;
    const int stride = static_cast<int>(task_.stride);
    const int d = static_cast<int>(task_.d);
    constexpr int kUnrolled = kQueries <= 4 ? 2 : 1;
#pragma unroll kUnrolled
    for (int column = lane_ * kFewEach; column < d; column += kFewStep) {
      Four y[kFewRows];
#pragma unroll
      for (int r = 0; r < kFewRows; ++r) y[r] = columns_of<kAligned>(rows[r], column, d);
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        const Four at = four_of(x + q * stride + column);
#pragma unroll
        for (int r = 0; r < kFewRows; ++r) {
#pragma unroll
          for (int i = 0; i < kFewEach; ++i) {
            const float t = y[r].at[i] - at.at[i];
            sums[q * kFewRows + r] = fmaf(t, t, sums[q * kFewRows + r]);
          }
        }
      }
    }
  }

  const FewTask& task_;
  int first_query_;
  int lane_;
  std::int64_t first_;  // of this lane's rows, within the block of the table
  const T* rows_;
};

}  // namespace vicinal::cuda
