// The searches of DBSCAN in a tree on the device (cuda/nearest/tree/tree.hpp): a warp takes a leaf, a lane one of its
// rows, and the warp meets the units of the tree around the leaf: its siblings first, then those of the node above, and
// so on, so that near rows mostly come first. Rows are known by their places in the tree's order.
//
// BOXES. Let t be the difference of a row of the leaf and a row of a unit in one column. The gap between their boxes,
// and the distance of their far ends, are differences of bounds of both rows, so that rounding, which is monotone,
// keeps gap <= |t| <= far; and the key function grows with each of its differences, in floating point (the proof stands
// in cpu/nearest/tree/tree.hpp). So the key of the gaps is at most, and that of the far ends at least, each pair's. A
// unit is left out if the first is above the limit. If the second is not above it, all rows of the unit are neighbors
// of all rows of the leaf. Rows of one unit are neighbors of each other if the key of its box's width is not above the
// limit. A row by itself is a box, too.
//
//   core    A row counts the rows around it, or adds up digits of their weights, units within the limit as wholes. It
//           is done as soon as it has enough, where sums only grow.
//   join    Units whose rows are all neighbors of each other are joined as they are. Then every 64th leaf meets all
//           units around it, every eighth, and at last every leaf those that come after it, so that each pair of leaves
//           meets. A unit is passed over if all its core rows are joined to those of the leaf; before each of the three
//           passes it is looked up of which units all core rows are in one component.
//   border  Rows that are not core rows take the smallest number of the core rows around them, from units within the
//           limit as a whole. Units that have no smaller number than the one found already are passed over.
#include <algorithm>
#include <memory>

#include "cuda/base/waiting.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/density/dbscan.hpp"
#include "cuda/density/forest.cuh"
#include "cuda/nearest/tree/box.cuh"

namespace vicinal::cuda::dbscan {
namespace {

constexpr int kWarps = 4;                                // of a block that walks
constexpr int kLooks = 64;                               // units between two looks at the flag that stops
constexpr std::int64_t kLeaves = std::int64_t{1} << 16;  // of a launch
constexpr std::int64_t kStrides[] = {64, 8, 1};          // of the passes that join
constexpr std::uint64_t kFlagBytes = 4096;

/// The units of all levels, numbered: those of level l from at[l] on.
struct UnitNumbers {
  std::int64_t at[kMaxTreeHeight + 1] = {};
  std::int64_t total = 0;

  UnitNumbers() = default;
  explicit UnitNumbers(const TreeLevels& levels) {
    for (int level = 0; level <= levels.height; ++level) {
      at[level] = total;
      total += levels.units[level];
    }
  }
};

/// A launch of a walk.
struct Walk {
  TreeView tree;
  UnitNumbers units;
  double p = 2;
  double limit = 0;
  std::int64_t first = 0;  // of the leaves that are multiples of `stride`
  std::int64_t count = 0;  // of them
  std::int64_t stride = 1;
  std::int64_t skipped = 0;   // leaves that are multiples of it are left out; 0: none
  bool later = false;         // only units that come after the leaf, and the leaf itself
  const int* stop = nullptr;  // not 0: the caller wants no answer any more
};

// ---- keys

/// The gap between two intervals, and the distance of their far ends.
__device__ __forceinline__ double gap_of(double low_a, double high_a, double low_b, double high_b) {
  const double below = low_b - high_a;
  const double above = low_a - high_b;
  const double gap = below > above ? below : above;
  return gap > 0 ? gap : 0.0;
}
__device__ __forceinline__ double far_of(double low_a, double high_a, double low_b, double high_b) {
  const double above = high_b - low_a;
  const double below = high_a - low_b;
  return above > below ? above : below;
}

// ---- a warp's way

/// Takes a leaf's rows past the units around it. A visitor, which all lanes of a warp call together:
///   before()                    looked at what others did; before each node
///   wants(unit)                 whether the lane's own unit is of use (its number)
///   take(whole, unit)           lanes with `whole` have a unit all of whose rows are neighbors of the leaf's; returns
///                               those that must be entered all the same
///   asks()                      whether the lane's row looks for anything
///   meet(leaf, unit, near, whole, key)   rows of a leaf; `near`: the lane's row may have neighbors there, `whole`: all
///                                        are; key(r): of the lane's row and row r of the leaf
///   is_done()                   of all lanes
template <class Op, class Value, class Visitor>
class LeafWalker {
 public:
  __device__ LeafWalker(const Walk& walk, std::int64_t leaf, Visitor& visitor)
      : walk_(walk),
        visitor_(visitor),
        lane_(static_cast<int>(threadIdx.x) % 32),
        leaf_(leaf),
        x_(points_of(leaf) + lane_),
        own_box_(box_of(leaf)) {}

  __device__ void run() {
    if (visitor_.is_done()) return;
    meet(leaf_);
    std::int64_t child = leaf_;
    for (int level = 1; level <= walk_.tree.levels.height; ++level) {
      const std::int64_t node = child / kTreeWidth;
      if (visitor_.is_done() || !go_down(level, node, static_cast<int>(child % kTreeWidth))) return;
      child = node;
    }
  }

 private:
  [[nodiscard]] __device__ const Value* points_of(std::int64_t leaf) const {
    return static_cast<const Value*>(walk_.tree.points) + leaf * walk_.tree.d * kTreeWidth;
  }
  [[nodiscard]] __device__ const Value* box_of(std::int64_t leaf) const {
    return static_cast<const Value*>(walk_.tree.boxes[1]) + leaf / kTreeWidth * walk_.tree.d * kBoxValues +
           leaf % kTreeWidth;
  }
  [[nodiscard]] __device__ bool is_stopped() const {
    const int stop = *static_cast<const volatile int*>(walk_.stop);
    return __any_sync(kWholeWarp, stop) != 0;
  }

  /// All units below a node but the one that `own` is, or only those after it. False: there is nothing left to do.
  __device__ bool go_down(int top, std::int64_t node, int own) {
    unsigned left[kMaxTreeHeight + 1];
    int level = top;
    left[level] = open(level, node, own);
    while (!visitor_.is_done()) {
      if (left[level] == 0) {
        if (level == top) return true;
        ++level;
        node /= kTreeWidth;
        continue;
      }
      if (++steps_ % kLooks == 0 && is_stopped()) return false;
      const int lane = __ffs(static_cast<int>(left[level])) - 1;
      left[level] &= left[level] - 1;
      const std::int64_t unit = node * kTreeWidth + lane;
      if (level == 1) {
        meet(unit);
        continue;
      }
      --level;
      node = unit;
      left[level] = open(level, node, -1);
    }
    return false;
  }

  /// The units of a node that are to be entered: a lane looks at one.
  __device__ unsigned open(int level, std::int64_t node, int own) {
    visitor_.before();
    const std::int64_t unit = node * kTreeWidth + lane_;
    const std::int64_t number = walk_.units.at[level - 1] + unit;
    bool near = unit < walk_.tree.levels.units[level - 1] && (walk_.later ? lane_ > own : lane_ != own);
    bool whole = false;
    if (near && visitor_.wants(number)) {
      const int d = walk_.tree.d;
      const Value* const box = static_cast<const Value*>(walk_.tree.boxes[level]) + node * d * kBoxValues + lane_;
      near = key_of<Op>(d, walk_.p, [&](int j) {
               return gap_of(own_low(j), own_high(j), low(box, j), high(box, j));
             }) <= walk_.limit;
      whole = near && key_of<Op>(d, walk_.p, [&](int j) {
                        return far_of(own_low(j), own_high(j), low(box, j), high(box, j));
                      }) <= walk_.limit;
    } else {
      near = false;
    }
    __syncwarp();
    const unsigned entered = __ballot_sync(kWholeWarp, near && !whole);
    return entered | visitor_.take(whole, number);
  }

  __device__ void meet(std::int64_t leaf) {
    const int d = walk_.tree.d;
    const Value* const box = box_of(leaf);
    bool near = visitor_.asks();
    bool whole = false;
    if (near) {
      near =
          key_of<Op>(d, walk_.p, [&](int j) { return gap_of(x(j), x(j), low(box, j), high(box, j)); }) <= walk_.limit;
      whole = near && key_of<Op>(d, walk_.p, [&](int j) { return far_of(x(j), x(j), low(box, j), high(box, j)); }) <=
                          walk_.limit;
    }
    __syncwarp();
    if (__any_sync(kWholeWarp, near) == 0) return;
    const Value* const points = points_of(leaf);
    visitor_.meet(leaf, near, whole, [&](int row) {
      return key_of<Op>(d, walk_.p, [&](int j) { return x(j) - static_cast<double>(points[j * kTreeWidth + row]); });
    });
    __syncwarp();
  }

  [[nodiscard]] __device__ double x(int j) const { return static_cast<double>(x_[j * kTreeWidth]); }
  [[nodiscard]] __device__ static double low(const Value* box, int j) {
    return static_cast<double>(box[j * kBoxValues]);
  }
  [[nodiscard]] __device__ static double high(const Value* box, int j) {
    return static_cast<double>(box[j * kBoxValues + kTreeWidth]);
  }
  [[nodiscard]] __device__ double own_low(int j) const { return low(own_box_, j); }
  [[nodiscard]] __device__ double own_high(int j) const { return high(own_box_, j); }

  const Walk& walk_;
  Visitor& visitor_;
  int lane_;
  std::int64_t leaf_;
  const Value* x_;
  const Value* own_box_;
  int steps_ = 0;
};

// ---- core rows

struct CountTask {
  std::int64_t rows;
  const std::int64_t* values;     ///< [rows] what each row counts, or null: 1
  const std::int64_t* unit_sums;  ///< [units] of `values`
  std::int64_t enough;            ///< a row with so much is done
  bool stops;                     ///< whether it is: sums only grow
  std::int64_t* sums;             ///< [rows]
};

class Counting {
 public:
  using Task = CountTask;

  __device__ Counting(const Task& task, const Walk& walk, std::int64_t leaf)
      : task_(task), walk_(walk), place_(leaf * kTreeWidth + threadIdx.x % 32), is_row_(place_ < task.rows) {}

  __device__ void before() {}
  [[nodiscard]] __device__ bool wants(std::int64_t /*unit*/) const { return true; }
  __device__ unsigned take(bool whole, std::int64_t unit) {
    unsigned rest = __ballot_sync(kWholeWarp, whole);
    if (rest == 0) return 0;
    std::int64_t all = whole ? sum_of(unit) : 0;
    for (int step = 16; step > 0; step /= 2) all += __shfl_xor_sync(kWholeWarp, all, step);
    sum_ += all;
    return 0;
  }
  [[nodiscard]] __device__ bool asks() const { return is_row_ && !(task_.stops && sum_ >= task_.enough); }
  template <class Key>
  __device__ void meet(std::int64_t leaf, bool near, bool whole, Key key) {
    const std::int64_t first = leaf * kTreeWidth;
    const std::int64_t left = task_.rows - first;
    const int rows = left < kTreeWidth ? static_cast<int>(left) : kTreeWidth;
    if (whole) {
      sum_ += task_.values != nullptr ? task_.unit_sums[leaf] : rows;
    } else if (near) {
      for (int row = 0; row < rows; ++row) {
        if (key(row) <= walk_.limit) sum_ += task_.values != nullptr ? task_.values[first + row] : 1;
      }
    }
  }
  [[nodiscard]] __device__ bool is_done() const { return __any_sync(kWholeWarp, asks()) == 0; }
  __device__ void finish() const {
    if (is_row_) task_.sums[place_] = sum_;
  }

 private:
  [[nodiscard]] __device__ std::int64_t sum_of(std::int64_t number) const {
    if (task_.values != nullptr) return task_.unit_sums[number];
    int level = 0;
    while (level < walk_.tree.levels.height && number >= walk_.units.at[level + 1]) ++level;
    const std::int64_t rows = std::int64_t{1} << 5 * (level + 1);
    const std::int64_t left = task_.rows - (number - walk_.units.at[level]) * rows;
    return left < rows ? left : rows;
  }

  const Task& task_;
  const Walk& walk_;
  std::int64_t place_;
  bool is_row_;
  std::int64_t sum_ = 0;
};

// ---- unions

struct JoinTask {
  std::int64_t rows;
  const std::uint8_t* core;
  unsigned* parent;
  const unsigned* joined;  ///< [units] a place in the component of all core rows, or kNone, or kSeveral
};

class Joining {
 public:
  using Task = JoinTask;

  __device__ Joining(const Task& task, const Walk& walk, std::int64_t leaf) : task_(task), walk_(walk) {
    const std::int64_t place = leaf * kTreeWidth + threadIdx.x % 32;
    is_core_ = place < task.rows && task.core[place] != 0;
    if (is_core_) root_ = root_of(task.parent, static_cast<unsigned>(place));
    is_done_ = __any_sync(kWholeWarp, is_core_) == 0;
  }

  __device__ void before() {
    if (is_core_) root_ = root_of(task_.parent, root_);
    __syncwarp();
    const unsigned least = least_of_warp(is_core_ ? root_ : kNone);
    common_ = __all_sync(kWholeWarp, !is_core_ || root_ == least) != 0 ? least : kSeveral;
  }
  [[nodiscard]] __device__ bool wants(std::int64_t unit) const {
    const unsigned joined = task_.joined[unit];
    if (joined == kNone) return false;
    return joined == kSeveral || common_ == kSeveral || root_of(task_.parent, joined) != common_;
  }
  __device__ unsigned take(bool whole, std::int64_t unit) {
    const unsigned joined = whole ? task_.joined[unit] : kNone;
    const unsigned entered = __ballot_sync(kWholeWarp, joined == kSeveral);
    for (unsigned rest = __ballot_sync(kWholeWarp, joined < kSeveral); rest != 0; rest &= rest - 1) {
      const unsigned other = __shfl_sync(kWholeWarp, joined, __ffs(static_cast<int>(rest)) - 1);
      if (is_core_) join(other);
      __syncwarp();
    }
    return entered;
  }
  [[nodiscard]] __device__ bool asks() const { return is_core_; }
  template <class Key>
  __device__ void meet(std::int64_t leaf, bool near, bool whole, Key key) {
    const std::int64_t place = leaf * kTreeWidth + threadIdx.x % 32;
    const bool is_core = place < task_.rows && task_.core[place] != 0;
    const unsigned root = is_core ? root_of(task_.parent, static_cast<unsigned>(place)) : kNone;
    for (unsigned rest = __ballot_sync(kWholeWarp, is_core); rest != 0; rest &= rest - 1) {
      const int row = __ffs(static_cast<int>(rest)) - 1;
      const unsigned other = __shfl_sync(kWholeWarp, root, row);
      if (near && other != root_ && are_apart(other) && (whole || key(row) <= walk_.limit)) join(other);
      __syncwarp();
    }
  }
  [[nodiscard]] __device__ bool is_done() const { return is_done_; }
  __device__ void finish() const {}

 private:
  /// What others joined is looked up, which costs less than a key.
  __device__ bool are_apart(unsigned other) {
    root_ = root_of(task_.parent, root_);
    return root_of(task_.parent, other) != root_;
  }
  __device__ void join(unsigned other) {
    unite(task_.parent, root_, other);
    root_ = root_of(task_.parent, root_);
  }

  const Task& task_;
  const Walk& walk_;
  bool is_core_;
  bool is_done_;
  unsigned root_ = kNone;
  unsigned common_ = kSeveral;
};

// ---- border rows

struct NumberTask {
  std::int64_t rows;
  const std::uint8_t* core;
  unsigned* labels;
  const unsigned* least;  ///< [units] the smallest number of a core row, or kNone
};

class Numbering {
 public:
  using Task = NumberTask;

  __device__ Numbering(const Task& task, const Walk& walk, std::int64_t leaf)
      : task_(task), walk_(walk), place_(leaf * kTreeWidth + threadIdx.x % 32) {
    is_border_ = place_ < task.rows && task.core[place_] == 0;
  }

  __device__ void before() { most_ = most_of_warp(asks() ? label_ : 0); }
  [[nodiscard]] __device__ bool wants(std::int64_t unit) const { return task_.least[unit] < most_; }
  __device__ unsigned take(bool whole, std::int64_t unit) {
    const unsigned least = least_of_warp(whole ? task_.least[unit] : kNone);
    if (least < label_) label_ = least;
    return 0;
  }
  [[nodiscard]] __device__ bool asks() const { return is_border_ && label_ > 0; }
  template <class Key>
  __device__ void meet(std::int64_t leaf, bool near, bool whole, Key key) {
    const unsigned least = task_.least[leaf];
    if (near && whole && least < label_) label_ = least;
    const bool looks = near && !whole && least < label_;
    if (__any_sync(kWholeWarp, looks) == 0) return;
    const std::int64_t place = leaf * kTreeWidth + threadIdx.x % 32;
    const unsigned number = place < task_.rows && task_.core[place] != 0 ? task_.labels[place] : kNone;
    for (unsigned rest = __ballot_sync(kWholeWarp, number != kNone); rest != 0; rest &= rest - 1) {
      const int row = __ffs(static_cast<int>(rest)) - 1;
      const unsigned other = __shfl_sync(kWholeWarp, number, row);
      if (looks && other < label_ && key(row) <= walk_.limit) label_ = other;
      __syncwarp();
    }
  }
  [[nodiscard]] __device__ bool is_done() const { return __any_sync(kWholeWarp, asks()) == 0; }
  __device__ void finish() const {
    if (is_border_) task_.labels[place_] = label_;
  }

 private:
  const Task& task_;
  const Walk& walk_;
  std::int64_t place_;
  bool is_border_;
  unsigned label_ = kNone;
  unsigned most_ = kNone;
};

template <class Op, class Value, class Visitor>
__global__ void __launch_bounds__(32 * kWarps)
    walk_kernel(const __grid_constant__ Walk walk, const __grid_constant__ typename Visitor::Task task) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i >= walk.count) return;
  const std::int64_t leaf = (walk.first + i) * walk.stride;
  if (walk.skipped > 0 && leaf % walk.skipped == 0) return;
  Visitor visitor(task, walk, leaf);
  LeafWalker<Op, Value, Visitor>(walk, leaf, visitor).run();
  visitor.finish();
}

// ---- what units hold

/// Sums of values.
struct SumFold {
  using Type = std::int64_t;
  const std::int64_t* values;

  __device__ static Type none() { return 0; }
  __device__ Type of(std::int64_t place) const { return values[place]; }
  __device__ static Type merged(Type a, Type b) { return a + b; }
};
/// The first core row.
struct FirstFold {
  using Type = unsigned;
  const std::uint8_t* core;

  __device__ static Type none() { return kNone; }
  __device__ Type of(std::int64_t place) const { return core[place] != 0 ? static_cast<unsigned>(place) : kNone; }
  __device__ static Type merged(Type a, Type b) { return a < b ? a : b; }
};
/// The root of all core rows, of a forest that is flat.
struct RootFold {
  using Type = unsigned;
  const std::uint8_t* core;
  const unsigned* parent;

  __device__ static Type none() { return kNone; }
  __device__ Type of(std::int64_t place) const { return core[place] != 0 ? parent[place] : kNone; }
  __device__ static Type merged(Type a, Type b) {
    if (a == kNone || b == kNone) return a == kNone ? b : a;
    return a == b ? a : kSeveral;
  }
};
/// The smallest label of a core row.
struct LabelFold {
  using Type = unsigned;
  const std::uint8_t* core;
  const unsigned* labels;

  __device__ static Type none() { return kNone; }
  __device__ Type of(std::int64_t place) const { return core[place] != 0 ? labels[place] : kNone; }
  __device__ static Type merged(Type a, Type b) { return a < b ? a : b; }
};

/// A warp a unit: of level 0 from its rows (`below` null), else from its units.
template <class Fold>
__global__ void __launch_bounds__(kThreads) fold_kernel(Fold fold, const typename Fold::Type* below, std::int64_t parts,
                                                        std::int64_t units, typename Fold::Type* folded) {
  const std::int64_t unit = own_number() / 32;
  if (unit >= units) return;
  const std::int64_t part = unit * kTreeWidth + threadIdx.x % 32;
  typename Fold::Type value = Fold::none();
  if (part < parts) value = below != nullptr ? below[part] : fold.of(part);
  for (int step = 16; step > 0; step /= 2) value = Fold::merged(value, __shfl_xor_sync(kWholeWarp, value, step));
  if (threadIdx.x % 32 == 0) folded[unit] = value;
}

/// Whether all rows of a unit are neighbors of each other.
template <class Op, class Value>
__global__ void __launch_bounds__(kThreads)
    tight_kernel(const __grid_constant__ TreeView tree, int level, double p, double limit, std::uint8_t* tight) {
  const std::int64_t unit = own_number();
  if (unit >= tree.levels.units[level]) return;
  const Value* const box =
      static_cast<const Value*>(tree.boxes[level + 1]) + unit / kTreeWidth * tree.d * kBoxValues + unit % kTreeWidth;
  const double width = key_of<Op>(tree.d, p, [&](int j) {
    return static_cast<double>(box[j * kBoxValues + kTreeWidth]) - static_cast<double>(box[j * kBoxValues]);
  });
  tight[unit] = width <= limit ? 1 : 0;
}

/// Joins each core row to the first one in the largest tight unit around it.
__global__ void __launch_bounds__(kThreads)
    join_tight_kernel(const __grid_constant__ UnitNumbers units, int height, const std::uint8_t* tight,
                      const unsigned* first, const std::uint8_t* core, std::int64_t rows, unsigned* parent) {
  const std::int64_t place = own_number();
  if (place >= rows || core[place] == 0) return;
  for (int level = height; level >= 0; --level) {
    const std::int64_t unit = units.at[level] + (place >> 5 * (level + 1));
    if (tight[unit] == 0) continue;
    unite(parent, static_cast<unsigned>(place), first[unit]);
    return;
  }
}

// ---- weights

/// A digit of each weight, in the order of places.
__global__ void __launch_bounds__(kThreads)
    digit_kernel(const double* weights, const std::uint32_t* order, std::int64_t rows, int base, int bits, int number,
                 std::int64_t* digits) {
  const std::int64_t place = own_number();
  if (place < rows) digits[place] = core::weight_digit(weights[order[place]], base, bits, number);
}

__global__ void __launch_bounds__(kThreads)
    take_digits_kernel(const std::int64_t* sums, std::int64_t rows, const std::int64_t* least, int number, int bits,
                       std::int64_t* carries, std::int8_t* orders) {
  const std::int64_t place = own_number();
  if (place >= rows) return;
  core::DigitSum sum;
  if (number > 0) sum = {carries[place], orders[place]};
  sum.take(sums[place], least[number], bits);
  carries[place] = sum.carry;
  orders[place] = sum.order;
}

/// Whether sums are enough: `sums` themselves, or what their digits left.
__global__ void __launch_bounds__(kThreads)
    settle_kernel(const std::int64_t* sums, std::int64_t enough, const std::int64_t* carries, const std::int8_t* orders,
                  std::int64_t rows, std::uint8_t* core_rows) {
  const std::int64_t place = own_number();
  if (place >= rows) return;
  const bool is_core =
      carries != nullptr ? core::DigitSum{carries[place], orders[place]}.is_enough() : sums[place] >= enough;
  core_rows[place] = is_core ? 1 : 0;
}

// ---- the host's side

class TreeSearches final : public Searches {
 public:
  TreeSearches(const Engine& engine, const TreeView& tree, const plugin::Search& search, const Rule& rule,
               PlacedRows& rows)
      : engine_(engine), metric_(static_cast<Metric>(search.metric)), rule_(rule), rows_(rows), stop_(engine, 1) {
    walk_.tree = tree;
    walk_.units = UnitNumbers(tree.levels);
    walk_.p = search.p;
    walk_.limit = rule.limit;
    walk_.stop = stop_.data();
    stop_.zero();
    held_ = Buffer<unsigned>(engine, walk_.units.total);
  }

  void find_core_rows() override {
    const std::int64_t n = rows_.count;
    const Buffer<std::int64_t> sums(engine_, n);
    CountTask task{n, nullptr, nullptr, rule_.min_samples, true, sums.data()};
    if (!rule_.has_weights()) {
      walk<Counting>(task, "core rows", 0, 1);
      return settle(sums.data(), task.enough, nullptr, nullptr);
    }
    const Buffer<std::int64_t> values(engine_, n);
    const Buffer<std::int64_t> unit_sums(engine_, walk_.units.total);
    task.values = values.data();
    task.unit_sums = unit_sums.data();
    const core::WeightDigits& digits = rule_.digits;
    const auto count = static_cast<int>(digits.least.size());
    // One digit is the whole sum.
    task.stops = count == 1 && !digits.may_shrink;
    task.enough = digits.least[0];
    const Buffer<std::int64_t> carries(engine_, count > 1 ? n : 0);
    const Buffer<std::int8_t> orders(engine_, count > 1 ? n : 0);
    for (int number = 0; number < count; ++number) {
      digit_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine_.stream>>>(
          rule_.weights.data(), rows_.order, n, digits.base, digits.bits, number, values.data());
      check_launch("cut weights");
      fold(SumFold{values.data()}, unit_sums.data());
      walk<Counting>(task, "core rows", static_cast<double>(number) / count, 1.0 / count);
      if (count == 1) break;
      take_digits_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine_.stream>>>(
          sums.data(), n, rule_.least.data(), number, digits.bits, carries.data(), orders.data());
      check_launch("add digits");
    }
    settle(sums.data(), task.enough, carries.data(), orders.data());
  }

  void join_core_rows() override {
    const std::int64_t n = rows_.count;
    join_tight_units();
    const JoinTask task{n, rows_.core.data(), rows_.parent.data(), held_.data()};
    double done = 0;
    walk_.skipped = 0;
    for (const std::int64_t stride : kStrides) {
      flatten(engine_, rows_.parent.data(), n);
      fold(RootFold{rows_.core.data(), rows_.parent.data()}, held_.data());
      walk_.stride = stride;
      walk_.later = stride == 1;
      const double share = stride == 1 ? 1 - done : 1.0 / static_cast<double>(stride);
      walk<Joining>(task, "clusters", done, share);
      done += share;
      walk_.skipped = stride;
    }
    walk_.stride = 1;
    walk_.skipped = 0;
    walk_.later = false;
  }

  void label_border_rows() override {
    fold(LabelFold{rows_.core.data(), rows_.labels.data()}, held_.data());
    walk<Numbering>(NumberTask{rows_.count, rows_.core.data(), rows_.labels.data(), held_.data()}, "border rows", 0, 1);
  }

 private:
  /// Leaves past the tree, some at a time.
  template <class Visitor>
  void walk(const typename Visitor::Task& task, const char* stage, double from, double share) {
    const std::int64_t all = (walk_.tree.levels.units[0] + walk_.stride - 1) / walk_.stride;
    for (std::int64_t first = 0; first < all; first += kLeaves) {
      engine_.host.progress(stage, from + share * static_cast<double>(first) / static_cast<double>(all));
      engine_.host.check_cancelled();
      walk_.first = first;
      walk_.count = std::min(kLeaves, all - first);
      with_op_and_value(metric_, walk_.tree.narrow, [&](auto op, auto value) {
        walk_kernel<decltype(op), decltype(value), Visitor>
            <<<blocks_for(walk_.count, kWarps), 32 * kWarps, 0, engine_.stream>>>(walk_, task);
      });
      check_launch("walk the tree");
      wait_or_stop(engine_, stop_.data());
    }
    engine_.host.progress(stage, from + share);
  }

  template <class Fold>
  void fold(const Fold& fold, typename Fold::Type* folded) {
    const TreeLevels& levels = walk_.tree.levels;
    for (int level = 0; level <= levels.height; ++level) {
      const typename Fold::Type* const below = level > 0 ? folded + walk_.units.at[level - 1] : nullptr;
      const std::int64_t parts = level > 0 ? levels.units[level - 1] : rows_.count;
      fold_kernel<<<blocks_for(levels.units[level] * 32, kThreads), kThreads, 0, engine_.stream>>>(
          fold, below, parts, levels.units[level], folded + walk_.units.at[level]);
      check_launch("look up what units hold");
    }
  }

  void settle(const std::int64_t* sums, std::int64_t enough, const std::int64_t* carries, const std::int8_t* orders) {
    settle_kernel<<<blocks_for(rows_.count, kThreads), kThreads, 0, engine_.stream>>>(sums, enough, carries, orders,
                                                                                      rows_.count, rows_.core.data());
    check_launch("tell core rows");
  }

  void join_tight_units() {
    const TreeLevels& levels = walk_.tree.levels;
    const Buffer<std::uint8_t> tight(engine_, walk_.units.total);
    fold(FirstFold{rows_.core.data()}, held_.data());
    with_op_and_value(metric_, walk_.tree.narrow, [&](auto op, auto value) {
      for (int level = 0; level <= levels.height; ++level) {
        tight_kernel<decltype(op), decltype(value)>
            <<<blocks_for(levels.units[level], kThreads), kThreads, 0, engine_.stream>>>(
                walk_.tree, level, walk_.p, walk_.limit, tight.data() + walk_.units.at[level]);
        check_launch("look for tight units");
      }
    });
    join_tight_kernel<<<blocks_for(rows_.count, kThreads), kThreads, 0, engine_.stream>>>(
        walk_.units, levels.height, tight.data(), held_.data(), rows_.core.data(), rows_.count, rows_.parent.data());
    check_launch("join tight units");
  }

  const Engine& engine_;
  Metric metric_;
  const Rule& rule_;
  PlacedRows& rows_;
  Walk walk_;
  Buffer<int> stop_;
  Buffer<unsigned> held_;  // [units]
};

}  // namespace

std::uint64_t tree_walk_bytes(std::int64_t rows, bool weights) {
  const UnitNumbers units{TreeLevels(rows)};
  const auto n = static_cast<std::uint64_t>(rows);
  const auto all = static_cast<std::uint64_t>(units.total);
  const std::uint64_t counting =
      n * sizeof(std::int64_t) + (weights ? n * (2 * sizeof(std::int64_t) + 1) + all * 8 : 0);
  return kFlagBytes + all * (sizeof(unsigned) + 1) + counting;
}

std::unique_ptr<Searches> walk_tree(const Engine& engine, const TreeView& tree, const plugin::Search& search,
                                    const Rule& rule, PlacedRows& rows) {
  return std::make_unique<TreeSearches>(engine, tree, search, rule, rows);
}

}  // namespace vicinal::cuda::dbscan
