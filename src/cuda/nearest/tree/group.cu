// A walk of 32 queries at a time (group.hpp): a warp takes 32 queries that follow each other in the order of the
// leaves, one a lane. Boxes are compared with the box of the 32 queries, one unit a lane, as in the walk of a single
// query; of a unit that is left, each lane forms the key of its own query, and the warp goes there if one of them may
// find a row. In a leaf each lane compares its query with all 32 rows, which the warp reads once. What passes waits in
// shared memory, and enters the list, sorted in registers, when a lane has no room for more: by networks, without a
// branch.
//
// WHY A UNIT MAY BE LEFT OUT. The gap between two boxes is in no column larger than the gap between a query in the
// one and the other, also when both are rounded (rounding is monotone, and the difference has the same operands or
// farther ones). The key function is monotone in the gaps (tree.hpp). So the key of the two boxes is at most that of
// each query and the unit's box, and if (that key, first id) does not come before the last of the lanes' limits in the
// order of clause 2, it comes before none of them.
//
// Where queries are as dense as rows, 32 of them open little more than one does; where they are few, they open all that
// lies between them: then search.cu walks for each alone.
#include <cmath>

#include "cuda/base/warp.cuh"
#include "cuda/nearest/tree/group.hpp"
#include "cuda/nearest/tree/walk.cuh"

namespace vicinal::cuda {
namespace {

constexpr int kGroupWarps = 2;  // of a block
constexpr int kGroup = 32;      // queries of a warp
constexpr int kWaiting = 24;    // candidates of a query that wait for the list
constexpr int kTakenIn = 16;    // of them, that enter it at a time
constexpr int kAtOnce = 8;      // rows between two looks at the room for them
constexpr std::uint32_t kNoRow = ~0U;

template <int D>
inline constexpr int kColumnsOf = D == 0 ? kMaxGroupColumns : D;

/// The contract's key of D differences (of d <= 8, if D is 0). A lane of the sum that no column reaches is +0, and no
/// other is negative: left out, it changes nothing.
template <int D, class Difference>
__device__ __forceinline__ double short_key(int d, Difference difference) {
  static_assert(core::kLanes == 8 && kColumnsOf<D> <= 8);
  double a[8] = {};
#pragma unroll
  for (int j = 0; j < kColumnsOf<D>; ++j) {
    if (D != 0 || j < d) Squares::add(a[j], difference(j), 2);
  }
  const auto join = [&](double x, int other, double y) { return other < kColumnsOf<D> ? x + y : x; };
  const double even = join(join(a[0], 4, a[4]), 2, join(a[2], 6, a[6]));
  const double odd = join(join(a[1], 5, a[5]), 3, join(a[3], 7, a[7]));
  return join(even, 1, odd);
}

/// Values of points or boxes, in either width.
struct Elements {
  const void* data;
  bool narrow;
  __device__ double operator[](std::int64_t i) const {
    return narrow ? static_cast<double>(static_cast<const float*>(data)[i]) : static_cast<const double*>(data)[i];
  }
};

/// Bytes of shared memory of a warp: what waits (keys, then ids), a leaf's points and ids, and what lanes keep.
constexpr int kWaitingDoubles = kWaiting * kGroup;
__host__ __device__ constexpr int group_doubles(int d, int height) {
  return kWaitingDoubles + kWaitingDoubles / 2 + d * kTreeWidth + kTreeWidth / 2 + kept_doubles(height);
}

/// The nearest k of a lane's query: the last k of kList entries in ascending order, the others before all rows.
template <int kList>
class Nearest {
 public:
  __device__ Nearest(int k, bool is_query) {
#pragma unroll
    for (int i = 0; i < kList; ++i) {
      const bool empty = is_query && i >= kList - k;
      keys_[i] = empty ? INFINITY : -INFINITY;
      ids_[i] = empty ? ~0U : 0;
    }
  }

  __device__ Limit limit() const {
    return {keys_[kList - 1], ids_[kList - 1]};
  }
  __device__ double key(int i) const {
    return keys_[i];
  }
  __device__ std::uint32_t id(int i) const {
    return ids_[i];
  }

  /// Takes in `count` candidates, at most kTakenIn, those of the lane in [][32]. They are sorted with the farthest
  /// first. The nearer of each and of the list's entry in the same place from the end are the nearest kList of all
  /// (Batcher), which the last steps put in order.
  __device__ void take(int count, const double* keys, const std::uint32_t* ids) {
    double k[kTakenIn];
    std::uint32_t c[kTakenIn];
#pragma unroll
    for (int i = 0; i < kTakenIn; ++i) {
      const bool has = i < count;
      k[i] = has ? keys[i * kGroup] : INFINITY;
      c[i] = has ? ids[i * kGroup] : ~0U;
    }
#pragma unroll
    for (int width = 2; width <= kTakenIn; width *= 2) {
#pragma unroll
      for (int stride = width / 2; stride > 0; stride /= 2) {
#pragma unroll
        for (int i = 0; i < kTakenIn; ++i) {
          const int j = i ^ stride;
          if (j > i) order(k[i], c[i], k[j], c[j], (i & width) != 0);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kTakenIn; ++i) {
      const int at = kList - kTakenIn + i;
      const bool nearer = is_nearer(k[i], c[i], keys_[at], ids_[at]);
      keys_[at] = nearer ? k[i] : keys_[at];
      ids_[at] = nearer ? c[i] : ids_[at];
    }
#pragma unroll
    for (int stride = kList / 2; stride > 0; stride /= 2) {
#pragma unroll
      for (int i = 0; i < kList; ++i) {
        const int j = i ^ stride;
        if (j > i) order(keys_[i], ids_[i], keys_[j], ids_[j], true);
      }
    }
  }

 private:
  __device__ static void order(double& key_a, std::uint32_t& id_a, double& key_b, std::uint32_t& id_b,
                               bool nearer_first) {
    const bool turned = is_nearer(key_b, id_b, key_a, id_a) == nearer_first;
    const double key = turned ? key_b : key_a;
    const std::uint32_t id = turned ? id_b : id_a;
    key_b = turned ? key_a : key_b;
    id_b = turned ? id_a : id_b;
    key_a = key;
    id_a = id;
  }

  double keys_[kList];
  std::uint32_t ids_[kList];
};

template <int D, int kList>
class GroupWalker {
 public:
  __device__ GroupWalker(const Walk& walk, const ListTask& task, std::int64_t first, double* shared)
      : walk_(walk),
        task_(task),
        lane_(static_cast<int>(threadIdx.x) % 32),
        count_(walk.count - first < kGroup ? static_cast<int>(walk.count - first) : kGroup),
        list_(task.k, lane_ < count_),
        waiting_keys_(shared),
        waiting_ids_(reinterpret_cast<std::uint32_t*>(shared + kWaitingDoubles)),
        points_(shared + kWaitingDoubles + kWaitingDoubles / 2),
        ids_(reinterpret_cast<std::uint32_t*>(points_ + walk.tree.d * kTreeWidth)),
        kept_bits_(reinterpret_cast<unsigned long long*>(points_ + walk.tree.d * kTreeWidth + kTreeWidth / 2)),
        kept_firsts_(reinterpret_cast<std::uint32_t*>(kept_bits_ + 32 * (walk.tree.levels.height - 1))) {
    // Lanes without a query stand where the last one does, and want nothing.
    const std::int64_t i = first + (lane_ < count_ ? lane_ : count_ - 1);
    const std::int64_t turn = walk.turns != nullptr ? walk.turns[i] : i;
    query_ = walk.in_leaves ? turn : walk.first + turn;
    const double* const x = walk.queries + (walk.in_leaves ? i : turn) * walk.tree.d;
#pragma unroll
    for (int j = 0; j < kColumnsOf<D>; ++j) {
      if (D == 0 && j >= walk.tree.d) continue;
      x_[j] = x[j];
      low_[j] = x_[j];
      high_[j] = x_[j];
      for (int step = 16; step > 0; step /= 2) {
        low_[j] = fmin(low_[j], __shfl_xor_sync(kWholeWarp, low_[j], step));
        high_[j] = fmax(high_[j], __shfl_xor_sync(kWholeWarp, high_[j], step));
      }
    }
    own_ = number_of(walk.eligible.own_row(query_));
    excluded_ = number_of(walk.eligible.excluded_row(query_));
    limit_ = list_.limit();
    set_last();
  }

  /// Rows whose keys were formed, each for count_ queries. The answer is void when it was stopped.
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
        if (level == top) break;
        ++level;
        node /= kTreeWidth;
        bits_ = kept_bits_[(level - 2) * 32 + lane_];
        first_ = kept_firsts_[(level - 2) * 32 + lane_];
        continue;
      }
      if (lane_ == lane) bits_ = kTaken;
      if (!is_wanted(level, node, lane)) continue;
      const std::int64_t unit = node * kTreeWidth + lane;
      if (level == 1) {
        rows += look_at_leaf(unit);
        continue;
      }
      kept_bits_[(level - 2) * 32 + lane_] = bits_;
      kept_firsts_[(level - 2) * 32 + lane_] = first_;
      --level;
      node = unit;
      open(level, node);
    }
    while (__any_sync(kWholeWarp, waiting_) != 0) take_in();
    return rows * count_;
  }

  /// Sixteen entries of all lists at a time, so that a query's are written together.
  __device__ void finish() {
    double* const distances = waiting_keys_;
#pragma unroll
    for (int begin = 0; begin < kList; begin += kTakenIn) {
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kTakenIn; ++i) {
        if (begin + i >= kList - task_.k) {
          distances[i * kGroup + lane_] = Squares::report(task_.metric, list_.key(begin + i), task_.p);
          waiting_ids_[i * kGroup + lane_] = list_.id(begin + i);
        }
      }
      __syncwarp();
      const int place = begin + lane_ % kTakenIn - (kList - task_.k);
      for (int from = 0; from < count_; from += 2) {
        const int who = from + lane_ / kTakenIn;
        const std::int64_t query = __shfl_sync(kWholeWarp, query_, who < kGroup ? who : 0);
        if (place < 0 || who >= count_) continue;
        const int at = lane_ % kTakenIn * kGroup + who;
        task_.ids[query * task_.k + place] = waiting_ids_[at];
        task_.distances[query * task_.k + place] = distances[at];
      }
    }
  }

 private:
  /// As a tree's id; none where it is no row of the table.
  __device__ std::uint32_t number_of(std::int64_t row) const {
    return row >= 0 && row < walk_.tree.rows ? static_cast<std::uint32_t>(row) : kNoRow;
  }
  __device__ bool is_stopped() const {
    const int stop = *static_cast<const volatile int*>(walk_.stop);
    return __any_sync(kWholeWarp, stop) != 0;
  }

  __device__ void open(int level, std::int64_t node) {
    const std::int64_t unit = node * kTreeWidth + lane_;
    bits_ = kTaken;
    first_ = ~0U;
    if (unit < walk_.tree.levels.units[level - 1]) {
      const Elements boxes{walk_.tree.boxes[level], walk_.tree.narrow};
      const std::int64_t box = node * walk_.tree.d * kBoxValues + lane_;
      const double key = short_key<D>(walk_.tree.d, [&](int j) {
        const double below = boxes[box + j * kBoxValues] - high_[j];
        const double above = low_[j] - boxes[box + j * kBoxValues + kTreeWidth];
        const double gap = below > above ? below : above;
        return gap > 0 ? gap : 0.0;
      });
      bits_ = static_cast<unsigned long long>(__double_as_longlong(key));
      first_ = walk_.tree.first_ids[level - 1][unit];
    }
    __syncwarp();
  }

  /// A lane of the units that come before the last limit by (key, first id), or -1: the nearest of them but for the
  /// lower halves of keys, which decide only what is looked at first. Keys are not negative: their bits are in their
  /// order.
  __device__ int nearest() const {
    const bool is_open = bits_ != kTaken && last_.lets(__longlong_as_double(static_cast<long long>(bits_)), first_);
    const unsigned high = is_open ? static_cast<unsigned>(bits_ >> 32) : ~0U;
    const unsigned least = least_of_warp(high);
    if (least == ~0U) return -1;
    return __ffs(static_cast<int>(__ballot_sync(kWholeWarp, high == least))) - 1;
  }

  /// Whether a query may have a row of this unit.
  __device__ bool is_wanted(int level, std::int64_t node, int unit) const {
    const Elements boxes{walk_.tree.boxes[level], walk_.tree.narrow};
    const std::int64_t box = node * walk_.tree.d * kBoxValues + unit;
    const double key = short_key<D>(walk_.tree.d, [&](int j) {
      const double below = boxes[box + j * kBoxValues] - x_[j];
      const double above = x_[j] - boxes[box + j * kBoxValues + kTreeWidth];
      const double gap = below > above ? below : above;
      return gap > 0 ? gap : 0.0;
    });
    return __any_sync(kWholeWarp, limit_.lets(key, __shfl_sync(kWholeWarp, first_, unit))) != 0;
  }

  __device__ std::int64_t look_at_leaf(std::int64_t leaf) {
    const TreeView& tree = walk_.tree;
    const std::int64_t at = leaf * kTreeWidth + lane_;
    const bool is_row = at < tree.rows;
    const Elements points{tree.points, tree.narrow};
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kColumnsOf<D>; ++j) {
      if (D == 0 && j >= tree.d) continue;
      points_[j * kTreeWidth + lane_] =
          is_row ? points[leaf * tree.d * kTreeWidth + j * kTreeWidth + lane_] : INFINITY;  // comes before no limit
    }
    ids_[lane_] = is_row ? tree.order[at] : kNoRow;
    __syncwarp();
    for (int begin = 0; begin < kTreeWidth; begin += kAtOnce) {
      if (__any_sync(kWholeWarp, waiting_ > kWaiting - kAtOnce) != 0) take_in();
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const int i = begin + u;
        const double key = short_key<D>(tree.d, [&](int j) { return x_[j] - points_[j * kTreeWidth + i]; });
        const std::uint32_t id = ids_[i];
        if (key <= limit_.key && is_eligible(id)) {  // of equal keys the list decides
          waiting_keys_[waiting_ * kGroup + lane_] = key;
          waiting_ids_[waiting_ * kGroup + lane_] = id;
          ++waiting_;
        }
      }
      __syncwarp();
    }
    if (last_.key == INFINITY) take_in();
    const std::int64_t rows = tree.rows - leaf * kTreeWidth;
    return rows < kTreeWidth ? rows : kTreeWidth;
  }

  __device__ bool is_eligible(std::uint32_t id) const {
    if (id == kNoRow || id == own_ || id == excluded_) return false;
    const std::int64_t number = walk_.eligible.first_row + id;
    const std::uint64_t* const filter = walk_.eligible.filter;
    return filter == nullptr || (filter[number >> 6] >> (number & 63) & 1) != 0;
  }

  /// The first that wait enter the list; of the others those stay that may still do so.
  __device__ void take_in() {
    list_.take(waiting_ < kTakenIn ? waiting_ : kTakenIn, waiting_keys_ + lane_, waiting_ids_ + lane_);
    limit_ = list_.limit();
    set_last();
    int kept = 0;
#pragma unroll
    for (int i = kTakenIn; i < kWaiting; ++i) {
      if (i >= waiting_) continue;
      const double key = waiting_keys_[i * kGroup + lane_];
      const std::uint32_t id = waiting_ids_[i * kGroup + lane_];
      if (!limit_.lets(key, id)) continue;
      waiting_keys_[kept * kGroup + lane_] = key;
      waiting_ids_[kept * kGroup + lane_] = id;
      ++kept;
    }
    waiting_ = kept;
    __syncwarp();
  }

  /// The last of the lanes' limits.
  __device__ void set_last() {
    last_ = limit_;
    for (int step = 16; step > 0; step /= 2) {
      const double key = __shfl_xor_sync(kWholeWarp, last_.key, step);
      const std::uint32_t id = __shfl_xor_sync(kWholeWarp, last_.id, step);
      if (last_.lets(key, id)) continue;
      last_ = {key, id};
    }
  }

  const Walk& walk_;
  const ListTask& task_;
  int lane_;
  int count_;  // of queries
  Nearest<kList> list_;
  double* waiting_keys_;  // [kWaiting][32]
  std::uint32_t* waiting_ids_;
  double* points_;  // [d][32]
  std::uint32_t* ids_;
  unsigned long long* kept_bits_;  // [height - 1][32], only ever by the lane that wrote it
  std::uint32_t* kept_firsts_;
  std::int64_t query_ = 0;
  std::uint32_t own_ = kNoRow;
  std::uint32_t excluded_ = kNoRow;
  double x_[kColumnsOf<D>];
  double low_[kColumnsOf<D>];  // of the 32 queries
  double high_[kColumnsOf<D>];
  Limit limit_;  // of the lane's query
  Limit last_;
  int waiting_ = 0;
  unsigned long long bits_ = kTaken;
  std::uint32_t first_ = ~0U;
};

/// Of a multiprocessor, as far as registers go.
template <int D, int kList>
inline constexpr int kGroupBlocks = kList > kTakenIn ? 4
                                    : D == 0         ? 6
                                                     : 8;

template <int D, int kList>
__global__ void __launch_bounds__(32 * kGroupWarps, kGroupBlocks<D, kList>)
    group_kernel(const __grid_constant__ Walk walk, const __grid_constant__ ListTask task) {
  extern __shared__ double shared_doubles[];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * kGroupWarps + warp;
  if (group * kGroup >= walk.count) return;
  GroupWalker<D, kList> walker(walk, task, group * kGroup, shared_doubles + warp * walk.shared_doubles);
  const std::int64_t rows = walker.run();
  walker.finish();
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&walk.touched[blockIdx.x % kTallies], static_cast<unsigned long long>(rows));
  }
}

}  // namespace

void walk_in_groups(const Engine& engine, const Walk& given, const ListTask& task) {
  if (given.tree.d > kMaxGroupColumns || task.k > kMaxGroupNeighbors) {
    throw Failure{ErrorCode::internal, "a walk in groups of too many columns or neighbors"};
  }
  Walk walk = given;
  walk.shared_doubles = group_doubles(walk.tree.d, walk.tree.levels.height);
  const auto start = [&](auto* kernel) {
    kernel<<<blocks_for(walk.count, kGroup * kGroupWarps), 32 * kGroupWarps,
             kGroupWarps* static_cast<std::size_t>(walk.shared_doubles) * sizeof(double), engine.stream>>>(walk, task);
  };
  const bool is_short = task.k <= kTakenIn;
  if (!is_short) {
    start(group_kernel<0, 2 * kTakenIn>);
  } else if (walk.tree.d == 2) {
    start(group_kernel<2, kTakenIn>);
  } else if (walk.tree.d == 3) {
    start(group_kernel<3, kTakenIn>);
  } else {
    start(group_kernel<0, kTakenIn>);
  }
  check_launch("search the tree in groups");
}

}  // namespace vicinal::cuda
