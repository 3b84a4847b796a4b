// Keys of pairs on the device, bit for bit the contract's (clause 1; core/distance.hpp).
// The contract's eight accumulators take every eighth column each. Rows are packed so that the columns of accumulator 0
// come first, then those of 4, 2, 6, 1, 5, 3, 7: one accumulator is finished before the next one starts, and what the
// contract's tree ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7)) still needs is four numbers a pair instead of
// eight, so that a thread can own 4 x 4 pairs. Blocks of columns travel to shared memory while the former ones are
// computed with. O(m n d); whole tiles of pairs, so that few queries waste little with tiles of another shape.
#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <cmath>

#include "core/distance.hpp"
#include "cuda/base/element.hpp"
#include "cuda/base/metric_ops.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/accumulators.cuh"
#include "cuda/nearest/keys.hpp"

namespace vicinal::cuda {
namespace {

constexpr int kEach = 4;                                       // rows, and queries, of a thread
constexpr std::int64_t kNoQueryId = -(std::int64_t{1} << 62);  // no query that comes after it is a row's id

/// Where the columns of the accumulator that comes i-th end in packed rows.
struct Order {
  std::int64_t end[8];
};

Order order_of(std::int64_t d) {
  Order order{};
  std::int64_t end = 0;
  for (int place = 0; place < 8; ++place) {
    end += columns_at(place, d);
    order.end[place] = end;
  }
  return order;
}

__device__ std::int64_t place_of(const Order& order, std::int64_t column) {
  const int place = reversed(static_cast<int>(column & 7));
  return (place == 0 ? 0 : order.end[place - 1]) + column / 8;
}

// ---- packing
// ---------------------------------------------------------------------------------------------------------

/// Transposes tiles of 32 x 32 through shared memory.
template <class T>
__global__ void pack_kernel(const T* rows, std::int64_t count, std::int64_t d, std::int64_t stride, Order order,
                            double* to) {
  __shared__ double tile[32][33];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * 32;
  for (std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * 32; column < d;
       column += static_cast<std::int64_t>(gridDim.y) * 32) {
    for (int i = threadIdx.y; i < 32; i += 8) {
      const bool inside = row + i < count && column + threadIdx.x < d;
      tile[i][threadIdx.x] = inside ? widen(rows[(row + i) * d + column + threadIdx.x]) : 0;
    }
    __syncthreads();
    for (int j = threadIdx.y; j < 32; j += 8) {
      if (column + j >= d || row + threadIdx.x >= stride) continue;
      to[place_of(order, column + j) * stride + row + threadIdx.x] = tile[threadIdx.x][j];
    }
    __syncthreads();
  }
}

/// Rows of length one, a thread each.
template <class T>
__global__ void pack_unit_kernel(const T* rows, std::int64_t count, std::int64_t d, std::int64_t stride, Order order,
                                 double* to, std::uint8_t* zero) {
  const std::int64_t i = own_number();
  if (i >= stride) return;
  if (i >= count) {
    for (std::int64_t j = 0; j < d; ++j) to[j * stride + i] = 0;
    zero[i] = 1;
    return;
  }
  const T* const row = rows + i * d;
  const auto value = [row](std::int64_t j) { return widen(row[j]); };
  const core::UnitScale unit = core::unit_scale(value, d);
  for (std::int64_t j = 0; j < d; ++j) to[place_of(order, j) * stride + i] = unit(widen(row[j]));
  zero[i] = unit.length == 0 ? 1 : 0;
}

// ---- keys
// ------------------------------------------------------------------------------------------------------------

/// Everything a block of threads needs.
struct KeyTask {
  const double* queries;
  const double* rows;
  const std::uint8_t* query_zero;  // for cosine
  const std::uint8_t* row_zero;
  std::int64_t query_stride;
  std::int64_t row_stride;
  std::int64_t query_count;
  std::int64_t row_count;
  std::int64_t d;
  double p;
  Order order;
  std::int64_t first_query;     // of the block, within the search
  std::int64_t first_query_id;  // of the block, for self; else kNoQueryId
  const std::int64_t* numbers;  // for self, where the queries' do not follow from the first
  std::int64_t first_row;       // of the block, within the search's table
  std::int64_t first_id;        // id of the block's first row
  const std::uint64_t* filter;
  const std::int64_t* exclude;
  KeySink sink;
};

/// Pairs of 4 * kQueryThreads queries and 4 * 256 / kQueryThreads rows.
template <class Op, int kQueryThreads>
class Tile {
 public:
  static constexpr int kRowThreads = kThreads / kQueryThreads;
  static constexpr int kQueries = kEach * kQueryThreads;
  static constexpr int kRows = kEach * kRowThreads;
  static constexpr int kColumns = kQueryThreads >= 16 ? 16 : 4;  // of a stage

  struct Shared {
    double queries[2][kColumns][kQueries];
    double rows[2][kColumns][kRows];
  };

  __device__ Tile(const KeyTask& task, Shared& shared)
      : task_(task),
        shared_(shared),
        query_(static_cast<std::int64_t>(blockIdx.y) * kQueries),
        row_(static_cast<std::int64_t>(blockIdx.x) * kRows),
        x_(static_cast<int>(threadIdx.x) % kRowThreads),
        y_(static_cast<int>(threadIdx.x) / kRowThreads) {}

  __device__ void run() {
    const std::int64_t d = task_.d;
    stage(0, 0);
    int place = 0;
    std::int64_t column = 0;
    for (std::int64_t begin = 0, turn = 0; begin < d; begin += kColumns, ++turn) {
      stage(begin + kColumns, static_cast<int>(turn + 1) & 1);
      __pipeline_wait_prior(1);
      __syncthreads();
      const std::int64_t stop = begin + kColumns < d ? begin + kColumns : d;
      const int buffer = static_cast<int>(turn & 1);
      while (place < 8) {
        const std::int64_t end = task_.order.end[place] < stop ? task_.order.end[place] : stop;
        for (; column < end; ++column) add(buffer, static_cast<int>(column - begin));
        if (column < task_.order.end[place]) break;
        join(place++);
      }
      __syncthreads();
    }
    hand_on();
  }

 private:
  /// Starts the copy of a stage's columns; always one group, so that waiting counts.
  __device__ void stage(std::int64_t begin, int buffer) {
    constexpr int kPairsQ = kQueries / 2;  // copies are of two numbers
    constexpr int kPairsR = kRows / 2;
    for (int i = threadIdx.x; i < kColumns * (kPairsQ + kPairsR); i += kThreads) {
      const bool of_query = i < kColumns * kPairsQ;
      const int at = of_query ? i : i - kColumns * kPairsQ;
      const int column = at / (of_query ? kPairsQ : kPairsR);
      const int pair = at % (of_query ? kPairsQ : kPairsR);
      if (begin + column >= task_.d) continue;
      const double* from = of_query ? task_.queries + (begin + column) * task_.query_stride + query_ + 2 * pair
                                    : task_.rows + (begin + column) * task_.row_stride + row_ + 2 * pair;
      double* to = of_query ? &shared_.queries[buffer][column][2 * pair] : &shared_.rows[buffer][column][2 * pair];
      __pipeline_memcpy_async(to, from, 2 * sizeof(double));
    }
    __pipeline_commit();
  }

  __device__ void add(int buffer, int column) {
    double x[kEach];
    double y[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      x[i] = shared_.queries[buffer][column][y_ + i * kQueryThreads];
      y[i] = shared_.rows[buffer][column][x_ + i * kRowThreads];
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) Op::add(a_[i][j], x[i], y[j], task_.p);
    }
  }

  /// The accumulator that came `place`-th is finished: 0, 4, 2, 6, 1, 5, 3, 7.
  __device__ void join(int place) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        join_at<Op>(place, a_[i][j], left_[i][j], right_[i][j], last_[i][j]);
        a_[i][j] = 0;
      }
    }
  }

  /// Counts and keeps what is within the limits. Threads that share a query do so together.
  __device__ void hand_on() {
    constexpr int kGroup = kRowThreads < 32 ? kRowThreads : 32;
    const KeySink& sink = task_.sink;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const std::int64_t q = query_ + y_ + i * kQueryThreads;
      const bool is_query = q < task_.query_count;
      const double limit = is_query ? sink.limits[q] : 0;
      double keys[kEach];
      unsigned mine = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const std::int64_t r = row_ + x_ + j * kRowThreads;
        keys[j] = key(i, j, q, r);
        if (!is_query || r >= task_.row_count || !eligible(q, r)) continue;
        if (!(fabs(keys[j]) < INFINITY)) {
          const auto code = static_cast<unsigned long long>(task_.first_query + q) << kOverflowRowBits |
                            static_cast<unsigned long long>(task_.first_row + r);
          atomicMin(sink.overflow, code);
        } else if (keys[j] <= limit && differ(q, r)) {
          mine |= 1U << j;
        }
      }
      if (__any_sync(kWholeWarp, mine != 0) == 0) continue;
      const int count = __popc(mine);
      const int lane = static_cast<int>(threadIdx.x) % kGroup;
      int before = count;
      for (int step = 1; step < kGroup; step *= 2) {
        const int theirs = __shfl_up_sync(kWholeWarp, before, step, kGroup);
        if (lane >= step) before += theirs;
      }
      const int total = __shfl_sync(kWholeWarp, before, kGroup - 1, kGroup);
      before -= count;
      unsigned long long base = 0;
      const std::int64_t slot = is_query && sink.slots != nullptr ? sink.slots[q] : q;
      if (lane == 0 && total > 0) base = atomicAdd(&sink.counts[slot], static_cast<unsigned long long>(total));
      base = __shfl_sync(kWholeWarp, base, 0, kGroup);
      if (sink.keys == nullptr || count == 0) continue;
      const std::int64_t begin = sink.offsets != nullptr ? sink.offsets[slot] : slot * sink.room;
      const std::int64_t room = sink.offsets != nullptr ? sink.offsets[slot + 1] - begin : sink.room;
      std::int64_t at = static_cast<std::int64_t>(base) + before;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        if ((mine >> j & 1) == 0) continue;
        if (at < room) {
          sink.keys[begin + at] = keys[j];
          sink.ids[begin + at] = task_.first_id + row_ + x_ + j * kRowThreads;
        }
        ++at;
      }
    }
  }

  __device__ double key(int i, int j, std::int64_t q, std::int64_t r) const {
    if (task_.query_zero != nullptr && (task_.query_zero[q] != 0 || task_.row_zero[r] != 0)) return 1;
    return Op::key(left_[i][j], task_.d);
  }

  __device__ bool differ(std::int64_t q, std::int64_t r) const {
    const KeySink& sink = task_.sink;
    return sink.query_labels == nullptr || sink.query_labels[q] != sink.row_labels[task_.first_row + r];
  }

  __device__ bool eligible(std::int64_t q, std::int64_t r) const {
    const std::int64_t id = task_.first_id + r;
    if (id == task_.first_query_id + q) return false;
    if (task_.numbers != nullptr && task_.numbers[task_.first_query + q] == id) return false;
    if (task_.exclude != nullptr && task_.exclude[task_.first_query + q] == id) return false;
    return task_.filter == nullptr || (task_.filter[id >> 6] >> (id & 63) & 1) != 0;
  }

  const KeyTask& task_;
  Shared& shared_;
  std::int64_t query_;  // first of the tile
  std::int64_t row_;
  int x_;  // this thread's place among those of a query
  int y_;  // and among those of a row
  double a_[kEach][kEach] = {};
  double left_[kEach][kEach] = {};
  double right_[kEach][kEach] = {};
  double last_[kEach][kEach] = {};
};

template <class Op, int kQueryThreads>
__global__ void __launch_bounds__(kThreads, 1) key_kernel(const __grid_constant__ KeyTask task) {
  using Pairs = Tile<Op, kQueryThreads>;
  __shared__ alignas(16) typename Pairs::Shared shared;
  Pairs(task, shared).run();
}

constexpr int kManyQueryThreads = 16;
constexpr int kFewQueryThreads = 2;
constexpr std::int64_t kFewQueries = 16;

template <class Op, int kQueryThreads>
void launch_tiles(const Engine& engine, const KeyTask& task) {
  using Pairs = Tile<Op, kQueryThreads>;
  const dim3 grid(blocks_for(task.row_count, Pairs::kRows), blocks_for(task.query_count, Pairs::kQueries));
  key_kernel<Op, kQueryThreads><<<grid, kThreads, 0, engine.stream>>>(task);
}

template <class Op>
void launch(const Engine& engine, const KeyTask& task) {
  if (task.query_stride > kFewQueries) {
    launch_tiles<Op, kManyQueryThreads>(engine, task);
  } else {
    launch_tiles<Op, kFewQueryThreads>(engine, task);
  }
}

}  // namespace

// The shape of a tile goes by the room for queries (`stride`), so that the last, smaller block of them keeps it.
std::int64_t query_tile(std::int64_t queries) {
  return kEach * (queries > kFewQueries ? kManyQueryThreads : kFewQueryThreads);
}

std::int64_t row_tile(std::int64_t queries) {
  return kEach * kThreads / (queries > kFewQueries ? kManyQueryThreads : kFewQueryThreads);
}

void pack_rows(const Engine& engine, Metric metric, const Rows& rows, std::int64_t begin, std::int64_t count,
               PackedRows& to) {
  to.count = count;
  const Order order = order_of(rows.d);
  with_elements(rows.data, rows.dtype, [&](const auto* data) {
    const auto* const first = data + begin * rows.d;
    if (metric == Metric::cosine) {
      pack_unit_kernel<<<blocks_for(to.stride, 128), 128, 0, engine.stream>>>(first, count, rows.d, to.stride, order,
                                                                              to.values, to.zero);
    } else {
      const dim3 grid(blocks_for(to.stride, 32),
                      static_cast<unsigned>(std::min<std::int64_t>((rows.d + 31) / 32, 65535)));
      pack_kernel<<<grid, dim3(32, 8), 0, engine.stream>>>(first, count, rows.d, to.stride, order, to.values);
    }
  });
  check_launch("pack rows");
}

void form_keys(const Engine& engine, const KeyBlock& block, const PackedRows& queries, const PackedRows& rows,
               const KeySink& sink) {
  const Search& search = *block.search;
  KeyTask task{};
  task.queries = queries.values;
  task.rows = rows.values;
  if (search.metric == Metric::cosine) {
    task.query_zero = queries.zero;
    task.row_zero = rows.zero;
  }
  task.query_stride = queries.stride;
  task.row_stride = rows.stride;
  task.query_count = queries.count;
  task.row_count = rows.count;
  task.d = search.table.d;
  task.p = search.p;
  task.order = order_of(task.d);
  task.first_query = block.first_query;
  const bool in_a_row = search.self && search.numbers == nullptr;
  task.first_query_id = in_a_row ? search.first_query + block.first_query : kNoQueryId;
  task.numbers = search.self ? search.numbers : nullptr;
  task.first_row = block.first_row;
  task.first_id = search.first_row + block.first_row;
  task.filter = search.filter;
  task.exclude = search.exclude;
  task.sink = sink;
  with_metric<AllOps>(search.metric, [&](auto op) { launch<decltype(op)>(engine, task); });
  check_launch("form keys");
}

}  // namespace vicinal::cuda
