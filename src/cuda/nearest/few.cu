// Few queries: what counts is the table's memory, which is read once, without a copy (few_rows.cuh), and then how soon
// the host has launched what comes before: an allocation and, for aligned float32 queries without a filter, four
// kernels. More than four queries meet the rows by the matrix units, where these add as they should
// (few_products.cuh): in float32 they would take longer than the table's memory does. Where a block may have 99 KB of
// shared memory (8.6, 8.9, 12.0), rings of float32 rows do not fit; such devices have more float32 units for each byte
// that their memory gives.
//
// The limit: each warp of a launch of its own takes 16 rows and forms the key of the one whose sum is the least, of
// those that may be neighbors. k such rows are k neighbors that a query may have, so that the k-th of their keys is a
// limit for all rows. Half of these warps have the first rows of the table: rows after them, whose ids are larger, have
// to be below the k-th of those keys, which drops equal rows. The others are spread over the table, whose rows may be
// in an order. With a filter all these rows may be left out: then there is no sample, and the blocks grow. O(m n d).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cuda/base/shared_memory.hpp"
#include "cuda/nearest/direct.hpp"
#include "cuda/nearest/few.hpp"
#include "cuda/nearest/few_products.cuh"
#include "cuda/nearest/few_rows.cuh"
#include "formulas/nearest/few_queries.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::int64_t kSampleRows = 8192;  // at least, if these are at most half of the block
constexpr std::int64_t kSampleOfNeighbor = 64;
constexpr int kSampleQueries = 8;  // of a block: a sample is too short for more to pay
constexpr int kSharedKeys = 1024;
constexpr std::int64_t kFirstRows = 1024;  // without a sample: of the first block, at least
constexpr std::int64_t kGrowth = 32;       // and how much longer than all before a block may be
constexpr std::int64_t kFewest = 4;        // queries that the matrix units are not used for
constexpr std::size_t kProductLimitBytes = sizeof(ProductLimits<core::kFewQueries>);
constexpr std::size_t kReservedBytes = 1024;  // of shared memory, for each block
constexpr std::size_t kPartAlignment = 16;    // of an array in the allocation

/// Blocks of a multiprocessor, at least, which limits the registers of a thread.
constexpr int few_blocks(int queries) {
  if (queries <= 4) return 1;
  if (queries <= 8) return 3;
  return queries <= 16 ? 2 : 1;
}

/// What a pass begins with: queries whose values are to be looked at, and lists in which nothing is found yet.
struct FewStart {
  std::int64_t queries;
  std::int64_t d;
  unsigned long long* counts;  // [queries] of candidates
  std::int64_t* sizes;         // [queries] null: lists that go on
  double* limits;              // [queries]
  std::int64_t* not_finite;    // [queries] null: not asked for
};

/// By one thread for each query; `first`: its first column that is not finite, or ~0.
__device__ void begin_query(const FewStart& start, std::int64_t query, unsigned first) {
  start.counts[query] = 0;
  if (start.sizes != nullptr) {
    start.sizes[query] = 0;
    start.limits[query] = INFINITY;
  }
  if (start.not_finite != nullptr) start.not_finite[query] = first == ~0U ? -1 : static_cast<std::int64_t>(first);
}

/// A block a query: its columns, or zeros.
template <class T>
__global__ void __launch_bounds__(kThreads)
    few_queries_kernel(const T* queries, FewStart start, std::int64_t stride, float* values) {
  __shared__ unsigned first;
  const std::int64_t query = blockIdx.x;
  if (threadIdx.x == 0) first = ~0U;
  __syncthreads();
  for (std::int64_t column = threadIdx.x; column < stride; column += kThreads) {
    double value = query < start.queries && column < start.d ? widen(queries[query * start.d + column]) : 0;
    if (!isfinite(value)) {
      atomicMin(&first, static_cast<unsigned>(column));
      value = 0;  // the search is refused afterwards
    }
    values[query * stride + column] = static_cast<float>(value);
  }
  __syncthreads();
  if (threadIdx.x == 0 && query < start.queries) begin_query(start, query, first);
}

/// The same of a query that lies as the kernels read it, by a block.
__device__ void look_at_query(const float* values, const FewStart& start, std::int64_t query) {
  __shared__ unsigned first;
  if (threadIdx.x == 0) first = ~0U;
  __syncthreads();
  for (std::int64_t column = threadIdx.x; column < start.d; column += kThreads) {
    if (!isfinite(values[query * start.d + column])) atomicMin(&first, static_cast<unsigned>(column));
  }
  __syncthreads();
  if (threadIdx.x == 0) begin_query(start, query, first);
}

template <class T, int kQueries>
__global__ void __launch_bounds__(kThreads) sample_kernel(const T* rows, const __grid_constant__ FewTask task) {
  const std::int64_t warp = own_number() / 32;
  const std::int64_t row = task.sample.row(warp) + threadIdx.x % 32 / kFewLanes * kFewRows;
  FewRows<T, kQueries>(rows, task, row, static_cast<int>(blockIdx.y) * kQueries).sample(warp);
}

/// The k-th of the first ones of a query's keys and the k-th of all of them, ties by their place, by counting those
/// before each: eight lanes a key. limits: [2, queries]. Queries that lie as they are read (`values`; else null) are
/// looked at by the last blocks: in the kernel before, this would cost more.
__global__ void __launch_bounds__(kThreads)
    sample_limits_kernel(const double* keys, std::int64_t count, std::int64_t first_count, std::int64_t k,
                         double* limits, const float* values, const FewStart start) {
  __shared__ unsigned long long others[kSharedKeys];
  if (values != nullptr && blockIdx.x == gridDim.x - 1) return look_at_query(values, start, blockIdx.y);
  const double* const own = keys + blockIdx.y * count;
  // Numbers that are not negative, in the order of their bits.
  const auto* const all = reinterpret_cast<const unsigned long long*>(own);
  const std::int64_t i = own_number() / kFewLanes;
  const unsigned long long key = i < count ? all[i] : 0;
  int before = 0;
  int first_before = 0;
  for (std::int64_t begin = 0; begin < count; begin += kSharedKeys) {
    const auto size = static_cast<int>(min(count - begin, std::int64_t{kSharedKeys}));
    __syncthreads();
    for (int j = static_cast<int>(threadIdx.x); j < size; j += kThreads) others[j] = all[begin + j];
    __syncthreads();
    const auto place = static_cast<int>(min(max(i - begin, std::int64_t{0}), std::int64_t{kSharedKeys}));
#pragma unroll 4
    for (int j = static_cast<int>(threadIdx.x) % kFewLanes; j < size; j += kFewLanes) {
      const int is_before = others[j] < key || (others[j] == key && j < place) ? 1 : 0;
      before += is_before;
      if (begin + j < first_count) first_before += is_before;
    }
  }
  before = core::sum_of_eight(before);
  first_before = core::sum_of_eight(first_before);
  if (threadIdx.x % kFewLanes != 0 || i >= count) return;
  if (i < first_count && first_before == k - 1) limits[blockIdx.y] = own[i];
  if (before == k - 1) limits[gridDim.y + blockIdx.y] = own[i];
}

template <class T, int kQueries>
__global__ void __launch_bounds__(kThreads, few_blocks(kQueries))
    few_kernel(const T* rows, const __grid_constant__ FewTask task) {
  __shared__ double limits[kQueries];
  __shared__ float bounds[kQueries];
  using Own = FewRows<T, kQueries>;
  const Own own(rows, task, few_first_row(), 0);
  float sums[Own::kCount] = {};
  own.add_up(sums);
  if (threadIdx.x < kQueries) {
    double limit = -1;  // of zeros
    if (threadIdx.x < task.queries) {
      double after = -1;
      few_limits(task, static_cast<int>(threadIdx.x), limit, after);
      if (task.first_row + blockIdx.x * kFewRowsOfBlock >= task.sample.first) limit = after;
    }
    limits[threadIdx.x] = limit;
    bounds[threadIdx.x] = few_sums_bound(limit, task.d);
  }
  __syncthreads();
  own.meet(sums, limits, bounds);
}

std::int64_t few_stride(std::int64_t d) {
  return (d + kFewEach - 1) / kFewEach * kFewEach;
}

/// The rows that limits are taken from, of a table of n rows whose first block has `count`. None where they would be
/// too few.
FewSample few_sample(std::int64_t n, std::int64_t count, std::int64_t k) {
  const auto serves = [&](std::int64_t rows) { return 4 * (rows / kFewRowsOfWarp) >= 5 * k; };
  const std::int64_t wanted = std::max(kSampleRows, kSampleOfNeighbor * k);
  const std::int64_t rows = std::min(wanted, count / 2) / kFewRowsOfBlock * kFewRowsOfBlock;
  const std::int64_t half = rows / 2 / kFewRowsOfBlock * kFewRowsOfBlock;
  FewSample sample;
  sample.first = serves(half) ? half : serves(rows) ? rows : 0;
  if (sample.first == 0 || sample.first == rows) return sample;
  sample.spread_warps = (rows - half) / kFewRowsOfWarp;
  sample.step = (n - half) / sample.spread_warps;  // at least kFewRowsOfWarp: `rows` are at most half of all
  return sample;
}

/// Calls body(queries), the least number that there is a kernel for, as a constant.
template <class Body>
void with_few(std::int64_t queries, const Body& body) {
  if (queries == 1) return body(std::integral_constant<int, 1>{});
  if (queries == 2) return body(std::integral_constant<int, 2>{});
  if (queries <= 4) return body(std::integral_constant<int, 4>{});
  if (queries <= 8) return body(std::integral_constant<int, 8>{});
  if (queries <= 16) return body(std::integral_constant<int, 16>{});
  body(std::integral_constant<int, core::kFewQueries>{});
}
/// Queries with the zeros after them.
std::int64_t few_room(std::int64_t queries) {
  std::int64_t count = 0;
  with_few(queries, [&](auto most) { count = most; });
  return count;
}

/// The arrays of a pass, in one allocation.
struct FewParts {
  float* values = nullptr;  // [few_room, stride], queries of zeros after the others
  double* nearest = nullptr;
  double* sample_limits = nullptr;
  unsigned long long* counts = nullptr;
  double* keys = nullptr;
  std::int64_t* ids = nullptr;
  std::int32_t* holes = nullptr;
  std::int64_t* sizes = nullptr;  // of new lists
  double* limits = nullptr;
  std::size_t bytes = 0;

  FewParts(std::byte* memory, std::int64_t m, std::int64_t d, std::int64_t k, std::int64_t rows) {
    const std::int64_t warps = few_sample(rows, rows, k).warps();
    const auto next = [&]<class T>(T*& part, std::int64_t count) {
      if (memory != nullptr) part = reinterpret_cast<T*>(memory + bytes);
      bytes += (static_cast<std::size_t>(count) * sizeof(T) + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    };
    next(values, few_room(m) * few_stride(d));
    next(nearest, m * warps);
    next(sample_limits, 2 * m);
    next(counts, m);
    next(keys, m * rows);
    next(ids, m * rows);
    next(holes, m * std::min(rows, k));
    next(sizes, m);
    next(limits, m);
  }
};

/// A pass of few queries over the rows of a table.
class FewPass {
 public:
  FewPass(const Engine& engine, const Search& search, const RunningLists& lists, std::int64_t rows)
      : engine_(engine),
        search_(search),
        lists_(lists),
        rows_(rows),
        are_new_(lists.sizes == nullptr),
        sample_(search.filter != nullptr ? FewSample{} : few_sample(search.table.n, rows, lists.k)),
        multiplies_(search.facts.centre != nullptr && few_multiply(engine, search.table, search.queries.n)),
        memory_(engine, static_cast<std::int64_t>(few_bytes(search.queries.n, search.queries.d, lists.k, rows))),
        parts_(memory_.data(), search.queries.n, search.queries.d, lists.k, rows) {
    if (are_new_) {
      lists_.sizes = parts_.sizes;
      lists_.limits = parts_.limits;
    }
    values_ = parts_.values;
  }

  void run() {
    begin();
    const std::int64_t n = search_.table.n;
    Pace pace(engine_);
    for (std::int64_t r = 0, count = 0; r < n; r += count) {
      count = std::min(rows_, n - r);
      if (sample_.first == 0) count = std::min(count, r == 0 ? std::max(kFirstRows, 4 * lists_.k) : kGrowth * r);
      form_keys(r, count);
      const Candidates candidates = {parts_.keys, parts_.ids, parts_.counts, rows_, parts_.holes};
      if (are_new_ && r + count == n) {
        take_last_candidates(engine_, lists_, candidates, search_.queries.n, search_.metric, search_.root);
      } else {
        take_candidates(engine_, lists_, candidates, search_.queries.n);
      }
      pace.step();
      engine_.host.progress("search", static_cast<double>(r + count) / static_cast<double>(n));
    }
  }

 private:
  /// Queries where all threads can read them, empty lists, and limits from a sample of the rows.
  void begin() {
    const Rows& queries = search_.queries;
    const std::int64_t m = queries.n;
    const std::int64_t stride = few_stride(queries.d);
    FewStart start = {
        m, queries.d, parts_.counts, are_new_ ? parts_.sizes : nullptr, parts_.limits, search_.not_finite};
    const bool in_place = sample_.first > 0 && queries.dtype == DType::float32 && queries.d == stride &&
                          m == few_room(m) && reinterpret_cast<std::uintptr_t>(queries.data) % sizeof(float4) == 0;
    if (in_place) {
      values_ = static_cast<const float*>(queries.data);
    } else {
      with_elements(queries.data, queries.dtype, [&](const auto* data) {
        few_queries_kernel<<<static_cast<unsigned>(few_room(m)), kThreads, 0, engine_.stream>>>(data, start, stride,
                                                                                                parts_.values);
      });
      check_launch("spread queries");
    }
    if (sample_.first == 0) return;
    const std::int64_t warps = sample_.warps();
    launch(0, search_.table.n, [&]<class T, class Queries>(const T* rows, const FewTask& task, Queries) {
      constexpr int kTogether = std::min<int>(Queries::value, kSampleQueries);
      const dim3 blocks(blocks_for(warps * 32, kThreads), Queries::value / kTogether);
      sample_kernel<T, kTogether><<<blocks, kThreads, 0, engine_.stream>>>(rows, task);
    });
    check_launch("sample keys");
    const dim3 blocks(blocks_for(warps * kFewLanes, kThreads) + (in_place ? 1 : 0), static_cast<unsigned>(m));
    sample_limits_kernel<<<blocks, kThreads, 0, engine_.stream>>>(parts_.nearest, warps, sample_.first_warps(),
                                                                  lists_.k, parts_.sample_limits,
                                                                  in_place ? values_ : nullptr, start);
    check_launch("limit keys");
  }

  template <class T, int kQueries>
  void multiply(const T* rows, const FewTask& task) const {
    constexpr int kTiles = kQueries / kProductQueries;
    const auto kernel = task.is_aligned ? few_products_kernel<T, kTiles, true> : few_products_kernel<T, kTiles, false>;
    const std::size_t bytes = product_bytes(kTiles, task.d, sizeof(T));
    allow_shared_memory(engine_, kernel, bytes);
    // The device takes a kilobyte of each block for itself, which the limit of a single one leaves out.
    const std::size_t taken = bytes + kProductLimitBytes + kReservedBytes;
    const int together = kProductBlocks * taken <= engine_.shared_memory + kReservedBytes ? kProductBlocks : 1;
    const unsigned blocks = std::min(blocks_for(task.count, kProductRows * (kThreads / 32)),
                                     static_cast<unsigned>(engine_.multiprocessors * together));
    kernel<<<blocks, kThreads, bytes, engine_.stream>>>(rows, task);
  }

  void form_keys(std::int64_t first_row, std::int64_t count) const {
    launch(first_row, count, [&]<class T, class Queries>(const T* rows, const FewTask& task, Queries) {
      if constexpr (Queries::value >= kProductQueries) {
        if (multiplies_) return multiply<T, Queries::value>(rows, task);
      }
      few_kernel<T, Queries::value><<<blocks_for(count, kFewRowsOfBlock), kThreads, 0, engine_.stream>>>(rows, task);
    });
    check_launch("form keys");
  }

  /// Calls body(rows from `first_row` on, task, queries as a constant).
  template <class Body>
  void launch(std::int64_t first_row, std::int64_t count, const Body& body) const {
    FewTask task{};
    task.eligible = search_;
    task.first_row = first_row;
    task.count = count;
    task.d = search_.table.d;
    task.queries = search_.queries.n;
    task.stride = few_stride(task.d);
    task.values = values_;
    task.sample = sample_;
    task.nearest = parts_.nearest;
    task.sample_limits = parts_.sample_limits;
    task.centre = search_.facts.centre;
    task.sink.limits = lists_.limits;
    task.sink.counts = parts_.counts;
    task.sink.keys = parts_.keys;
    task.sink.ids = parts_.ids;
    task.sink.room = rows_;
    with_elements(search_.table.data, search_.table.dtype, [&](const auto* data) {
      using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
      if constexpr (std::is_same_v<T, double>) {
        throw Failure{ErrorCode::internal, "few queries: of float64"};
      } else {
        task.is_aligned =
            task.d % kFewEach == 0 && reinterpret_cast<std::uintptr_t>(data) % (kFewEach * sizeof(T)) == 0;
        with_few(task.queries, [&](auto queries) { body(data + first_row * task.d, task, queries); });
      }
    });
  }

  const Engine& engine_;
  const Search& search_;
  RunningLists lists_;
  std::int64_t rows_;
  bool are_new_;
  FewSample sample_;
  bool multiplies_;  // the matrix units find the pairs that may be near
  Buffer<std::byte> memory_;
  FewParts parts_;
  const float* values_ = nullptr;  // [few_room, stride] where the kernels read the queries
};

}  // namespace

bool few_serve(const Search& search, std::int64_t m, std::int64_t k) {
  return k > 0 &&
         core::few_queries_serve(search.metric, search.table.dtype, search.queries.dtype, m, search.table.d, k);
}

bool few_multiply(const Engine& engine, const Rows& table, std::int64_t m) {
  if (!engine.has_tf32 || m <= kFewest || m > core::kFewQueries || table.d > core::kFewProductsMaxCols) return false;
  const auto tiles = static_cast<int>(few_room(m) / kProductQueries);
  return product_bytes(tiles, table.d, size_of(table.dtype)) + kProductLimitBytes <= engine.shared_memory;
}

std::uint64_t few_bytes(std::int64_t m, std::int64_t d, std::int64_t k, std::int64_t rows) {
  return FewParts(nullptr, m, d, k, rows).bytes;
}

void few_pass(const Engine& engine, const Search& search, const RunningLists& lists, std::int64_t rows) {
  FewPass(engine, search, lists, rows).run();
}

}  // namespace vicinal::cuda
