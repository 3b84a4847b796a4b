// Few queries: what counts is the table's memory, which is read once, without a copy. Eight lanes share four rows at a
// time and add up the squared differences to all queries in float32; a sum that is not above the bound of its query's
// limit (formulas/nearest/few_queries.hpp) has its key formed in float64, which is rare. A lane takes four neighboring
// columns of every 32, so that N of the lemma is at most d / 8 + 7.
//
// The limit: of the first rows of the table, each warp of a launch of its own takes 16 and forms the key of the one
// whose sum is the least, of those that may be neighbors. k such rows are k neighbors that a query may have, so that
// the k-th of their keys is a limit for all rows, and rows after them, whose ids are larger, have to be below it. With
// a filter the first rows may all be left out: then there is no sample, and the blocks grow (direct.cu). O(m n d).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cuda/base/element.hpp"
#include "cuda/base/exact_key.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/few.hpp"
#include "formulas/nearest/few_queries.hpp"

namespace vicinal::cuda {

struct FewQueries::Task {
  Eligible eligible;
  std::int64_t first_row;
  std::int64_t count;
  std::int64_t d;
  bool is_aligned;  // rows begin where four columns are one load
  std::int64_t queries;
  std::int64_t stride;
  const double* wide;
  const float* narrow;
  std::int64_t sampled;         // rows of the table's first ones
  double* nearest;              // [queries, sampled / kFewRowsOfWarp] keys of the nearest row of each warp
  const double* sample_limits;  // [queries] where some were sampled
  KeySink sink;
};

namespace {

using FewTask = FewQueries::Task;

constexpr int kFewLanes = 8;  // of a row
constexpr int kFewRows = 4;   // of these lanes, at a time
constexpr int kFewEach = 4;   // columns of a lane
constexpr int kFewStep = kFewLanes * kFewEach;
constexpr std::int64_t kFewRowsOfWarp = 32 / kFewLanes * kFewRows;
constexpr std::int64_t kFewRowsOfBlock = kThreads / kFewLanes * kFewRows;
constexpr std::int64_t kSampleRows = 16384;  // at least, if these are at most half of the block
constexpr std::int64_t kSampleOfNeighbor = 64;
constexpr int kSharedKeys = 1024;

/// Blocks of a multiprocessor, at least, which limits the registers of a thread.
constexpr int few_blocks(int queries) {
  if (queries <= 4) return 1;
  return queries <= 8 ? 3 : 2;
}

struct Four {
  float at[kFewEach];
};

__device__ Four four_of(const float* x) {
  const float4 v = __ldg(reinterpret_cast<const float4*>(x));
  return {{v.x, v.y, v.z, v.w}};
}
__device__ Four four_of(const std::uint8_t* x) {
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
  __device__ FewRows(const T* rows, const FewTask& task)
      : task_(task),
        lane_(static_cast<int>(threadIdx.x) % kFewLanes),
        first_(static_cast<std::int64_t>(blockIdx.x) * kFewRowsOfBlock +
               static_cast<std::int64_t>(threadIdx.x / kFewLanes) * kFewRows),
        rows_(rows) {}

  /// Forms the keys that may be within the limits. All threads of a warp.
  __device__ void meet(const double* limits, const float* bounds) const {
    float sums[kCount] = {};
    add_squares(sums);
    share_sums<kCount>(sums);
    unsigned near = 0;  // which of the lane's sums
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      if (!(sums[i] > bounds[(lane_ / kSharing * kOwn + i) / kFewRows])) near |= 1U << i;
    }
    if (lane_ % kSharing != 0) near = 0;
    const int shift = static_cast<int>(threadIdx.x) % 32 / kFewLanes * kFewLanes;
    unsigned lanes = __ballot_sync(kWholeWarp, near != 0) >> shift & ((1U << kFewLanes) - 1);
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = __ffs(static_cast<int>(lanes)) - 1;
      for (unsigned those = __shfl_sync(core::mask_of_eight(), near, shift + lane); those != 0; those &= those - 1) {
        const int number = lane / kSharing * kOwn + __ffs(static_cast<int>(those)) - 1;
        offer(number / kFewRows, number % kFewRows, limits[number / kFewRows]);
      }
    }
  }

  /// Forms the key of the row that seems to be nearest, for each query.
  __device__ void sample() const {
    float sums[kCount] = {};
    add_squares(sums);
    share_sums<kCount>(sums);
    const int own = lane_ / kSharing * kOwn;
    unsigned long long nearest[kOwnQueries];  // sum and row of each of the lane's queries; sums by their bits
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int query = (own + i) / kFewRows;
      const int r = (own + i) % kFewRows;
      unsigned long long at = static_cast<unsigned long long>(__float_as_uint(sums[i])) << 32 |
                              static_cast<unsigned>(threadIdx.x / kFewLanes * kFewRows + r);
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
      if (query >= task_.queries) continue;
      const std::int64_t row = blockIdx.x * kFewRowsOfBlock + static_cast<std::int64_t>(of_query & 0xFFFFFFFFU);
      const double key = of_query == kNone ? INFINITY : key_of(query, row);
      if (lane_ == 0) {
        task_.nearest[query * (task_.sampled / kFewRowsOfWarp) + first_ / kFewRowsOfWarp] = key;
      }
    }
  }

 private:
  static constexpr int kCount = kQueries * kFewRows;  // sums of eight lanes
  static constexpr int kOwn = kCount > kFewLanes ? kCount / kFewLanes : 1;
  static constexpr int kSharing = kCount < kFewLanes ? kFewLanes / kCount : 1;  // lanes with the same sum
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
    const float* const x = task_.narrow;
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

  /// By all eight lanes.
  __device__ double key_of(std::int64_t query, std::int64_t row) const {
    return squared_differences(task_.wide + query * task_.stride, rows_ + row * task_.d, static_cast<int>(task_.d),
                               core::mask_of_eight());
  }
  __device__ void offer(std::int64_t query, int r, double limit) const {
    const std::int64_t row = task_.first_row + first_ + r;
    if (first_ + r >= task_.count || !task_.eligible(query, row)) return;
    const double key = key_of(query, first_ + r);
    const KeySink& sink = task_.sink;
    if (lane_ != 0 || !(key <= limit)) return;
    const auto at = static_cast<std::int64_t>(atomicAdd(&sink.counts[query], 1ULL));
    if (at >= sink.room) return;
    sink.keys[query * sink.room + at] = key;
    sink.ids[query * sink.room + at] = task_.eligible.first_row + row;
  }

  const FewTask& task_;
  int lane_;
  std::int64_t first_;  // of this lane's rows, within the block of the table
  const T* rows_;
};

template <class T, int kQueries>
__global__ void __launch_bounds__(kThreads, few_blocks(kQueries))
    few_kernel(const T* rows, const __grid_constant__ FewTask task) {
  __shared__ double limits[kQueries];
  __shared__ float bounds[kQueries];
  if (threadIdx.x < kQueries) {
    double limit = -1;  // of zeros
    if (threadIdx.x < task.queries) {
      limit = task.sink.limits[threadIdx.x];
      if (task.sampled > 0) {
        const double most = task.sample_limits[threadIdx.x];
        const bool is_after = task.first_row + blockIdx.x * kFewRowsOfBlock >= task.sampled;
        limit = fmin(limit, is_after ? nextafter(most, -INFINITY) : most);
      }
    }
    limits[threadIdx.x] = limit;
    bounds[threadIdx.x] = limit < 0 ? -1 : __double2float_ru(core::few_queries_bound(limit, task.d));
  }
  __syncthreads();
  FewRows<T, kQueries>(rows, task).meet(limits, bounds);
}

template <class T, int kQueries>
__global__ void __launch_bounds__(kThreads) sample_kernel(const T* rows, const __grid_constant__ FewTask task) {
  FewRows<T, kQueries>(rows, task).sample();
}

/// The k-th of a query's keys, ties by their place, by counting those before each: eight lanes a key.
__global__ void __launch_bounds__(kThreads)
    sample_limits_kernel(const double* keys, std::int64_t count, std::int64_t k, double* limits) {
  __shared__ unsigned long long others[kSharedKeys];
  const double* const own = keys + blockIdx.y * count;
  // Numbers that are not negative, in the order of their bits.
  const auto* const all = reinterpret_cast<const unsigned long long*>(own);
  const std::int64_t i = own_number() / kFewLanes;
  const unsigned long long key = i < count ? all[i] : 0;
  int before = 0;
  for (std::int64_t begin = 0; begin < count; begin += kSharedKeys) {
    const auto size = static_cast<int>(min(count - begin, std::int64_t{kSharedKeys}));
    __syncthreads();
    for (int j = static_cast<int>(threadIdx.x); j < size; j += kThreads) others[j] = all[begin + j];
    __syncthreads();
    const auto place = static_cast<int>(min(max(i - begin, std::int64_t{0}), std::int64_t{kSharedKeys}));
#pragma unroll 4
    for (int j = static_cast<int>(threadIdx.x) % kFewLanes; j < size; j += kFewLanes) {
      before += others[j] < key || (others[j] == key && j < place) ? 1 : 0;
    }
  }
  before = core::sum_of_eight(before);
  if (threadIdx.x % kFewLanes == 0 && i < count && before == k - 1) limits[blockIdx.y] = own[i];
}

/// A block a query: its columns, or zeros, and the first that is not finite.
template <class T>
__global__ void __launch_bounds__(kThreads)
    few_queries_kernel(const T* queries, std::int64_t count, std::int64_t d, std::int64_t stride, double* wide,
                       float* narrow, unsigned long long* counts, std::int64_t* not_finite) {
  __shared__ unsigned first;
  const std::int64_t query = blockIdx.x;
  if (threadIdx.x == 0) first = ~0U;
  __syncthreads();
  for (std::int64_t column = threadIdx.x; column < stride; column += kThreads) {
    double value = query < count && column < d ? widen(queries[query * d + column]) : 0;
    if (!isfinite(value)) {
      atomicMin(&first, static_cast<unsigned>(column));
      value = 0;  // the search is refused afterwards
    }
    wide[query * stride + column] = value;
    narrow[query * stride + column] = static_cast<float>(value);
  }
  __syncthreads();
  if (threadIdx.x != 0 || query >= count) return;
  counts[query] = 0;
  if (not_finite != nullptr) not_finite[query] = first == ~0U ? -1 : static_cast<std::int64_t>(first);
}

std::int64_t few_stride(std::int64_t d) {
  return (d + kFewEach - 1) / kFewEach * kFewEach;
}

/// Rows that limits are taken from, of the `count` rows of the first block: a number of whole blocks, or 0 where those
/// would be too few.
std::int64_t few_sample_rows(std::int64_t count, std::int64_t k) {
  const std::int64_t wanted = std::max(kSampleRows, kSampleOfNeighbor * k);
  const std::int64_t rows = std::min(wanted, count / 2) / kFewRowsOfBlock * kFewRowsOfBlock;
  return 4 * (rows / kFewRowsOfWarp) >= 5 * k ? rows : 0;
}

/// Calls body(queries), the least number that there is a kernel for, as a constant.
template <class Body>
void with_few(std::int64_t queries, const Body& body) {
  if (queries == 1) return body(std::integral_constant<int, 1>{});
  if (queries == 2) return body(std::integral_constant<int, 2>{});
  if (queries <= 4) return body(std::integral_constant<int, 4>{});
  if (queries <= 8) return body(std::integral_constant<int, 8>{});
  body(std::integral_constant<int, core::kFewQueries>{});
}
/// Queries with the zeros after them.
std::int64_t few_room(std::int64_t queries) {
  std::int64_t count = 0;
  with_few(queries, [&](auto most) { count = most; });
  return count;
}

/// Calls body(rows from `first_row` on, queries as a constant).
template <class Body>
void with_few_rows(const Search& search, FewQueries::Task& task, std::int64_t first_row, const Body& body) {
  with_elements(search.table.data, search.table.dtype, [&](const auto* data) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
    if constexpr (std::is_same_v<T, double>) {
      throw Failure{ErrorCode::internal, "few queries: of float64"};
    } else {
      task.is_aligned = task.d % kFewEach == 0 && reinterpret_cast<std::uintptr_t>(data) % (kFewEach * sizeof(T)) == 0;
      with_few(task.queries, [&](auto queries) { body(data + first_row * task.d, queries); });
    }
  });
}

}  // namespace

std::uint64_t FewQueries::bytes(std::int64_t m, std::int64_t d, std::int64_t k, std::int64_t rows) {
  return static_cast<std::uint64_t>(doubles(m, d, few_sample_rows(rows, k))) * sizeof(double);
}

// Queries, the same in float32, the nearest of each warp, limits.
std::int64_t FewQueries::doubles(std::int64_t m, std::int64_t d, std::int64_t sampled) {
  return few_room(m) * few_stride(d) * 3 / 2 + m * (sampled / kFewRowsOfWarp + 1);
}

FewQueries::FewQueries(const Engine& engine, const Search& search, std::int64_t k, std::int64_t rows,
                       unsigned long long* counts)
    : search_(search),
      k_(k),
      stride_(few_stride(search.queries.d)),
      sampled_(search.filter != nullptr ? 0 : few_sample_rows(rows, k)),
      memory_(engine, doubles(search.queries.n, search.queries.d, sampled_)) {
  const std::int64_t m = search.queries.n;
  const std::int64_t room = few_room(m);
  wide_ = memory_.data();
  narrow_ = reinterpret_cast<float*>(wide_ + room * stride_);
  nearest_ = wide_ + room * stride_ * 3 / 2;
  limits_ = nearest_ + m * (sampled_ / kFewRowsOfWarp);
  with_elements(search.queries.data, search.queries.dtype, [&](const auto* queries) {
    few_queries_kernel<<<static_cast<unsigned>(room), kThreads, 0, engine.stream>>>(
        queries, m, search.queries.d, stride_, wide_, narrow_, counts, search.not_finite);
  });
  check_launch("spread queries");
}

FewQueries::Task FewQueries::task(std::int64_t first_row, std::int64_t count) const {
  Task task{};
  task.eligible = search_;
  task.first_row = first_row;
  task.count = count;
  task.d = search_.table.d;
  task.queries = search_.queries.n;
  task.stride = stride_;
  task.wide = wide_;
  task.narrow = narrow_;
  task.sampled = sampled_;
  task.nearest = nearest_;
  task.sample_limits = limits_;
  return task;
}

bool FewQueries::sample(const Engine& engine) const {
  if (sampled_ == 0) return false;
  const std::int64_t warps = sampled_ / kFewRowsOfWarp;
  Task task = this->task(0, sampled_);
  with_few_rows(search_, task, 0, [&]<class T, class Queries>(const T* rows, Queries) {
    sample_kernel<T, Queries::value><<<blocks_for(sampled_, kFewRowsOfBlock), kThreads, 0, engine.stream>>>(rows, task);
  });
  check_launch("sample keys");
  const dim3 blocks(blocks_for(warps * kFewLanes, kThreads), static_cast<unsigned>(search_.queries.n));
  sample_limits_kernel<<<blocks, kThreads, 0, engine.stream>>>(nearest_, warps, k_, limits_);
  check_launch("limit keys");
  return true;
}

void FewQueries::form_keys(const Engine& engine, std::int64_t first_row, std::int64_t count,
                           const KeySink& sink) const {
  FewTask task = this->task(first_row, count);
  task.sink = sink;
  with_few_rows(search_, task, first_row, [&]<class T, class Queries>(const T* rows, Queries) {
    few_kernel<T, Queries::value><<<blocks_for(count, kFewRowsOfBlock), kThreads, 0, engine.stream>>>(rows, task);
  });
  check_launch("form keys");
}

}  // namespace vicinal::cuda
