// The keys of boxes and points of a kd-tree for one metric: vectors, or for minkowski core/distance.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backend/nearest.hpp"
#include "core/distance.hpp"
#include "core/infinity.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "simd/tree_kernels.hpp"

namespace vicinal::cpu {

/// The operation of a metric that a tree serves.
inline KeyOp tree_op(Metric metric) {
  if (metric == Metric::manhattan || metric == Metric::minkowski) return KeyOp::absolutes;
  return metric == Metric::chebyshev ? KeyOp::maximum : KeyOp::squares;
}

class TreeKeys {
 public:
  TreeKeys(const Context& ctx, const kernels::NearestTask& task, const Tree& tree)
      : ctx_(ctx),
        d_(tree.cols()),
        p_(task.p),
        powers_(task.metric == Metric::minkowski),
        op_(tree_op(task.metric)),
        element_(tree.element()),
        boxes_(tree_kernels(ctx.isa()).boxes[static_cast<int>(op_)][static_cast<int>(element_)]),
        ranges_(tree_kernels(ctx.isa()).ranges[static_cast<int>(op_)][static_cast<int>(element_)]),
        points_(tree_kernels(ctx.isa()).points[static_cast<int>(op_)][static_cast<int>(element_)]),
        insert_(tree_kernels(ctx.isa()).insert) {}

  /// Of entries of a list.
  [[nodiscard]] InsertFn insert() const { return insert_; }

  /// A bit for each of the boxes [d][lo, hi][8] whose key is not above `limit`, and the keys.
  std::uint32_t boxes(const double* x, const void* boxes, double limit, double* keys) const {
    return boxes_of_box(x, x, boxes, limit, keys);
  }
  /// The same for the box from `low` to `high`: keys are not above those of any two points in the two boxes.
  std::uint32_t boxes_of_box(const double* low, const double* high, const void* boxes, double limit,
                             double* keys) const {
    if (!powers_) return boxes_(low, high, boxes, d_, limit, keys);
    std::vector<double> gap(static_cast<std::size_t>(d_));
    const std::vector<double> zero(static_cast<std::size_t>(d_), 0.0);
    std::uint32_t near = 0;
    for (std::int64_t c = 0; c < kTreeWidth; ++c) {
      ctx_.check_cancelled();  // as points() does
      for (std::int64_t j = 0; j < d_; ++j) {
        const double box_low = value(boxes, j * 2 * kTreeWidth + c);
        const double box_high = value(boxes, j * 2 * kTreeWidth + kTreeWidth + c);
        gap[j] = std::max({box_low - high[j], low[j] - box_high, 0.0});
      }
      keys[c] = core::minkowski_key(gap.data(), zero.data(), d_, p_);
      near |= static_cast<std::uint32_t>(!(keys[c] > limit)) << c;  // the power of an infinite gap may be no number
    }
    return near;
  }

  /// The same, and in `inside` a bit for each box whose farthest key is not above `limit`: nor is that of any point in
  /// it. For searches in which no key overflows.
  std::uint32_t boxes(const double* x, const void* boxes, double limit, double* keys, std::uint32_t& inside) const {
    if (!powers_) return ranges_(x, boxes, d_, limit, keys, &inside);
    const std::uint32_t near = this->boxes(x, boxes, limit, keys);
    inside = 0;
    for (std::uint32_t left = near; left != 0; left &= left - 1) {
      ctx_.check_cancelled();  // powers once more
      const int lane = std::countr_zero(left);
      const double farthest = farthest_key(
          x, [&](std::int64_t j) { return value(boxes, j * 2 * kTreeWidth + lane); },
          [&](std::int64_t j) { return value(boxes, j * 2 * kTreeWidth + kTreeWidth + lane); });
      inside |= static_cast<std::uint32_t>(farthest <= limit) << lane;
    }
    return near;
  }
  /// A key that no point between `low` and `high` exceeds, by the upper bound of tree.hpp.
  [[nodiscard]] double farthest(const double* x, const double* low, const double* high) const {
    return farthest_key(
        x, [&](std::int64_t j) { return low[j]; }, [&](std::int64_t j) { return high[j]; });
  }

  std::int64_t points(const double* x, const void* points, std::int64_t count, double limit, double* keys,
                      std::int32_t* at) const {
    if (!powers_) return points_(x, points, count, d_, limit, keys, at);
    std::vector<double> y(static_cast<std::size_t>(d_));
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      ctx_.check_cancelled();  // a power costs a hundred products
      for (std::int64_t j = 0; j < d_; ++j) {
        y[j] = value(points, (i / kTreeWidth * d_ + j) * kTreeWidth + i % kTreeWidth);
      }
      const double key = core::minkowski_key(x, y.data(), d_, p_);
      if (key > limit) continue;
      keys[found] = key;
      at[found++] = static_cast<std::int32_t>(i);
    }
    return found;
  }

  // Whether some point between `low` and `high` may have a key that is not finite: a finite farthest key says that none
  // has.
  [[nodiscard]] bool may_overflow(const double* x, const double* low, const double* high) const {
    double largest = 0;
    for (std::int64_t j = 0; j < d_; ++j) {
      const double t = std::max(high[j] - x[j], x[j] - low[j]);  // the larger of the two is the larger in magnitude
      largest = t > largest ? t : largest;
    }
    if (largest < 1e100 && !powers_) return false;  // d squares of that are far from the end
    return !(farthest(x, low, high) < kInfinity && largest < kInfinity);
  }

  /// Point i of a leaf, whose panels are `points`: x[d].
  void point(const void* points, std::int64_t i, double* x) const {
    for (std::int64_t j = 0; j < d_; ++j) {
      x[j] = value(points, (i / kTreeWidth * d_ + j) * kTreeWidth + i % kTreeWidth);
    }
  }

  /// Lane `lane` of the boxes [d][lo, hi][8]: low[d] and high[d].
  void box(const void* boxes, std::int64_t lane, double* low, double* high) const {
    for (std::int64_t j = 0; j < d_; ++j) {
      low[j] = value(boxes, j * 2 * kTreeWidth + lane);
      high[j] = value(boxes, j * 2 * kTreeWidth + kTreeWidth + lane);
    }
  }

  /// Writes lane `lane`. The values are those of points of the tree, so that the conversion is exact.
  void put_box(void* boxes, std::int64_t lane, const double* low, const double* high) const {
    for (std::int64_t j = 0; j < d_; ++j) {
      put(boxes, j * 2 * kTreeWidth + lane, low[j]);
      put(boxes, j * 2 * kTreeWidth + kTreeWidth + lane, high[j]);
    }
  }

  /// A key that no pair of points in lane `lane` of the boxes [d][lo, hi][8] exceeds: that of the box's sides, by the
  /// argument of tree.hpp (a difference of two points is at most fl(hi - lo) in every column).
  [[nodiscard]] double width(const void* boxes, std::int64_t lane) const {
    return sides_key([&](std::int64_t j) {
      return value(boxes, j * 2 * kTreeWidth + kTreeWidth + lane) - value(boxes, j * 2 * kTreeWidth + lane);
    });
  }
  /// The same of all points between `low` and `high`.
  [[nodiscard]] double width(const double* low, const double* high) const {
    return sides_key([&](std::int64_t j) { return high[j] - low[j]; });
  }

 private:
  template <class Low, class High>
  [[nodiscard]] double farthest_key(const double* x, const Low& low, const High& high) const {
    return sides_key([&](std::int64_t j) { return std::max(high(j) - x[j], x[j] - low(j)); });
  }
  template <class Side>
  [[nodiscard]] double sides_key(const Side& side) const {
    double a[core::kLanes] = {};
    double largest = 0;
    for (std::int64_t j = 0; j < d_; ++j) {
      const double t = side(j);
      double& sum = a[j % core::kLanes];
      if (op_ == KeyOp::squares) sum = std::fma(t, t, sum);
      if (op_ == KeyOp::absolutes) sum += powers_ ? core::power(t, p_) : t;
      largest = t > largest ? t : largest;
    }
    return op_ == KeyOp::maximum ? largest : core::sum_of_lanes(a);
  }
  [[nodiscard]] double value(const void* values, std::int64_t i) const {
    switch (element_) {
      case Element::uint8:
        return static_cast<const std::uint8_t*>(values)[i];
      case Element::float32:
        return static_cast<const float*>(values)[i];
      case Element::float64:
        break;
    }
    return static_cast<const double*>(values)[i];
  }
  void put(void* values, std::int64_t i, double value) const {
    switch (element_) {
      case Element::uint8:
        static_cast<std::uint8_t*>(values)[i] = static_cast<std::uint8_t>(value);
        break;
      case Element::float32:
        static_cast<float*>(values)[i] = static_cast<float>(value);
        break;
      case Element::float64:
        static_cast<double*>(values)[i] = value;
        break;
    }
  }

  const Context& ctx_;
  std::int64_t d_;
  double p_;
  bool powers_;  // of the absolute differences
  KeyOp op_;
  Element element_;
  BoxKeysFn boxes_;
  BoxRangesFn ranges_;
  PointKeysFn points_;
  InsertFn insert_;
};

}  // namespace vicinal::cpu
