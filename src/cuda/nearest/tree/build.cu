// Building a tree on the device (tree.hpp). Level by level every part of the table is put in order along the column in
// which it is widest, by one sort of all rows: the key is the part's number and the row's place in it. The parts are
// runs of a power of two of positions, so that the middle of each is where the next level divides it; no list of nodes
// is kept and nothing comes back to the host. In few columns large parts are cut into eight at a time: a sort costs as
// much whatever it is used for, and the small parts have their shape from the levels below. Parts of 2,048 rows are
// finished by a block each, in shared memory. The widest column is that of a sample of the part, which one row far away
// does not mislead; a row's place is its distance from the sample's least value as a share of the width, in float32,
// because only the order of the rows depends on it, and no answer. Sorting is stable and starts from ascending ids: the
// tree is the same every time, and equal rows keep ascending ids.
// O(n d) reads a level, log2(n / 32) levels, and a radix sort for each level, or three of them, above the blocks';
// about 25 n bytes besides the tree.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "cuda/base/element.hpp"
#include "cuda/base/order.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/nearest/layout.hpp"
#include "cuda/nearest/tree/tree.hpp"

namespace vicinal::cuda {
namespace {

constexpr int kChoosers = 4;           // warps that look at one part
constexpr std::int64_t kSample = 512;  // rows of a part that they look at
constexpr int kPlaceBits = 30;         // of a float32 in [0, 1]
constexpr int kDroppedBits = 12;       // of them, where rows are many and shorter keys are sorted sooner
constexpr int kBlockShift = 11;        // 2^11 rows are finished by a block
constexpr int kBlockRows = 1 << kBlockShift;
constexpr int kBlockWarps = kThreads / 32;
constexpr std::int64_t kFewColumns = 4;  // large parts of no more columns are cut into eight
constexpr int kLevelsAtOnce = 3;
constexpr std::int64_t kFetched = std::int64_t{1} << 20;  // ids at a time
constexpr int kLeafShift = 5;                             // 2^5 rows of a leaf

static_assert(kTreeWidth == 32, "a lane a row, and a lane a box");

/// Along which column a part is put in order. Halves of values, because a difference of two values may overflow.
struct Split {
  double low;
  double width;  // 0: the rows of the sample are all equal
  std::int64_t column;
};

__global__ void number_kernel(std::uint32_t* order, std::int64_t count) {
  const std::int64_t i = own_number();
  if (i < count) order[i] = static_cast<std::uint32_t>(i);
}

/// The widest of the columns first, first + step, ... of `size` rows: what a warp finds in a sample of them.
template <class T>
__device__ Split widest(const T* rows, std::int64_t d, const std::uint32_t* order, std::int64_t size,
                        std::int64_t first, std::int64_t step) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t count = size < kSample ? size : kSample;
  Split best{0, 0, 0};
  for (std::int64_t j = first; j < d; j += step) {
    double low = INFINITY;
    double high = -INFINITY;
    for (std::int64_t i = lane; i < count; i += 32) {
      const double value = 0.5 * widen(rows[order[i * size / count] * d + j]);
      low = fmin(low, value);
      high = fmax(high, value);
    }
    for (int other = 16; other > 0; other /= 2) {
      low = fmin(low, __shfl_xor_sync(kWholeWarp, low, other));
      high = fmax(high, __shfl_xor_sync(kWholeWarp, high, other));
    }
    if (high - low > best.width) best = {low, high - low, j};
  }
  return best;
}

/// The widest of what several warps found.
__device__ Split widest_of(const Split* found, int count) {
  Split best = found[0];
  for (int other = 1; other < count; ++other) {
    const Split& split = found[other];
    const bool wider = split.width > best.width || (split.width == best.width && split.column < best.column);
    if (split.width > 0 && wider) best = split;
  }
  return best;
}

/// A block a part of 2^shift positions, a warp some of the columns.
template <class T>
__global__ void __launch_bounds__(32 * kChoosers)
    choose_kernel(const T* rows, std::int64_t n, std::int64_t d, const std::uint32_t* order, int shift, Split* splits) {
  __shared__ Split found[kChoosers];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) << shift;
  const std::int64_t whole = std::int64_t{1} << shift;
  const Split best = widest(rows, d, order + begin, whole < n - begin ? whole : n - begin, warp, kChoosers);
  if (threadIdx.x % 32 == 0) found[warp] = best;
  __syncthreads();
  if (threadIdx.x == 0) splits[blockIdx.x] = widest_of(found, kChoosers);
}

/// A row's place in its part, as an integer of kPlaceBits.
template <class T>
__device__ std::uint32_t place_of(const T* row, const Split& split) {
  double place = 0;
  if (split.width > 0) place = (0.5 * widen(row[split.column]) - split.low) / split.width;
  return __float_as_uint(place > 0 ? __double2float_rn(fmin(place, 1.0)) : 0.0F);
}

/// The key of each position: its part, and the place of its row there.
template <class T>
__global__ void place_kernel(const T* rows, std::int64_t n, std::int64_t d, const std::uint32_t* order, int shift,
                             const Split* splits, unsigned long long* keys) {
  const std::int64_t i = own_number();
  if (i >= n) return;
  const std::int64_t part = i >> shift;
  const std::uint32_t place = place_of(rows + order[i] * d, splits[part]) >> kDroppedBits;
  keys[i] = static_cast<unsigned long long>(part) << (kPlaceBits - kDroppedBits) | place;
}

/// All levels of a part of 2^kBlockShift rows and below, a block a part. Entries are sorted by (place, position), which
/// is stable, within runs of 2^shift by a bitonic sort.
template <class T>
__global__ void __launch_bounds__(kThreads)
    finish_kernel(const T* rows, std::int64_t n, std::int64_t d, std::uint32_t* all_rows, int top) {
  __shared__ unsigned long long keys[kBlockRows];
  __shared__ std::uint32_t order[kBlockRows];
  __shared__ Split splits[kBlockRows >> (kLeafShift + 1)];
  __shared__ Split found[kBlockWarps];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kBlockRows;
  const int size = static_cast<int>(n - begin < kBlockRows ? n - begin : kBlockRows);
  for (int i = thread; i < size; i += kThreads) order[i] = all_rows[begin + i];
  __syncthreads();
  for (int shift = top; shift > kLeafShift; --shift) {
    const int run = 1 << shift;
    const int parts = kBlockRows >> shift;
    const int sharers = parts < kBlockWarps ? kBlockWarps / parts : 1;  // warps that look at one part
    for (int part = warp / sharers; part < parts; part += kBlockWarps / sharers) {
      const int left = size - part * run;
      Split best{0, 0, 0};
      if (left > 0) best = widest(rows, d, order + part * run, left < run ? left : run, warp % sharers, sharers);
      if (thread % 32 == 0) (sharers > 1 ? found[warp] : splits[part]) = best;
    }
    __syncthreads();
    if (sharers > 1 && thread < parts) splits[thread] = widest_of(found + thread * sharers, sharers);
    __syncthreads();
    for (int i = thread; i < kBlockRows; i += kThreads) {
      keys[i] = ~0ULL << kBlockShift | static_cast<unsigned>(i);  // of no row: the last ones
      if (i >= size) continue;
      const auto place = static_cast<unsigned long long>(place_of(rows + order[i] * d, splits[i >> shift]));
      keys[i] = place << kBlockShift | static_cast<unsigned>(i);
    }
    for (int width = 2; width <= run; width *= 2) {
      for (int stride = width / 2; stride > 0; stride /= 2) {
        __syncthreads();
        for (int i = thread; i < kBlockRows / 2; i += kThreads) {
          const int low = 2 * i - (i & (stride - 1));
          const unsigned long long a = keys[low];
          const unsigned long long b = keys[low + stride];
          const bool is_rising = (low & width) == 0 || width == run;
          if ((a > b) != is_rising) continue;
          keys[low] = b;
          keys[low + stride] = a;
        }
      }
    }
    __syncthreads();
    std::uint32_t moved[kBlockRows / kThreads];
#pragma unroll
    for (int e = 0; e < kBlockRows / kThreads; ++e) moved[e] = order[keys[e * kThreads + thread] & (kBlockRows - 1)];
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kBlockRows / kThreads; ++e) order[e * kThreads + thread] = moved[e];
    __syncthreads();
  }
  for (int i = thread; i < size; i += kThreads) all_rows[begin + i] = order[i];
}

/// The least and largest of the lanes' values, to where lane 0 and 1 write them.
template <class Value>
__device__ void write_box(Value low, Value high, Value* box, int lane) {
  for (int step = 16; step > 0; step /= 2) {
    low = fmin(low, __shfl_xor_sync(kWholeWarp, low, step));
    high = fmax(high, __shfl_xor_sync(kWholeWarp, high, step));
  }
  if (lane < 2) box[lane * kTreeWidth] = lane == 0 ? low : high;
}

/// The leaves, a warp each: points, box and first id.
template <class T, class Value>
__global__ void __launch_bounds__(kThreads)
    leaf_kernel(const T* rows, std::int64_t n, int d, const std::uint32_t* order, std::int64_t leaves, Value* points,
                Value* boxes, std::uint32_t* first_ids) {
  const std::int64_t leaf = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (leaf >= leaves) return;
  const std::int64_t i = leaf * kTreeWidth + lane;
  const bool inside = i < n;
  const std::uint32_t row = inside ? order[i] : 0;
  for (int j = 0; j < d; ++j) {
    const Value value = inside ? static_cast<Value>(widen(rows[row * static_cast<std::int64_t>(d) + j])) : Value{0};
    points[(leaf * d + j) * kTreeWidth + lane] = value;
    write_box(inside ? value : static_cast<Value>(INFINITY), inside ? value : static_cast<Value>(-INFINITY),
              boxes + (leaf / kTreeWidth * d + j) * kBoxValues + leaf % kTreeWidth, lane);
  }
  const std::uint32_t first = least_of_warp(inside ? row : ~0U);
  if (lane == 0) first_ids[leaf] = first;
}

/// The units of the next level, a warp each: box and first id from the `below` units that they hold 32 of.
template <class Value>
__global__ void __launch_bounds__(kThreads)
    join_kernel(const Value* boxes, const std::uint32_t* first_ids, std::int64_t below, int d, std::int64_t units,
                Value* joined, std::uint32_t* joined_ids) {
  const std::int64_t unit = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (unit >= units) return;
  const bool inside = unit * kTreeWidth + lane < below;
  for (int j = 0; j < d; ++j) {
    const Value* const box = boxes + (unit * d + j) * kBoxValues + lane;
    write_box(inside ? box[0] : static_cast<Value>(INFINITY), inside ? box[kTreeWidth] : static_cast<Value>(-INFINITY),
              joined + (unit / kTreeWidth * d + j) * kBoxValues + unit % kTreeWidth, lane);
  }
  const std::uint32_t first = least_of_warp(inside ? first_ids[unit * kTreeWidth + lane] : ~0U);
  if (lane == 0) joined_ids[unit] = first;
}

bool is_narrow(DType dtype) {
  return dtype != DType::float64;
}

/// Where things lie in a tree.
struct Sizes {
  TreeLevels levels;
  std::int64_t value;                              // bytes
  std::int64_t points = 0;                         // values
  std::int64_t box_at[kMaxTreeHeight + 2] = {};    // values before a level's boxes
  std::int64_t boxes = 0;                          // values
  std::int64_t first_at[kMaxTreeHeight + 1] = {};  // ids before a level's
  std::int64_t firsts = 0;

  Sizes(std::int64_t rows, std::int64_t d, DType dtype) : levels(rows), value(is_narrow(dtype) ? 4 : 8) {
    points = levels.units[0] * kTreeWidth * d;
    for (int level = 0; level <= levels.height; ++level) {
      first_at[level] = firsts;
      firsts += levels.units[level];
      box_at[level + 1] = boxes;
      boxes += levels.units[level + 1] * d * kBoxValues;
    }
  }
};

class Builder {
 public:
  Builder(const Engine& engine, const Rows& table)
      : engine_(engine), table_(table), sizes_(table.n, table.d, table.dtype), tree_(new DeviceTree) {}

  std::unique_ptr<DeviceTree> build() {
    KeyedValues pairs(engine_, table_.n);
    number_kernel<<<blocks_for(table_.n, kThreads), kThreads, 0, engine_.stream>>>(pairs.values[0].data(), table_.n);
    check_launch("number rows");
    with_elements(table_.data, table_.dtype, [&](const auto* rows) { put_in_order(rows, pairs); });
    tree_->order = std::move(pairs.values[0]);
    pairs.values[1] = {};
    for (auto& keys : pairs.keys) keys = {};
    with_elements(table_.data, table_.dtype, [&](const auto* rows) {
      if constexpr (sizeof *rows == sizeof(double)) {
        fill<double>(rows);
      } else {
        fill<float>(rows);
      }
    });
    engine_.synchronize();
    return std::move(tree_);
  }

 private:
  template <class T>
  void put_in_order(const T* rows, KeyedValues& pairs) {
    const std::int64_t n = table_.n;
    int top = kLeafShift;
    while (std::int64_t{1} << top < n) ++top;
    const Buffer<Split> splits(engine_, top > kBlockShift ? parts_of(kBlockShift + 1) : 0);
    const int at_once = table_.d <= kFewColumns ? kLevelsAtOnce : 1;
    for (int shift = top; shift > kBlockShift; shift -= at_once) {
      const std::int64_t parts = parts_of(shift);
      choose_kernel<<<static_cast<unsigned>(parts), 32 * kChoosers, 0, engine_.stream>>>(
          rows, n, table_.d, pairs.values[0].data(), shift, splits.data());
      check_launch("choose splits");
      place_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine_.stream>>>(
          rows, n, table_.d, pairs.values[0].data(), shift, splits.data(), pairs.keys[0].data());
      check_launch("place rows");
      const auto most = static_cast<std::uint64_t>(parts - 1);
      sort_by_key(engine_, pairs, n, kPlaceBits - kDroppedBits + static_cast<int>(std::bit_width(most)));
      engine_.synchronize();
      engine_.host.check_cancelled();
      engine_.host.progress("tree", static_cast<double>(top - shift + at_once) / static_cast<double>(top));
    }
    if (n <= kTreeWidth) return;
    finish_kernel<<<blocks_for(n, kBlockRows), kThreads, 0, engine_.stream>>>(rows, n, table_.d, pairs.values[0].data(),
                                                                              std::min(top, kBlockShift));
    check_launch("finish the order");
  }

  /// Parts of 2^shift rows.
  [[nodiscard]] std::int64_t parts_of(int shift) const { return ((table_.n - 1) >> shift) + 1; }

  template <class Value, class T>
  void fill(const T* rows) {
    const TreeLevels& levels = sizes_.levels;
    const int d = static_cast<int>(table_.d);
    tree_->points = Buffer<std::byte>(engine_, sizes_.points * sizes_.value);
    tree_->boxes = Buffer<std::byte>(engine_, sizes_.boxes * sizes_.value);
    tree_->first_ids = Buffer<std::uint32_t>(engine_, sizes_.firsts);
    auto* const points = reinterpret_cast<Value*>(tree_->points.data());
    auto* const boxes = reinterpret_cast<Value*>(tree_->boxes.data());
    std::uint32_t* const first_ids = tree_->first_ids.data();
    const auto blocks = [&](int level) { return blocks_for(levels.units[level] * 32, kThreads); };
    leaf_kernel<<<blocks(0), kThreads, 0, engine_.stream>>>(rows, table_.n, d, tree_->order.data(), levels.units[0],
                                                            points, boxes + sizes_.box_at[1], first_ids);
    check_launch("fill leaves");
    for (int level = 1; level <= levels.height; ++level) {
      join_kernel<<<blocks(level), kThreads, 0, engine_.stream>>>(
          boxes + sizes_.box_at[level], first_ids + sizes_.first_at[level - 1], levels.units[level - 1], d,
          levels.units[level], boxes + sizes_.box_at[level + 1], first_ids + sizes_.first_at[level]);
      check_launch("join boxes");
    }
    TreeView& view = tree_->view;
    view.levels = levels;
    view.rows = table_.n;
    view.d = d;
    view.narrow = is_narrow(table_.dtype);
    view.points = points;
    view.order = tree_->order.data();
    for (int level = 0; level <= levels.height; ++level) {
      view.first_ids[level] = first_ids + sizes_.first_at[level];
      view.boxes[level + 1] = boxes + sizes_.box_at[level + 1];
    }
  }

  const Engine& engine_;
  const Rows& table_;
  Sizes sizes_;
  std::unique_ptr<DeviceTree> tree_;
};

}  // namespace

TreeLevels::TreeLevels(std::int64_t rows) {
  units[0] = (rows + kTreeWidth - 1) / kTreeWidth;
  do {
    ++height;
    units[height] = (units[height - 1] + kTreeWidth - 1) / kTreeWidth;
  } while (units[height] > 1);
  units[height + 1] = 1;
}

std::uint64_t tree_bytes(std::int64_t rows, std::int64_t d, DType dtype) {
  const Sizes sizes(rows, d, dtype);
  return static_cast<std::uint64_t>(sizes.points + sizes.boxes) * static_cast<std::uint64_t>(sizes.value) +
         static_cast<std::uint64_t>(sizes.firsts + rows) * sizeof(std::uint32_t);
}

std::uint64_t tree_build_bytes(std::int64_t rows) {
  const std::uint64_t parts = static_cast<std::uint64_t>(rows) / (2 * kTreeWidth) + 1;
  return KeyedValues::bytes(rows) + parts * sizeof(Split);
}

DeviceTree* build_tree(Session& session, const Host& host, const Resident& table) {
  const Rows& rows = table.rows;
  if (rows.n > kMaxTreeRows || rows.d > kMaxTreeColumns) {
    throw Failure{ErrorCode::internal, "a tree of too many rows or columns"};
  }
  const std::uint64_t stays = tree_bytes(rows.n, rows.d, rows.dtype);
  const std::uint64_t left = left_of_limit(session);
  const std::uint64_t needed = stays + tree_build_bytes(rows.n);
  if (needed > left || !has_room(session, stays)) refuse_memory(needed, left);
  Engine engine = session.engine;
  engine.host = host;
  std::unique_ptr<DeviceTree> tree = Builder(engine, rows).build();
  tree->session = &session;
  tree->bytes = stays;
  session.resident_bytes += stays;
  return tree.release();
}

void fetch_order(const DeviceTree& tree, std::int64_t* ids) {
  const std::int64_t n = tree.view.rows;
  const Engine& engine = tree.session->engine;
  std::vector<std::uint32_t> part(static_cast<std::size_t>(std::min(n, kFetched)));
  for (std::int64_t begin = 0; begin < n; begin += kFetched) {
    const auto count = static_cast<std::size_t>(std::min(kFetched, n - begin));
    check(cudaMemcpyAsync(part.data(), tree.view.order + begin, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost,
                          engine.stream),
          "fetch a tree");
    engine.synchronize();
    std::copy_n(part.begin(), count, ids + begin);
  }
}

bool has_room_for_tree(const Session& session, const plugin::Search& search) {
  if (search.tree != nullptr) return true;
  if (search.resident == nullptr && search.stays == 0) return false;
  const plugin::Table& table = search.table;
  const std::uint64_t comes = search.resident == nullptr ? copy_bytes(table) : 0;
  const std::uint64_t stays = tree_bytes(table.rows, table.cols, static_cast<DType>(table.dtype));
  const std::uint64_t held = session.resident_bytes + comes + stays;
  return held <= session.engine.memory_limit / 2 && held + tree_build_bytes(table.rows) <= session.engine.memory_limit;
}

}  // namespace vicinal::cuda
