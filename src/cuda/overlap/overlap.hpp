// The overlap join on the device (contract clause 18): layers in device memory, a tree of boxes, pairs decided. Of one
// part of each map at a time; features and runs count from the part's first.
#pragma once

#include <algorithm>
#include <chrono>

#include "cuda/base/session.hpp"
#include "formulas/overlap/pieces.hpp"
#include "plugin/abi/overlap.hpp"

namespace vicinal::cuda::overlap {

/// Joins the maps in parts that fit, and hands over pairs. Throws `over_memory` where not even a feature of each fits.
void join_layers(Session& session, const Host& host, plugin::OverlapJoin& task);

/// Features [first, last) of a layer.
struct FeatureRange {
  std::int64_t first = 0;
  std::int64_t last = 0;

  [[nodiscard]] std::int64_t size() const { return last - first; }
};

/// As kernels see a part of a layer.
struct LayerView {
  const geo::Point* points = nullptr;  ///< such that a run's `first` counts in them
  const geo::Run* runs = nullptr;      ///< such that `first_run` counts in them
  const std::int64_t* first_run = nullptr;
  const geo::Box* boxes = nullptr;
  const double* areas = nullptr;
  std::int64_t features = 0;
  std::int64_t first = 0;  ///< the part's first feature in the whole layer

  [[nodiscard]] __device__ geo::Edges edges(std::int64_t i) const {
    return {points, runs + first_run[i], first_run[i + 1] - first_run[i]};
  }
};

/// A part of a layer in device memory.
class DeviceLayer {
 public:
  DeviceLayer(const Engine& engine, const Host& host, const plugin::PolygonLayer& layer, const FeatureRange& range);
  [[nodiscard]] const LayerView& view() const noexcept { return view_; }
  static std::uint64_t bytes(const plugin::PolygonLayer& layer, const FeatureRange& range);

 private:
  Buffer<geo::Point> points_;
  Buffer<geo::Run> runs_;
  Buffer<std::int64_t> first_run_;
  Buffer<geo::Box> boxes_;
  Buffer<double> areas_;
  LayerView view_;
};

inline constexpr int kTreeLevels = 7;  // 32^7 boxes

/// Boxes in an order that keeps near ones together, and boxes of 32 of them, and so on, as float32 rounded outwards:
/// x0, y0, x1, y1 in one load. Node i of a level holds nodes [32 i, 32 i + 32) of the one below.
struct BoxTreeView {
  const float4* nodes[kTreeLevels] = {};
  const geo::Box* boxes = nullptr;  ///< of level 0, as they are
  std::int64_t counts[kTreeLevels] = {};
  int levels = 0;
  const std::uint32_t* order = nullptr;  ///< feature at each place of level 0
};

/// Built by three sorts: order along a Morton curve of the ranks of the boxes' middles in x and in y, which neither
/// scale nor outliers can spoil.
class DeviceBoxTree {
 public:
  DeviceBoxTree(const Engine& engine, const LayerView& layer);
  [[nodiscard]] const BoxTreeView& view() const noexcept { return view_; }
  /// Of n boxes, with what building takes besides.
  static std::uint64_t bytes(std::int64_t n);

 private:
  Buffer<float4> nodes_;
  Buffer<geo::Box> boxes_;
  Buffer<std::uint32_t> order_;
  BoxTreeView view_;
};

/// Calls launch(begin, end) for slices of [0, count) that take milliseconds each, with looks at the cancel token.
template <class Launch>
void in_slices(const Engine& engine, const Host& host, std::int64_t count, const Launch& launch) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kShort = std::chrono::milliseconds(5);
  constexpr auto kLong = std::chrono::milliseconds(40);
  constexpr std::int64_t kLeast = 1 << 8;
  constexpr std::int64_t kMost = 1 << 26;
  std::int64_t slice = 1 << 16;
  for (std::int64_t begin = 0; begin < count;) {
    const std::int64_t end = std::min(count, begin + slice);
    const auto start = Clock::now();
    launch(begin, end);
    engine.synchronize();
    host.check_cancelled();
    const auto taken = Clock::now() - start;
    if (taken < kShort) slice = std::min(kMost, slice * 4);
    if (taken > kLong) slice = std::max(kLeast, slice / 4);
    begin = end;
  }
}

/// sums[i + 1]: the boxes of the tree that meet those of features up to i of `layer`; sums[0] is 0.
void sum_candidates(const Engine& engine, const Host& host, const BoxTreeView& tree, const LayerView& layer,
                    std::int64_t* sums);
/// Of features `range` of `layer`: keys a << bits | b in ascending order, a counted from the range's first; the second
/// buffer is scratch.
void list_candidates(const Engine& engine, const Host& host, const BoxTreeView& tree, const LayerView& layer,
                     const FeatureRange& range, const std::int64_t* sums, int bits,
                     Buffer<unsigned long long> (&keys)[2], std::int64_t count);

/// PairTask, and where what is decided of them goes.
struct PairTask {
  const unsigned long long* keys = nullptr;
  std::int64_t count = 0;
  int bits = 0;            ///< of b
  std::int64_t first = 0;  ///< feature of a's part that a = 0 stands for
  bool widths = false;
  Overlap* found = nullptr;
};

/// Bytes of scratch for so many candidates.
std::uint64_t decide_bytes(std::int64_t count);
void decide_pairs(const Engine& engine, const Host& host, const LayerView& a, const LayerView& b,
                  const PairTask& candidates);

}  // namespace vicinal::cuda::overlap
