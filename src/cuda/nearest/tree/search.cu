// The search in a tree (tree.hpp). A warp a query. In a node each lane holds the key and the first id of one unit; the
// warp goes down to the nearest unit first, and back up as soon as the nearest one left does not come before the limit:
// then no other one of that node does. On the way down a lane keeps its key of each level, so there is no stack that
// could overflow. In a leaf each lane forms the key of one row. Queries are taken in the order of the leaves that they
// lie in, so that warps that run together read the same boxes and rows.
// Of a table within itself these are the rows in the tree's own order. What passes goes to a list: of up to 32 in the
// lanes' registers, sorted, a candidate entering by a ballot and a shift, and many of a leaf by a sorting network; of
// up to 2,048 in shared memory, a leaf's candidates merged in at once. Both are in the order of clause 2 at any time. A
// query that meets the whole table takes long: a cancel sets a flag that every warp reads now and then.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "cuda/base/metric_ops.cuh"
#include "cuda/base/order.hpp"
#include "cuda/base/waiting.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/layout.hpp"
#include "cuda/nearest/tree/box.cuh"
#include "cuda/nearest/tree/tree.hpp"
#include "cuda/nearest/wide_rows.hpp"

namespace vicinal::cuda {
namespace {

constexpr int kWarps = 4;                                    // of a block that searches, where shared memory has room
constexpr int kBlocks = 8;                                   // of a multiprocessor, as far as registers go
constexpr std::size_t kSharedBytes = std::size_t{48} << 10;  // of a block
constexpr int kShortList = 32;                               // neighbors, one a lane
constexpr int kMany = 10;                                    // candidates that a network takes in sooner
constexpr int kTallies = 256;                                // so that not all warps add to the same one
constexpr int kLooks = 64;                                   // steps between two looks at the flag
constexpr std::int64_t kMaxWalks = std::int64_t{1} << 20;    // of a launch
constexpr std::int64_t kFewQueries = 256;                    // fewer are not worth sorting
constexpr std::uint64_t kSmall = std::uint64_t{1} << 16;     // bytes of flags and tallies
constexpr unsigned long long kTaken = ~0ULL;                 // no key has these bits

// ---- keys
// ------------------------------------------------------------------------------------------------------------

/// core::nearer of a tree's ids, which have 32 bits.
__device__ __forceinline__ bool is_nearer(double key_a, std::uint32_t id_a, double key_b, std::uint32_t id_b) {
  return key_a < key_b || (key_a == key_b && id_a < id_b);
}

// ---- what is kept
// ----------------------------------------------------------------------------------------------------

/// The answer's last place, before which something must come to be of use.
struct Limit {
  double key = INFINITY;
  std::uint32_t id = ~0U;

  __device__ bool lets(double other_key, std::uint32_t other_id) const {
    return is_nearer(other_key, other_id, key, id);
  }
};

struct ListTask {
  int k;
  std::int64_t* ids;  ///< [m, k]
  double* distances;
  Metric metric;
  double p;
};

/// Up to 32 neighbors: lane i has the one that comes i-th.
template <class Op>
class ShortList {
 public:
  using Task = ListTask;

  __device__ ShortList(const Task& task, std::int64_t /*query*/, double* /*shared*/)
      : task_(task), lane_(static_cast<int>(threadIdx.x) % 32) {}
  Limit limit;

  __device__ void offer(bool mine, double key, std::uint32_t id) {
    if (__popc(__ballot_sync(kWholeWarp, mine)) >= kMany) return take_all(mine, key, id);
    for (;;) {
      const unsigned waiting = __ballot_sync(kWholeWarp, mine);
      if (waiting == 0) return;
      const int from = __ffs(static_cast<int>(waiting)) - 1;
      const double new_key = __shfl_sync(kWholeWarp, key, from);
      const std::uint32_t new_id = __shfl_sync(kWholeWarp, id, from);
      const int place = __popc(__ballot_sync(kWholeWarp, is_nearer(key_, id_, new_key, new_id)));
      const double before_key = __shfl_up_sync(kWholeWarp, key_, 1);
      const std::uint32_t before_id = __shfl_up_sync(kWholeWarp, id_, 1);
      if (lane_ >= place) {
        key_ = lane_ == place ? new_key : before_key;
        id_ = lane_ == place ? new_id : before_id;
      }
      set_limit();
      mine = mine && lane_ != from && limit.lets(key, id);
    }
  }
  __device__ void finish(std::int64_t query) const {
    if (lane_ >= task_.k) return;
    task_.ids[query * task_.k + lane_] = id_;
    task_.distances[query * task_.k + lane_] = Op::report(task_.metric, key_, task_.p);
  }

 private:
  __device__ void set_limit() {
    limit.key = __shfl_sync(kWholeWarp, key_, task_.k - 1);
    limit.id = __shfl_sync(kWholeWarp, id_, task_.k - 1);
  }

  /// Of two lanes the one whose bit `stride` is clear keeps the nearer entry, or the farther one.
  __device__ void exchange(double& key, std::uint32_t& id, int stride, bool nearer_first) const {
    const double other_key = __shfl_xor_sync(kWholeWarp, key, stride);
    const std::uint32_t other_id = __shfl_xor_sync(kWholeWarp, id, stride);
    if (is_nearer(other_key, other_id, key, id) != (((lane_ & stride) == 0) == nearer_first)) return;
    key = other_key;
    id = other_id;
  }

  /// Candidates are sorted with the farthest first. The nearer of each and of the list's entry in the same lane are the
  /// 32 nearest of all (Batcher), which the last steps put in order.
  __device__ void take_all(bool mine, double key, std::uint32_t id) {
    if (!mine) {
      key = INFINITY;
      id = ~0U;
    }
#pragma unroll
    for (int width = 2; width <= 32; width *= 2) {
#pragma unroll
      for (int stride = width / 2; stride > 0; stride /= 2) exchange(key, id, stride, (lane_ & width) != 0);
    }
    if (is_nearer(key, id, key_, id_)) {
      key_ = key;
      id_ = id;
    }
#pragma unroll
    for (int stride = 16; stride > 0; stride /= 2) exchange(key_, id_, stride, true);
    set_limit();
  }

  const Task& task_;
  int lane_;
  double key_ = INFINITY;  // nothing yet: after every row
  std::uint32_t id_ = ~0U;
};

/// Longer lists, in shared memory: keys [k], then ids [k], then the places [32] of a leaf's candidates.
template <class Op>
class LongList {
 public:
  using Task = ListTask;

  __device__ LongList(const Task& task, std::int64_t /*query*/, double* shared)
      : task_(task),
        lane_(static_cast<int>(threadIdx.x) % 32),
        keys_(shared),
        ids_(reinterpret_cast<std::uint32_t*>(shared + task.k)),
        places_(reinterpret_cast<int*>(ids_ + task.k)) {}
  Limit limit;

  /// A candidate's final place is the number of entries and of candidates that come before it; an entry moves up by the
  /// number of candidates before it, at most 32. Entries are moved 32 at a time from the last to the first: what is
  /// written over was read before.
  __device__ void offer(bool mine, double key, std::uint32_t id) {
    const unsigned waiting = __ballot_sync(kWholeWarp, mine);
    if (waiting == 0) return;
    const int count = __popc(waiting);
    int rank = 0;  // among the candidates
    for (unsigned rest = waiting; rest != 0; rest &= rest - 1) {
      const int from = __ffs(static_cast<int>(rest)) - 1;
      const double other_key = __shfl_sync(kWholeWarp, key, from);
      const std::uint32_t other_id = __shfl_sync(kWholeWarp, id, from);
      rank += is_nearer(other_key, other_id, key, id) ? 1 : 0;
    }
    int place = 0;  // entries that come before it
    if (mine) {
      place = entries_before(key, id);
      places_[rank] = place;
    }
    __syncwarp();
    const int first = places_[0];  // no entry before it moves
    for (int begin = size_ > 0 ? (size_ - 1) / 32 * 32 : -32; begin >= 0 && begin + 32 > first; begin -= 32) {
      const int i = begin + lane_;
      const bool moves = i < size_ && i >= first;
      double moved_key = 0;
      std::uint32_t moved_id = 0;
      int to = task_.k;
      if (moves) {
        moved_key = keys_[i];
        moved_id = ids_[i];
        to = i + candidates_before(i, count);
      }
      __syncwarp();
      if (to < task_.k) {
        keys_[to] = moved_key;
        ids_[to] = moved_id;
      }
      __syncwarp();
    }
    if (mine && place + rank < task_.k) {
      keys_[place + rank] = key;
      ids_[place + rank] = id;
    }
    size_ = size_ + count < task_.k ? size_ + count : task_.k;
    __syncwarp();
    if (size_ == task_.k) limit = {keys_[size_ - 1], ids_[size_ - 1]};
    __syncwarp();  // before the next leaf writes what was just read
  }
  __device__ void finish(std::int64_t query) const {
    for (int i = lane_; i < size_; i += 32) {
      task_.ids[query * task_.k + i] = ids_[i];
      task_.distances[query * task_.k + i] = Op::report(task_.metric, keys_[i], task_.p);
    }
  }

 private:
  __device__ int entries_before(double key, std::uint32_t id) const {
    int low = 0;
    int high = size_;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (is_nearer(keys_[middle], ids_[middle], key, id)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  /// Candidates that go before entry i: those with at most i entries before them.
  __device__ int candidates_before(int i, int count) const {
    int low = 0;
    int high = count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (places_[middle] <= i) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  const Task& task_;
  int lane_;
  double* keys_;
  std::uint32_t* ids_;
  int* places_;
  int size_ = 0;
};

struct WithinTask {
  double largest_key;
  unsigned long long* counts;
  double* keys;  ///< null: they are only counted
  std::int64_t* ids;
  const std::int64_t* offsets;
  std::int64_t room;
};

/// Of radius and count: everything within the largest key; keys and ids in no order, where there is room.
template <class Op>
class Within {
 public:
  using Task = WithinTask;

  __device__ Within(const Task& task, std::int64_t query, double* /*shared*/) : task_(task) {
    limit.key = task.largest_key;
    if (task.keys == nullptr) return;
    begin_ = task.offsets != nullptr ? task.offsets[query] : query * task.room;
    room_ = task.offsets != nullptr ? task.offsets[query + 1] - begin_ : task.room;
  }
  Limit limit;  // no row has its id, so that keys at the limit pass

  __device__ void offer(bool mine, double key, std::uint32_t id) {
    const unsigned found = __ballot_sync(kWholeWarp, mine);
    const unsigned before = found & ((1U << threadIdx.x % 32) - 1);
    const std::int64_t at = count_ + __popc(before);
    if (mine && at < room_) {
      task_.keys[begin_ + at] = key;
      task_.ids[begin_ + at] = id;
    }
    count_ += __popc(found);
  }
  __device__ void finish(std::int64_t query) const {
    if (threadIdx.x % 32 == 0) task_.counts[query] = static_cast<unsigned long long>(count_);
  }

 private:
  const Task& task_;
  std::int64_t begin_ = 0;
  std::int64_t room_ = 0;
  std::int64_t count_ = 0;
};

// ---- the walk
// --------------------------------------------------------------------------------------------------------

/// Queries of one launch.
struct Walk {
  TreeView tree;
  const double* queries;       // [count, d]
  const std::uint32_t* turns;  // [count] numbers of queries in the order of the leaves, or null
  bool in_leaves;              // `queries` are in that order, too, and the numbers are those within the search
  std::int64_t first;          // of the launch, within the search
  std::int64_t count;
  double p;
  Eligible eligible;
  const int* stop;              // not 0: the caller wants no answer any more
  unsigned long long* touched;  // [kTallies] rows whose keys were formed
  int shared_doubles;           // of a warp
};

/// One query on its way: the node it is in, and of each lane the key and the first id of one of the node's units.
template <class Op, class Value, class Sink>
class Walker {
 public:
  __device__ Walker(const Walk& walk, std::int64_t place, Sink& sink, double* shared, std::int64_t query)
      : walk_(walk),
        sink_(sink),
        lane_(static_cast<int>(threadIdx.x) % 32),
        x_(walk.queries + place * walk.tree.d),
        query_(query),
        kept_bits_(reinterpret_cast<unsigned long long*>(shared)),
        kept_firsts_(reinterpret_cast<std::uint32_t*>(shared + 32 * (walk.tree.levels.height - 1))) {}

  /// Rows whose keys were formed. The answer is void when it was stopped.
  __device__ std::int64_t run() {
    const int top = walk_.tree.levels.height;
    int level = top;
    std::int64_t node = 0;
    std::int64_t rows = 0;
    open(level, node);
    for (int steps = 0;; ++steps) {
      if (steps % kLooks == 0 && is_stopped()) return rows;
      const int lane = nearest();
      if (lane < 0) {
        if (level == top) return rows;
        ++level;
        node /= kTreeWidth;
        take_up(level);
        continue;
      }
      if (lane_ == lane) bits_ = kTaken;
      const std::int64_t unit = node * kTreeWidth + lane;
      if (level == 1) {
        rows += look_at_leaf(unit);
        continue;
      }
      lay_down(level);
      --level;
      node = unit;
      open(level, node);
    }
  }

 private:
  __device__ bool is_stopped() const {
    const int stop = *static_cast<const volatile int*>(walk_.stop);
    return __any_sync(kWholeWarp, stop) != 0;
  }

  __device__ void open(int level, std::int64_t node) {
    const std::int64_t unit = node * kTreeWidth + lane_;
    bits_ = kTaken;
    first_ = ~0U;
    if (unit < walk_.tree.levels.units[level - 1]) {
      const int d = walk_.tree.d;
      const Value* const boxes = static_cast<const Value*>(walk_.tree.boxes[level]) + node * d * kBoxValues;
      const double key = box_key<Op>(x_, boxes + lane_, d, walk_.p);
      bits_ = static_cast<unsigned long long>(__double_as_longlong(key));
      first_ = walk_.tree.first_ids[level - 1][unit];
    }
    __syncwarp();
  }

  /// A lane of the units that come before the limit by (key, first id), or -1: the nearest of them but for the lower
  /// halves of keys, which decide only what is looked at first. Keys are not negative: their bits are in their order.
  __device__ int nearest() const {
    const bool is_open =
        bits_ != kTaken && sink_.limit.lets(__longlong_as_double(static_cast<long long>(bits_)), first_);
    const unsigned high = is_open ? static_cast<unsigned>(bits_ >> 32) : ~0U;
    const unsigned least = least_of_warp(high);
    if (least == ~0U) return -1;
    return __ffs(static_cast<int>(__ballot_sync(kWholeWarp, high == least))) - 1;
  }

  __device__ std::int64_t look_at_leaf(std::int64_t leaf) {
    const TreeView& tree = walk_.tree;
    const std::int64_t at = leaf * kTreeWidth + lane_;
    bool mine = false;
    double key = 0;
    std::uint32_t id = 0;
    if (at < tree.rows) {
      const Value* const points = static_cast<const Value*>(tree.points) + leaf * tree.d * kTreeWidth + lane_;
      id = tree.order[at];
      key = key_of<Op>(tree.d, walk_.p, [&](int j) { return x_[j] - static_cast<double>(points[j * kTreeWidth]); });
      mine = sink_.limit.lets(key, id) && walk_.eligible(query_, id);
    }
    __syncwarp();
    sink_.offer(mine, key, id);
    const std::int64_t rows = tree.rows - leaf * kTreeWidth;
    return rows < kTreeWidth ? rows : kTreeWidth;
  }

  // What a lane keeps of the levels above; of level 1 nothing, for there is nothing below its units.
  __device__ void lay_down(int level) {
    kept_bits_[(level - 2) * 32 + lane_] = bits_;
    kept_firsts_[(level - 2) * 32 + lane_] = first_;
  }
  __device__ void take_up(int level) {
    bits_ = kept_bits_[(level - 2) * 32 + lane_];
    first_ = kept_firsts_[(level - 2) * 32 + lane_];
  }

  const Walk& walk_;
  Sink& sink_;
  int lane_;
  const double* x_;
  std::int64_t query_;
  unsigned long long* kept_bits_;  // [height - 1][32], only ever by the lane that wrote it
  std::uint32_t* kept_firsts_;
  unsigned long long bits_ = kTaken;
  std::uint32_t first_ = ~0U;
};

/// Doubles of shared memory for the levels that a lane keeps.
__host__ __device__ constexpr int kept_doubles(int height) {
  return (height - 1) * 48;
}

template <class Op, class Value, class Sink>
__global__ void __launch_bounds__(32 * kWarps, kBlocks)
    walk_kernel(const __grid_constant__ Walk walk, const __grid_constant__ typename Sink::Task task) {
  extern __shared__ double shared_doubles[];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / 32) + warp;
  if (i >= walk.count) return;
  double* const shared = shared_doubles + warp * walk.shared_doubles;
  const std::int64_t turn = walk.turns != nullptr ? walk.turns[i] : i;
  const std::int64_t query = walk.in_leaves ? turn : walk.first + turn;
  Sink sink(task, query, shared + kept_doubles(walk.tree.levels.height));
  const std::int64_t rows = Walker<Op, Value, Sink>(walk, walk.in_leaves ? i : turn, sink, shared, query).run();
  sink.finish(query);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&walk.touched[blockIdx.x % kTallies], static_cast<unsigned long long>(rows));
  }
}

// ---- before the walk
// -------------------------------------------------------------------------------------------------

/// Sets the flag when some key of a query may not be finite: the key of a point that is in every column as far away as
/// the table's box allows is at least that of any row and any box.
template <class Op, class Value>
__global__ void reach_kernel(const __grid_constant__ TreeView tree, const double* queries, std::int64_t count, double p,
                             int* overflow) {
  const std::int64_t i = own_number();
  if (i >= count) return;
  const double* const x = queries + i * tree.d;
  const auto* const box = static_cast<const Value*>(tree.boxes[tree.levels.height + 1]);
  const double key = key_of<Op>(tree.d, p, [&](int j) {
    const double above = static_cast<double>(box[j * kBoxValues + kTreeWidth]) - x[j];
    const double below = x[j] - static_cast<double>(box[j * kBoxValues]);
    return above > below ? above : below;  // the larger of the two is the larger in magnitude
  });
  if (!(key < INFINITY)) *overflow = 1;
}

/// The leaf that each query comes to when it takes the nearest unit of every node: a warp a query. Squares will do for
/// every metric, because only the order of the queries depends on it.
template <class Value>
__global__ void __launch_bounds__(kThreads)
    descend_kernel(const __grid_constant__ TreeView tree, const double* queries, std::int64_t count,
                   unsigned long long* leaves, std::uint32_t* numbers) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (i >= count) return;
  const double* const x = queries + i * tree.d;
  std::int64_t node = 0;
  for (int level = tree.levels.height; level >= 1; --level) {
    unsigned long long bits = kTaken;
    if (node * kTreeWidth + lane < tree.levels.units[level - 1]) {
      const Value* const boxes = static_cast<const Value*>(tree.boxes[level]) + node * tree.d * kBoxValues;
      bits = static_cast<unsigned long long>(__double_as_longlong(box_key<Squares>(x, boxes + lane, tree.d, 2)));
    }
    __syncwarp();
    const auto high = static_cast<unsigned>(bits >> 32);
    const auto low = static_cast<unsigned>(bits);
    const unsigned least_high = least_of_warp(high);
    const unsigned least_low = least_of_warp(high == least_high ? low : ~0U);
    const unsigned nearest = __ballot_sync(kWholeWarp, high == least_high && low == least_low);
    node = node * kTreeWidth + __ffs(static_cast<int>(nearest)) - 1;
  }
  if (lane != 0) return;
  leaves[i] = static_cast<unsigned long long>(node);
  numbers[i] = static_cast<std::uint32_t>(i);
}

/// The tree's rows [first, first + count) in its own order, widened.
template <class Value>
__global__ void own_rows_kernel(const __grid_constant__ TreeView tree, std::int64_t first, std::int64_t count,
                                double* to) {
  const std::int64_t i = own_number();
  if (i >= count * tree.d) return;
  const std::int64_t row = first + i / tree.d;
  const std::int64_t at = (row / kTreeWidth * tree.d + i % tree.d) * kTreeWidth + row % kTreeWidth;
  to[i] = static_cast<double>(static_cast<const Value*>(tree.points)[at]);
}

// ---- the host's side
// -------------------------------------------------------------------------------------------------

std::uint64_t bytes_a_query(std::int64_t d) {
  return static_cast<std::uint64_t>(d) * sizeof(double);
}

/// Queries of a launch.
std::int64_t queries_of(std::int64_t d, std::int64_t m, std::uint64_t limit) {
  const std::uint64_t fixed = kSmall + KeyedValues::bytes(0);
  const std::uint64_t one = bytes_a_query(d) + KeyedValues::bytes(1) - KeyedValues::bytes(0);
  if (limit < fixed + one) refuse_memory(fixed + one, limit);
  return std::min({m, kMaxWalks, static_cast<std::int64_t>((limit - fixed) / one)});
}

class TreeSearch {
 public:
  TreeSearch(const Engine& engine, const TreeView& tree, const Search& search, bool in_order)
      : engine_(engine),
        tree_(tree),
        search_(search),
        step_(queries_of(tree.d, search.queries.n, engine.memory_limit)),
        own_(in_order && search.self && search.numbers == nullptr && search.first_query == 0 && search.first_row == 0 &&
             search.queries.n == tree.rows),
        in_order_(in_order && !own_ && tree.levels.units[0] > 1 && step_ >= kFewQueries),
        queries_(engine, step_ * tree.d),
        pairs_(engine, in_order_ ? step_ : 0),
        flags_(engine, 2),
        touched_(engine, kTallies) {}

  /// Every query, with sinks of a kind (a template over the metric's operations); `list_doubles`: of shared memory that
  /// one takes. False where a key may overflow.
  template <template <class> class Sink, class Task>
  bool run(const Task& task, int list_doubles, Counters& counters) {
    flags_.zero();
    touched_.zero();
    const std::int64_t m = search_.queries.n;
    for (std::int64_t first = 0; first < m; first += step_) {
      const std::int64_t count = std::min(step_, m - first);
      load(first, count);
      launch<Sink>(task, first, count, list_doubles);
      wait_or_stop(engine_, flags_.data() + 1);
      int overflow = 0;
      fetch(&overflow, flags_.data(), 1);
      if (overflow != 0) return false;
      engine_.host.progress("search", static_cast<double>(first + count) / static_cast<double>(m));
    }
    unsigned long long touched[kTallies];
    fetch(touched, touched_.data(), kTallies);
    for (const unsigned long long rows : touched) counters.survivors += static_cast<std::int64_t>(rows);
    return true;
  }

 private:
  /// The queries widened, looked over for overflows, and in order.
  void load(std::int64_t first, std::int64_t count) {
    const std::int64_t d = tree_.d;
    const auto* const rows =
        static_cast<const std::byte*>(search_.queries.data) + first * d * size_of(search_.queries.dtype);
    if (own_) {
      const unsigned blocks = blocks_for(count * d, kThreads);
      if (tree_.narrow) {
        own_rows_kernel<float><<<blocks, kThreads, 0, engine_.stream>>>(tree_, first, count, queries_.data());
      } else {
        own_rows_kernel<double><<<blocks, kThreads, 0, engine_.stream>>>(tree_, first, count, queries_.data());
      }
      check_launch("take the tree's rows");
    } else {
      widen_elements(engine_, rows, search_.queries.dtype, count * d, queries_.data());
    }
    with_op_and_value(search_.metric, tree_.narrow, [&](auto op, auto value) {
      reach_kernel<decltype(op), decltype(value)><<<blocks_for(count, kThreads), kThreads, 0, engine_.stream>>>(
          tree_, queries_.data(), count, search_.p, flags_.data());
    });
    check_launch("look for overflows");
    if (!in_order_) return;
    const unsigned blocks = blocks_for(count * 32, kThreads);
    if (tree_.narrow) {
      descend_kernel<float><<<blocks, kThreads, 0, engine_.stream>>>(tree_, queries_.data(), count,
                                                                     pairs_.keys[0].data(), pairs_.values[0].data());
    } else {
      descend_kernel<double><<<blocks, kThreads, 0, engine_.stream>>>(tree_, queries_.data(), count,
                                                                      pairs_.keys[0].data(), pairs_.values[0].data());
    }
    check_launch("find leaves");
    sort_by_key(engine_, pairs_, count,
                static_cast<int>(std::bit_width(static_cast<std::uint64_t>(tree_.levels.units[0] - 1))));
  }

  template <template <class> class Sink, class Task>
  void launch(const Task& task, std::int64_t first, std::int64_t count, int list_doubles) {
    Walk walk{};
    walk.tree = tree_;
    walk.queries = queries_.data();
    walk.turns = in_order_ ? pairs_.values[0].data() : nullptr;
    if (own_) walk.turns = tree_.order + first;
    walk.in_leaves = own_;
    walk.first = first;
    walk.count = count;
    walk.p = search_.p;
    walk.eligible = search_;
    walk.stop = flags_.data() + 1;
    walk.touched = touched_.data();
    walk.shared_doubles = kept_doubles(tree_.levels.height) + list_doubles;
    const std::size_t shared = static_cast<std::size_t>(walk.shared_doubles) * sizeof(double);
    const int warps = kWarps * shared <= kSharedBytes ? kWarps : 1;
    with_op_and_value(search_.metric, tree_.narrow, [&](auto op, auto value) {
      using Op = decltype(op);
      walk_kernel<Op, decltype(value), Sink<Op>>
          <<<blocks_for(count, warps), 32 * warps, static_cast<std::size_t>(warps) * shared, engine_.stream>>>(walk,
                                                                                                               task);
    });
    check_launch("search the tree");
  }

  template <class T>
  void fetch(T* to, const T* from, std::int64_t count) {
    check(
        cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(T), cudaMemcpyDeviceToHost, engine_.stream),
        "fetch results");
    engine_.synchronize();
  }

  const Engine& engine_;
  const TreeView& tree_;
  const Search& search_;
  std::int64_t step_;
  bool own_;  // the queries are the tree's rows
  bool in_order_;
  Buffer<double> queries_;  // [step, d]
  KeyedValues pairs_;       // leaves, and which queries lie in them
  Buffer<int> flags_;       // a key may overflow; stop
  Buffer<unsigned long long> touched_;
};

}  // namespace

bool tree_serves(const plugin::Search& search) {
  const auto metric = static_cast<Metric>(search.metric);
  const bool bounded = metric == Metric::euclidean || metric == Metric::sqeuclidean || metric == Metric::manhattan ||
                       metric == Metric::chebyshev || metric == Metric::minkowski;
  return bounded && search.table.rows <= kMaxTreeRows && search.table.cols <= kMaxTreeColumns &&
         (search.collect != plugin::kKList || search.k <= kMaxTreeNeighbors);
}

std::uint64_t tree_search_bytes(std::int64_t d, std::int64_t m, std::uint64_t limit) {
  const std::int64_t step = queries_of(d, m, limit);
  return kSmall + KeyedValues::bytes(step) + static_cast<std::uint64_t>(step) * bytes_a_query(d);
}

bool tree_k_lists(const Engine& engine, const TreeView& tree, const Search& search, bool in_order, const KLists& lists,
                  Counters& counters) {
  if (lists.k > kMaxTreeNeighbors) throw Failure{ErrorCode::internal, "a list too long for the tree"};
  const ListTask task{static_cast<int>(lists.k), lists.ids, lists.distances, search.metric, search.root};
  TreeSearch all(engine, tree, search, in_order);
  if (lists.k <= kShortList) return all.run<ShortList>(task, 0, counters);
  const int bytes =
      task.k * static_cast<int>(sizeof(double) + sizeof(std::uint32_t)) + 32 * static_cast<int>(sizeof(int));
  return all.run<LongList>(task, (bytes + 7) / 8, counters);
}

bool tree_pass(const Engine& engine, const TreeView& tree, const DirectTask& task, bool in_order, Counters& counters) {
  TreeSearch all(engine, tree, *task.search, in_order);
  const WithinTask within{task.largest_key, task.counts, task.keys, task.ids, task.offsets, task.room};
  return all.run<Within>(within, 0, counters);
}

}  // namespace vicinal::cuda
