// Rows of other components in a tree (other_rows.hpp). A warp a row, as in a search for neighbors (nearest/tree/
// search.cu): each lane of a node has one of its units, the warp goes down to the nearest one first, and a lane keeps
// what it knows of each level above.
//
// WHY A UNIT MAY BE LEFT OUT. All its rows lie in the row's own component; or the bound of its edges, which is the most
// of both core keys (the unit's is the least of its rows) and of the box's key over the divisor, is above the lightest
// edge of the component so far; or no edge in it comes before the one that was found, which is so where the pair of
// that bound and the unit's least id does not (of edges of one row, equal keys are in the order of the other rows).
// Division rounds monotonically, and the box's key bounds those of its rows (tree.hpp), so nothing is allowed for.
#include <algorithm>
#include <cmath>

#include "cuda/base/memory.hpp"
#include "cuda/base/waiting.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/density/growth.cuh"
#include "cuda/density/other_rows.hpp"
#include "cuda/nearest/tree/box.cuh"

namespace vicinal::cuda::density {
namespace {

constexpr int kWalkWarps = 4;                                     // of a block
constexpr int kWalkBlocks = 8;                                    // of a multiprocessor, as far as registers go
constexpr int kStepsToLook = 64;                                  // between two looks at the flag
constexpr std::int64_t kMostWalks = std::int64_t{1} << 20;        // of a launch
constexpr std::uint64_t kWalkScratch = std::uint64_t{256} << 20;  // bytes of rows on their way
constexpr unsigned kClosed = ~0U;                                 // no key has these upper halves

/// What a walk is given.
struct OtherWalk {
  TreeView tree;
  Growth growth;
  const double* queries;        // [count, d]
  const std::uint32_t* places;  // [count] in the order of the leaves
  std::int64_t count;
  double p;
  const std::uint32_t* row_labels;                  // [n] in that order
  const double* row_cores;                          // the same, or null
  const std::uint32_t* labels[kMaxTreeHeight + 1];  // by level: [unit] the component of all its rows, or kNoRow
  const double* cores[kMaxTreeHeight + 1];          // by level: [unit] the least of its rows
  const int* stop;
  unsigned long long* touched;  // rows whose keys were formed
};

__device__ __forceinline__ bool comes_before(double key_a, std::uint32_t id_a, double key_b, std::uint32_t id_b) {
  return key_a < key_b || (key_a == key_b && id_a < id_b);
}

template <class Op, class Value>
class OtherWalker {
 public:
  __device__ OtherWalker(const OtherWalk& walk, std::int64_t number, double* shared)
      : walk_(walk),
        growth_(walk.growth),
        lane_(static_cast<int>(threadIdx.x) % 32),
        x_(walk.queries + number * walk.tree.d),
        row_(walk.tree.order[walk.places[number]]),
        own_(walk.row_labels[walk.places[number]]),
        core_(growth_.core(row_)),
        kept_bounds_(shared),
        kept_boxes_(reinterpret_cast<unsigned*>(shared + 32 * (walk.tree.levels.height - 1))),
        kept_firsts_(kept_boxes_ + 32 * (walk.tree.levels.height - 1)) {
    found_ = growth_.other[row_];
    if (found_ != kNoRow) key_ = growth_.other_key[row_];
    limit_ = growth_.limit(own_);
  }

  /// What it ends with is void when it was stopped.
  __device__ void run() {
    const int top = walk_.tree.levels.height;
    int level = top;
    std::int64_t node = 0;
    open(level, node);
    for (int steps = 1;; ++steps) {
      if (steps % kStepsToLook == 0 && is_stopped()) return;
      const int lane = nearest();
      if (lane < 0) {
        if (level == top) break;
        ++level;
        node /= kTreeWidth;
        take_up(level);
        continue;
      }
      if (lane_ == lane) box_ = kClosed;
      const std::int64_t unit = node * kTreeWidth + lane;
      if (level == 1) {
        ++leaves_;
        look_at_leaf(unit);
        continue;
      }
      lay_down(level);
      --level;
      node = unit;
      open(level, node);
    }
    if (lane_ != 0) return;
    growth_.finish(row_, key_, found_);
    atomicAdd(walk_.touched, static_cast<unsigned long long>(leaves_) * kTreeWidth);
  }

 private:
  __device__ bool is_stopped() const {
    const int stop = *static_cast<const volatile int*>(walk_.stop);
    return __any_sync(kWholeWarp, stop) != 0;
  }

  __device__ void open(int level, std::int64_t node) {
    const std::int64_t unit = node * kTreeWidth + lane_;
    box_ = kClosed;
    bound_ = INFINITY;
    first_ = kNoRow;
    limit_ = fmin(limit_, growth_.limit(own_));
    if (unit < walk_.tree.levels.units[level - 1] && walk_.labels[level - 1][unit] != own_) {
      const int d = walk_.tree.d;
      const Value* const boxes = static_cast<const Value*>(walk_.tree.boxes[level]) + node * d * kBoxValues;
      const double key = box_key<Op>(x_, boxes + lane_, d, walk_.p);
      const double core = walk_.row_cores != nullptr ? walk_.cores[level - 1][unit] : -INFINITY;
      box_ = static_cast<unsigned>(static_cast<unsigned long long>(__double_as_longlong(key)) >> 32);
      bound_ = growth_.key(core_, core, key);
      first_ = walk_.tree.first_ids[level - 1][unit];
    }
    __syncwarp();
  }

  /// A lane of the units that may be of use, or -1: of the nearest but for the lower halves of boxes' keys, which
  /// decide only what is looked at first. These keys are not negative: their bits are in their order.
  __device__ int nearest() const {
    const bool is_open = box_ != kClosed && bound_ <= limit_ && comes_before(bound_, first_, key_, found_);
    const unsigned box = is_open ? box_ : kClosed;
    const unsigned least = least_of_warp(box);
    if (least == kClosed) return -1;
    return __ffs(static_cast<int>(__ballot_sync(kWholeWarp, box == least))) - 1;
  }

  __device__ void look_at_leaf(std::int64_t leaf) {
    const TreeView& tree = walk_.tree;
    const std::int64_t at = leaf * kTreeWidth + lane_;
    double key = INFINITY;
    std::uint32_t id = kNoRow;
    if (at < tree.rows && walk_.row_labels[at] != own_) {
      const Value* const points = static_cast<const Value*>(tree.points) + leaf * tree.d * kTreeWidth + lane_;
      const double pair_key =
          key_of<Op>(tree.d, walk_.p, [&](int j) { return x_[j] - static_cast<double>(points[j * kTreeWidth]); });
      key = growth_.key(core_, walk_.row_cores != nullptr ? walk_.row_cores[at] : -INFINITY, pair_key);
      id = tree.order[at];
      if (!(key <= limit_)) {
        key = INFINITY;
        id = kNoRow;
      }
    }
    __syncwarp();
    if (__any_sync(kWholeWarp, comes_before(key, id, key_, found_)) == 0) return;
    for (int step = 16; step > 0; step /= 2) {
      const double other_key = __shfl_xor_sync(kWholeWarp, key, step);
      const std::uint32_t other_id = __shfl_xor_sync(kWholeWarp, id, step);
      if (!comes_before(other_key, other_id, key, id)) continue;
      key = other_key;
      id = other_id;
    }
    key_ = key;
    found_ = id;
    if (lane_ == 0) lower(growth_.best + own_, place_of(key));
    limit_ = fmin(limit_, key);
  }

  // What a lane keeps of the levels above; of level 1 nothing, for there is nothing below its units.
  __device__ void lay_down(int level) {
    const int at = (level - 2) * 32 + lane_;
    kept_bounds_[at] = bound_;
    kept_boxes_[at] = box_;
    kept_firsts_[at] = first_;
  }
  __device__ void take_up(int level) {
    const int at = (level - 2) * 32 + lane_;
    bound_ = kept_bounds_[at];
    box_ = kept_boxes_[at];
    first_ = kept_firsts_[at];
  }

  const OtherWalk& walk_;
  const Growth& growth_;
  int lane_;
  const double* x_;
  std::uint32_t row_;
  std::uint32_t own_;
  double core_;
  double* kept_bounds_;  // [height - 1][32], only ever by the lane that wrote it
  unsigned* kept_boxes_;
  std::uint32_t* kept_firsts_;
  double limit_;           // the lightest edge of the component so far
  double key_ = INFINITY;  // of what was found
  std::uint32_t found_;
  unsigned box_ = kClosed;   // of the lane's unit: the upper half of its box's key
  double bound_ = INFINITY;  // of its edges' keys
  std::uint32_t first_ = kNoRow;
  std::int64_t leaves_ = 0;  // that were looked at
};

/// Doubles of shared memory for the levels that a warp keeps.
__host__ __device__ constexpr int kept_by_warp(int height) {
  return (height - 1) * 64;
}

template <class Op, class Value>
__global__ void __launch_bounds__(32 * kWalkWarps, kWalkBlocks)
    other_walk_kernel(const __grid_constant__ OtherWalk walk) {
  extern __shared__ double shared_doubles[];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWalkWarps + warp;
  if (i >= walk.count) return;
  OtherWalker<Op, Value>(walk, i, shared_doubles + warp * kept_by_warp(walk.tree.levels.height)).run();
}

/// Rows at places in the order of the leaves, widened.
template <class Value>
__global__ void rows_at_kernel(const __grid_constant__ TreeView tree, const std::uint32_t* places, std::int64_t count,
                               double* to) {
  const std::int64_t i = own_number();
  if (i >= count * tree.d) return;
  const std::int64_t at = places[i / tree.d];
  const std::int64_t from = (at / kTreeWidth * tree.d + i % tree.d) * kTreeWidth + at % kTreeWidth;
  to[i] = static_cast<double>(static_cast<const Value*>(tree.points)[from]);
}

template <class T>
__global__ void in_order_kernel(const T* values, const std::uint32_t* order, std::int64_t n, T* to) {
  const std::int64_t i = own_number();
  if (i < n) to[i] = values[order[i]];
}

/// A warp a unit: the component of the 32 parts that it holds, or kNoRow where they are of several.
__global__ void __launch_bounds__(kThreads)
    unit_labels_kernel(const std::uint32_t* parts, std::int64_t count, std::int64_t units, std::uint32_t* labels) {
  const std::int64_t unit = own_number() / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (unit >= units) return;
  const bool inside = unit * kTreeWidth + lane < count;
  const std::uint32_t label = inside ? parts[unit * kTreeWidth + lane] : kNoRow;
  const std::uint32_t first = __shfl_sync(kWholeWarp, label, 0);
  const bool is_whole = __all_sync(kWholeWarp, !inside || label == first) != 0;
  if (lane == 0) labels[unit] = is_whole ? first : kNoRow;
}

/// The same: the least core key.
__global__ void __launch_bounds__(kThreads)
    unit_cores_kernel(const double* parts, std::int64_t count, std::int64_t units, double* cores) {
  const std::int64_t unit = own_number() / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (unit >= units) return;
  double least = unit * kTreeWidth + lane < count ? parts[unit * kTreeWidth + lane] : INFINITY;
  for (int step = 16; step > 0; step /= 2) least = fmin(least, __shfl_xor_sync(kWholeWarp, least, step));
  if (lane == 0) cores[unit] = least;
}

std::int64_t units_of(const TreeLevels& levels) {
  std::int64_t units = 0;
  for (int level = 0; level <= levels.height; ++level) units += levels.units[level];
  return units;
}

class InTree final : public OtherRows {
 public:
  InTree(const Engine& engine, const TreeView& tree, const Search& search, const Growth& growth, std::uint64_t scratch)
      : engine_(engine),
        search_(search),
        row_labels_(engine, tree.rows),
        row_cores_(engine, growth.cores != nullptr ? tree.rows : 0),
        labels_(engine, units_of(tree.levels)),
        cores_(engine, growth.cores != nullptr ? units_of(tree.levels) : 0),
        step_(std::clamp<std::int64_t>(
            static_cast<std::int64_t>(std::min(scratch, kWalkScratch) / in_tree_scratch(tree.d)), 1,
            std::min(kMostWalks, tree.rows))),
        queries_(engine, step_ * tree.d),
        stop_(engine, 1),
        touched_(engine, 1) {
    walk_.tree = tree;
    walk_.growth = growth;
    walk_.queries = queries_.data();
    walk_.p = search.p;
    walk_.row_labels = row_labels_.data();
    walk_.row_cores = row_cores_.data();
    walk_.stop = stop_.data();
    walk_.touched = touched_.data();
    std::int64_t units = 0;
    for (int level = 0; level <= tree.levels.height; ++level) {
      walk_.labels[level] = labels_.data() + units;
      walk_.cores[level] = growth.cores != nullptr ? cores_.data() + units : nullptr;
      units += tree.levels.units[level];
    }
    stop_.zero();
    if (growth.cores == nullptr) return;
    put_in_order(growth.cores, row_cores_.data());
    for_each_level(row_cores_.data(), cores_.data(),
                   [&](unsigned blocks, const double* parts, std::int64_t count, std::int64_t own, double* to) {
                     unit_cores_kernel<<<blocks, kThreads, 0, engine_.stream>>>(parts, count, own, to);
                   });
  }

  void relabel() override {
    put_in_order(static_cast<const std::uint32_t*>(walk_.growth.label), row_labels_.data());
    for_each_level(
        row_labels_.data(), labels_.data(),
        [&](unsigned blocks, const std::uint32_t* parts, std::int64_t count, std::int64_t own, std::uint32_t* to) {
          unit_labels_kernel<<<blocks, kThreads, 0, engine_.stream>>>(parts, count, own, to);
        });
  }

  void search(std::int64_t first, std::int64_t count) override {
    touched_.zero();
    for (const std::int64_t end = first + count; first < end; first += step_) {
      walk_.places = walk_.growth.numbers + first;
      walk_.count = std::min(step_, end - first);
      const std::size_t shared =
          static_cast<std::size_t>(kWalkWarps * kept_by_warp(walk_.tree.levels.height)) * sizeof(double);
      with_op_and_value(search_.metric, walk_.tree.narrow, [&](auto op, auto value) {
        using Value = decltype(value);
        rows_at_kernel<Value><<<blocks_for(walk_.count * walk_.tree.d, kThreads), kThreads, 0, engine_.stream>>>(
            walk_.tree, walk_.places, walk_.count, queries_.data());
        check_launch("take rows of the tree");
        other_walk_kernel<decltype(op), Value>
            <<<blocks_for(walk_.count, kWalkWarps), 32 * kWalkWarps, shared, engine_.stream>>>(walk_);
      });
      check_launch("search for other components");
      wait_or_stop(engine_, stop_.data());
      engine_.host.check_cancelled();
    }
  }
  std::int64_t touched() override {
    unsigned long long rows = 0;
    to_host(engine_, &rows, touched_.data(), 1);
    engine_.synchronize();
    return static_cast<std::int64_t>(rows);
  }

 private:
  template <class T>
  void put_in_order(const T* values, T* to) {
    const std::int64_t n = walk_.tree.rows;
    in_order_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine_.stream>>>(values, walk_.tree.order, n, to);
    check_launch("put in the order of the leaves");
  }
  /// Calls join(blocks, parts, count, units, to) from the leaves on: rows first, then the units of each level.
  template <class T, class JoinUnits>
  void for_each_level(const T* rows, T* units, const JoinUnits& join) {
    const TreeLevels& levels = walk_.tree.levels;
    const T* parts = rows;
    std::int64_t count = walk_.tree.rows;
    for (int level = 0; level <= levels.height; ++level) {
      join(blocks_for(levels.units[level] * 32, kThreads), parts, count, levels.units[level], units);
      check_launch("join units");
      parts = units;
      count = levels.units[level];
      units += count;
    }
  }

  const Engine& engine_;
  const Search& search_;
  Buffer<std::uint32_t> row_labels_;
  Buffer<double> row_cores_;
  Buffer<std::uint32_t> labels_;
  Buffer<double> cores_;
  std::int64_t step_;  // rows of a launch
  Buffer<double> queries_;
  Buffer<int> stop_;
  Buffer<unsigned long long> touched_;
  OtherWalk walk_{};
};

}  // namespace

std::unique_ptr<OtherRows> other_rows_in_tree(const Engine& engine, const TreeView& tree, const Search& search,
                                              const Growth& growth, std::uint64_t scratch) {
  return std::make_unique<InTree>(engine, tree, search, growth, scratch);
}

std::uint64_t in_tree_bytes(std::int64_t n, bool has_cores) {
  const auto each = static_cast<std::uint64_t>(n + units_of(TreeLevels(n)));
  return each * (sizeof(std::uint32_t) + (has_cores ? sizeof(double) : 0)) + sizeof(int) + sizeof(unsigned long long);
}

std::uint64_t in_tree_scratch(std::int64_t d) {
  return static_cast<std::uint64_t>(d) * sizeof(double);
}

}  // namespace vicinal::cuda::density
