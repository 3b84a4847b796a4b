// Few queries: what counts is the table's memory, which is read once, without a copy. Eight lanes share four rows at a
// time and add up the squared differences to all queries in float32; a sum that is not above the bound of its query's
// limit (formulas/nearest/few_queries.hpp) has its key formed in float64, which is rare once there is a limit. A lane
// takes four neighboring columns of every 32, so that N of the lemma is at most d / 8 + 7. O(m n d).
#include <cstdint>
#include <type_traits>

#include "cuda/base/element.hpp"
#include "cuda/base/exact_key.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/few.hpp"
#include "formulas/nearest/few_queries.hpp"

namespace vicinal::cuda {
namespace {

constexpr int kFewLanes = 8;  // of a row
constexpr int kFewRows = 4;   // of these lanes, at a time
constexpr int kFewEach = 4;   // columns of a lane
constexpr int kFewStep = kFewLanes * kFewEach;
constexpr std::int64_t kFewRowsOfBlock = kThreads / kFewLanes * kFewRows;

struct FewTask {
  Eligible eligible;
  std::int64_t first_row;
  std::int64_t count;
  std::int64_t d;
  bool is_aligned;  // rows begin where four columns are one load
  std::int64_t queries;
  std::int64_t stride;
  const double* wide;
  const float* narrow;
  KeySink sink;
};

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
template <class T>
__device__ Four columns_of(const T* row, std::int64_t column, const FewTask& task) {
  if (task.is_aligned) return four_of(row + column);
  Four found{};
#pragma unroll
  for (int i = 0; i < kFewEach; ++i) {
    if (column + i < task.d) found.at[i] = narrowed(row[column + i]);
  }
  return found;
}

/// The rows of some lanes, and what they have to do with the queries.
template <class T>
class FewRows {
 public:
  __device__ FewRows(const T* rows, const FewTask& task)
      : task_(task),
        lane_(static_cast<int>(threadIdx.x) % kFewLanes),
        first_(static_cast<std::int64_t>(blockIdx.x) * kFewRowsOfBlock +
               static_cast<std::int64_t>(threadIdx.x / kFewLanes) * kFewRows) {
#pragma unroll
    for (int r = 0; r < kFewRows; ++r) rows_[r] = rows + min(first_ + r, task.count - 1) * task.d;
  }

  /// All queries, at most kQueries, with their bounds.
  template <int kQueries>
  __device__ void meet(const float* bounds) const {
    const auto count = static_cast<int>(task_.queries);
    const float* const x = task_.narrow;
    float sums[kQueries][kFewRows] = {};
    Four y[kFewRows];
    read(lane_ * kFewEach, y);
    for (std::int64_t column = lane_ * kFewEach; column < task_.d; column += kFewStep) {
      Four next[kFewRows];
      read(column + kFewStep, next);
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        if (q >= count) break;
        const Four at = four_of(x + q * task_.stride + column);
#pragma unroll
        for (int r = 0; r < kFewRows; ++r) {
#pragma unroll
          for (int i = 0; i < kFewEach; ++i) {
            const float t = y[r].at[i] - at.at[i];
            sums[q][r] = fmaf(t, t, sums[q][r]);
          }
        }
      }
#pragma unroll
      for (int r = 0; r < kFewRows; ++r) y[r] = next[r];
    }
    __syncwarp();
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
      if (q >= count) break;
#pragma unroll
      for (int r = 0; r < kFewRows; ++r) {
        const float sum = core::sum_of_eight(sums[q][r], kWholeWarp);
        if (sum > bounds[q] || first_ + r >= task_.count) continue;
        offer(q, r);
      }
      __syncwarp();
    }
  }

 private:
  __device__ void read(std::int64_t column, Four* y) const {
    if (column >= task_.d) return;
#pragma unroll
    for (int r = 0; r < kFewRows; ++r) y[r] = columns_of(rows_[r], column, task_);
  }

  /// By all eight lanes.
  __device__ void offer(std::int64_t query, int r) const {
    const double key = squared_differences(task_.wide + query * task_.stride, rows_[r], static_cast<int>(task_.d),
                                           core::mask_of_eight());
    const std::int64_t row = task_.first_row + first_ + r;
    const KeySink& sink = task_.sink;
    if (lane_ != 0 || !(key <= sink.limits[query]) || !task_.eligible(query, row)) return;
    const auto at = static_cast<std::int64_t>(atomicAdd(&sink.counts[query], 1ULL));
    if (at >= sink.room) return;
    sink.keys[query * sink.room + at] = key;
    sink.ids[query * sink.room + at] = task_.eligible.first_row + row;
  }

  const FewTask& task_;
  int lane_;
  std::int64_t first_;  // of this lane's rows, within the block of the table
  const T* rows_[kFewRows];
};

template <class T, int kQueries>
__global__ void __launch_bounds__(kThreads) few_kernel(const T* rows, const __grid_constant__ FewTask task) {
  __shared__ float bounds[kQueries];
  if (threadIdx.x < task.queries) {
    bounds[threadIdx.x] = __double2float_ru(core::few_queries_bound(task.sink.limits[threadIdx.x], task.d));
  }
  __syncthreads();
  FewRows<T>(rows, task).template meet<kQueries>(bounds);
}

template <class T>
__global__ void few_queries_kernel(const T* queries, std::int64_t count, std::int64_t d, std::int64_t stride,
                                   double* wide, float* narrow) {
  const std::int64_t i = own_number();
  if (i >= count * stride) return;
  const std::int64_t column = i % stride;
  const double value = column < d ? widen(queries[i / stride * d + column]) : 0;
  wide[i] = value;
  narrow[i] = static_cast<float>(value);
}

std::int64_t few_stride(std::int64_t d) {
  return (d + kFewEach - 1) / kFewEach * kFewEach;
}

template <class T>
void launch_few(const Engine& engine, const T* rows, const FewTask& task) {
  constexpr int kMost = static_cast<int>(core::kFewQueries);
  const unsigned blocks = blocks_for(task.count, kFewRowsOfBlock);
  if (task.queries <= kMost / 2) {
    few_kernel<T, kMost / 2><<<blocks, kThreads, 0, engine.stream>>>(rows, task);
  } else {
    few_kernel<T, kMost><<<blocks, kThreads, 0, engine.stream>>>(rows, task);
  }
}

}  // namespace

std::uint64_t FewQueries::bytes(std::int64_t m, std::int64_t d) {
  return static_cast<std::uint64_t>(m * few_stride(d)) * (sizeof(double) + sizeof(float));
}

FewQueries::FewQueries(const Engine& engine, const Search& search)
    : search_(search),
      stride_(few_stride(search.queries.d)),
      wide_(engine, search.queries.n * stride_),
      narrow_(engine, search.queries.n * stride_) {
  with_elements(search.queries.data, search.queries.dtype, [&](const auto* queries) {
    few_queries_kernel<<<blocks_for(wide_.size(), kThreads), kThreads, 0, engine.stream>>>(
        queries, search.queries.n, search.queries.d, stride_, wide_.data(), narrow_.data());
  });
  check_launch("spread queries");
}

void FewQueries::form_keys(const Engine& engine, std::int64_t first_row, std::int64_t count,
                           const KeySink& sink) const {
  FewTask task{};
  task.eligible = search_;
  task.first_row = first_row;
  task.count = count;
  task.d = search_.table.d;
  task.queries = search_.queries.n;
  task.stride = stride_;
  task.wide = wide_.data();
  task.narrow = narrow_.data();
  task.sink = sink;
  with_elements(search_.table.data, search_.table.dtype, [&](const auto* data) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
    if constexpr (std::is_same_v<T, double>) {
      throw Failure{ErrorCode::internal, "few queries: of float64"};
    } else {
      const T* const rows = data + first_row * task.d;
      task.is_aligned = task.d % kFewEach == 0 && reinterpret_cast<std::uintptr_t>(data) % (kFewEach * sizeof(T)) == 0;
      launch_few(engine, rows, task);
    }
  });
  check_launch("form keys");
}

}  // namespace vicinal::cuda
