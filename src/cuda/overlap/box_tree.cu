// See overlap.hpp: a tree of boxes 32 wide, built from the leaves up, and searched by a warp a query: 32 boxes are
// asked at once. Cost: three sorts of 64-bit keys; a query reads half a kilobyte a node.
#include <algorithm>
#include <bit>

#include "core/infinity.hpp"
#include "cuda/base/order.hpp"
#include "cuda/overlap/overlap.hpp"

namespace vicinal::cuda::overlap {
namespace {

constexpr int kWidth = 32;  // a warp
constexpr unsigned kAllLanes = 0xffffffffU;

/// Orders as the float64 does, negative ones first.
__device__ unsigned long long ordered(double v) {
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(v));
  return bits >> 63 != 0 ? ~bits : bits | 1ULL << 63;
}

__global__ void key_kernel(const geo::Box* boxes, std::int64_t count, bool by_x, unsigned long long* keys,
                           std::uint32_t* ids) {
  const std::int64_t i = own_number();
  if (i >= count) return;
  const geo::Box box = boxes[i];
  keys[i] = ordered(by_x ? box.x0 + box.x1 : box.y0 + box.y1);
  ids[i] = static_cast<std::uint32_t>(i);
}

__global__ void rank_kernel(const std::uint32_t* ids, std::int64_t count, std::uint32_t* ranks) {
  const std::int64_t i = own_number();
  if (i < count) ranks[ids[i]] = static_cast<std::uint32_t>(i);
}

/// Every other bit.
__device__ unsigned long long spread(unsigned long long v) {
  v = (v | v << 16) & 0x0000ffff0000ffffULL;
  v = (v | v << 8) & 0x00ff00ff00ff00ffULL;
  v = (v | v << 4) & 0x0f0f0f0f0f0f0f0fULL;
  v = (v | v << 2) & 0x3333333333333333ULL;
  return (v | v << 1) & 0x5555555555555555ULL;
}

__global__ void curve_kernel(const std::uint32_t* x_ranks, const std::uint32_t* y_ranks, std::int64_t count,
                             unsigned long long* keys, std::uint32_t* ids) {
  const std::int64_t i = own_number();
  if (i >= count) return;
  keys[i] = spread(x_ranks[i]) | spread(y_ranks[i]) << 1;
  ids[i] = static_cast<std::uint32_t>(i);
}

/// Meets whatever the box meets.
__device__ float4 widened(const geo::Box& box) {
  return {__double2float_rd(box.x0), __double2float_rd(box.y0), __double2float_ru(box.x1), __double2float_ru(box.y1)};
}

__device__ bool may_meet(const float4& a, const float4& b) {
  return a.x <= b.z && b.x <= a.z && a.y <= b.w && b.y <= a.w;
}

__global__ void gather_kernel(const geo::Box* boxes, const std::uint32_t* order, std::int64_t count,
                              geo::Box* ordered_boxes, float4* leaves) {
  const std::int64_t i = own_number();
  if (i >= count) return;
  const geo::Box box = boxes[order[i]];
  ordered_boxes[i] = box;
  leaves[i] = widened(box);
}

__global__ void node_kernel(const float4* below, std::int64_t count, float4* nodes) {
  const std::int64_t first = own_number() * kWidth;
  if (first >= count) return;
  float4 node = below[first];
  for (std::int64_t i = first + 1; i < std::min(count, first + kWidth); ++i) {
    const float4 box = below[i];
    node = {fminf(node.x, box.x), fminf(node.y, box.y), fmaxf(node.z, box.z), fmaxf(node.w, box.w)};
  }
  nodes[first / kWidth] = node;
}

/// Calls visit(met, place) on all lanes of a warp for each leaf of the tree: whether the box at the lane's place meets.
/// Lane l keeps which children of level l are yet to be looked at.
template <class Visit>
__device__ void search(const BoxTreeView& tree, const geo::Box& box, int lane, const Visit& visit) {
  if (tree.levels == 0) return;
  const float4 wide = widened(box);
  unsigned pending = 0;
  std::int64_t pending_first = 0;
  int level = tree.levels - 1;
  std::int64_t first = 0;
  while (true) {
    const std::int64_t place = first + lane;
    const bool met = place < tree.counts[level] && may_meet(__ldg(tree.nodes[level] + place), wide);
    if (level == 0) {
      visit(met && meet(tree.boxes[place], box), place);
    } else {
      const unsigned children = __ballot_sync(kAllLanes, met);
      if (lane == level) {
        pending = children;
        pending_first = first;
      }
      --level;
    }
    unsigned children = 0;
    while (++level < tree.levels && (children = __shfl_sync(kAllLanes, pending, level)) == 0) {
    }
    if (level >= tree.levels) return;
    const int child = __ffs(static_cast<int>(children)) - 1;
    if (lane == level) pending &= pending - 1;
    first = (__shfl_sync(kAllLanes, pending_first, level) + child) * kWidth;
    --level;
  }
}

__global__ void count_kernel(BoxTreeView tree, LayerView layer, std::int64_t begin, std::int64_t end,
                             std::int64_t* counts) {
  const std::int64_t i = begin + own_number() / kWidth;
  if (i >= end) return;
  const int lane = static_cast<int>(threadIdx.x) % kWidth;
  std::int64_t count = 0;
  search(tree, layer.boxes[i], lane,
         [&](bool met, std::int64_t /*place*/) { count += __popc(__ballot_sync(kAllLanes, met)); });
  if (lane == 0) counts[i + 1] = count;
}

__global__ void list_kernel(BoxTreeView tree, LayerView layer, std::int64_t first, std::int64_t begin, std::int64_t end,
                            const std::int64_t* sums, int bits, unsigned long long* keys) {
  const std::int64_t i = begin + own_number() / kWidth;
  if (i >= end) return;
  const int lane = static_cast<int>(threadIdx.x) % kWidth;
  std::int64_t at = sums[i] - sums[first];
  search(tree, layer.boxes[i], lane, [&](bool met, std::int64_t place) {
    const unsigned all = __ballot_sync(kAllLanes, met);
    if (met) {
      keys[at + __popc(all & ((1U << lane) - 1))] =
          static_cast<unsigned long long>(i - first) << bits | tree.order[place];
    }
    at += __popc(all);
  });
}

}  // namespace

DeviceBoxTree::DeviceBoxTree(const Engine& engine, const LayerView& layer) {
  const std::int64_t n = layer.features;
  if (n == 0) return;
  const unsigned blocks = blocks_for(n, kThreads);
  order_ = Buffer<std::uint32_t>(engine, n);
  {
    KeyedValues sorted(engine, n);
    const Buffer<std::uint32_t> ranks[2] = {{engine, n}, {engine, n}};
    for (const bool by_x : {true, false}) {
      key_kernel<<<blocks, kThreads, 0, engine.stream>>>(layer.boxes, n, by_x, sorted.keys[0].data(),
                                                         sorted.values[0].data());
      check_launch("places of boxes");
      sort_by_key(engine, sorted, n, 64);
      rank_kernel<<<blocks, kThreads, 0, engine.stream>>>(sorted.values[0].data(), n, ranks[by_x ? 0 : 1].data());
      check_launch("ranks of boxes");
    }
    curve_kernel<<<blocks, kThreads, 0, engine.stream>>>(ranks[0].data(), ranks[1].data(), n, sorted.keys[0].data(),
                                                         sorted.values[0].data());
    check_launch("a curve through boxes");
    sort_by_key(engine, sorted, n, 2 * std::bit_width(static_cast<std::uint64_t>(n)));
    check(cudaMemcpyAsync(order_.data(), sorted.values[0].data(), order_.bytes(), cudaMemcpyDeviceToDevice,
                          engine.stream),
          "keep the order of boxes");
  }
  std::int64_t total = 0;
  for (std::int64_t count = n;; count = (count + kWidth - 1) / kWidth) {
    view_.counts[view_.levels++] = count;
    total += count;
    if (count <= kWidth) break;
  }
  boxes_ = Buffer<geo::Box>(engine, n);
  nodes_ = Buffer<float4>(engine, total);
  float4* at = nodes_.data();
  gather_kernel<<<blocks, kThreads, 0, engine.stream>>>(layer.boxes, order_.data(), n, boxes_.data(), at);
  check_launch("gather boxes");
  for (int level = 0; level < view_.levels; ++level) {
    view_.nodes[level] = at;
    at += view_.counts[level];
    if (level + 1 == view_.levels) break;
    node_kernel<<<blocks_for(view_.counts[level + 1], kThreads), kThreads, 0, engine.stream>>>(view_.nodes[level],
                                                                                               view_.counts[level], at);
    check_launch("nodes of boxes");
  }
  view_.boxes = boxes_.data();
  view_.order = order_.data();
}

std::uint64_t DeviceBoxTree::bytes(std::int64_t n) {
  const auto count = static_cast<std::uint64_t>(n);
  return count * (sizeof(geo::Box) + 3 * sizeof(std::uint32_t)) + (count + count / 31 + kTreeLevels) * sizeof(float4) +
         KeyedValues::bytes(n);
}

void sum_candidates(const Engine& engine, const Host& host, const BoxTreeView& tree, const LayerView& layer,
                    std::int64_t* sums) {
  check(cudaMemsetAsync(sums, 0, sizeof *sums, engine.stream), "clear device memory");
  in_slices(engine, host, layer.features, [&](std::int64_t begin, std::int64_t end) {
    count_kernel<<<blocks_for((end - begin) * kWidth, kThreads), kThreads, 0, engine.stream>>>(tree, layer, begin, end,
                                                                                               sums);
    check_launch("count boxes that meet");
  });
  running_sum(engine, sums + 1, layer.features);
}

void list_candidates(const Engine& engine, const Host& host, const BoxTreeView& tree, const LayerView& layer,
                     const FeatureRange& range, const std::int64_t* sums, int bits,
                     Buffer<unsigned long long> (&keys)[2], std::int64_t count) {
  in_slices(engine, host, range.size(), [&](std::int64_t begin, std::int64_t end) {
    list_kernel<<<blocks_for((end - begin) * kWidth, kThreads), kThreads, 0, engine.stream>>>(
        tree, layer, range.first, range.first + begin, range.first + end, sums, bits, keys[0].data());
    check_launch("list boxes that meet");
  });
  sort_keys(engine, keys, count, bits + std::bit_width(static_cast<std::uint64_t>(range.size())));
}

}  // namespace vicinal::cuda::overlap
