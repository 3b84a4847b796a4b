// A kd-tree over the distinct rows of a table: the boxes of eight children lie side by side in each node, the points of
// a leaf column by column, so that one vector instruction works on eight boxes or eight points.
//
// THE BOUND. A box holds the smallest and largest value of its points in every column: lo_j <= y_j <= hi_j. The gap of
// a query x to it is g_j = max(fl(lo_j - x_j), fl(x_j - hi_j), 0), and the box's key is the contract's own key function
// (clause 1) of the gaps: the same operations in the same order as for a point, with g_j in place of fl(x_j - y_j).
// Claim: box key <= key(x, y) for every point y of the box, in floating point, with no allowance for rounding.
// Proof: rounding to nearest is monotone (u <= v implies fl(u) <= fl(v)) and symmetric (fl(-u) = -fl(u)).
//   1. If x_j < lo_j, then 0 < lo_j - x_j <= y_j - x_j, so fl(lo_j - x_j) <= fl(y_j - x_j) = |fl(x_j - y_j)|. The same
//      holds beyond hi_j by symmetry, and within the box g_j = 0. So g_j <= t_j := |fl(x_j - y_j)|.
//   2. Every step of a key is monotone in operands that are not negative: fma(t, t, a) rounds t * t + a once; a + t
//      rounds once; the maximum is exact; power(t, p) is within 2^-90 of exact before its one rounding, while
//      neighboring floats t < t' have (t' / t)^p >= 1 + 2^-53, so that it cannot swap them; the tree of sums is
//      additions. By induction over the steps the box's key is at most the point's.   []
// The key of two boxes is the key function of the gaps g_j = max(fl(lo_j - high_j), fl(low_j - hi_j), 0) of a box to
// another one from low_j to high_j.
// Claim: it is at most key(x, y) for every point x of the other box and y of the first.
// Proof: x_j <= high_j gives fl(lo_j - high_j) <= fl(lo_j - x_j), and low_j <= x_j the same of the other side. So it is
// at most the key of x and the first box, which is at most key(x, y).   []
// The farthest key of the box is the key function of h_j = max(fl(hi_j - x_j), fl(x_j - lo_j)).
// Claim: farthest key >= key(x, y) for every point y of the box, with no allowance for rounding either.
// Proof: lo_j <= y_j <= hi_j gives y_j - x_j <= hi_j - x_j and x_j - y_j <= x_j - lo_j, and rounding keeps that order:
// t_j <= h_j. Step 2 with h_j in place of t_j, and t_j in place of g_j, is the rest. If the farthest key overflows to
// infinity the claim still holds; searches in which a key may be no number make no use of it.   []
// So a box whose farthest key is not above the limit is counted whole: each key in it is what the contract compares.
// A box is left out only if its key is ABOVE the limit: a point in it at the limit itself may win by its smaller id.
// Nothing here depends on where the splits are: any tree of boxes that hold their points is correct, and a bad one only
// slow. So a saved tree is a permutation and a shape; the boxes are always made from the table.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/nearest.hpp"
#include "core/aligned.hpp"
#include "simd/tree_kernels.hpp"

namespace vicinal::cpu {

class Tree final : public kernels::Tree {
 public:
  /// Deepest node below the root; what is not split by then stays a leaf.
  static constexpr int kMaxDepth = 40;

  static std::shared_ptr<const Tree> build(const Context& ctx, const kernels::Prepared& index);
  /// Throws `bad_data` for a shape that is not a tree over the index's distinct rows.
  static std::shared_ptr<const Tree> restore(const Context& ctx, const kernels::Prepared& index,
                                             kernels::TreeShape shape);
  /// The most bytes that `build` and `restore` take, the tree included.
  static std::uint64_t bytes(const kernels::Prepared& index);

  [[nodiscard]] const kernels::TreeShape& shape() const noexcept { return shape_; }
  /// Borrows.
  [[nodiscard]] std::shared_ptr<const kernels::TreeShape> shape_of(const Context& /*ctx*/,
                                                                   const kernels::Prepared& /*index*/) const override {
    return {std::shared_ptr<const void>(), &shape_};
  }
  [[nodiscard]] Element element() const noexcept { return element_; }
  [[nodiscard]] std::int64_t cols() const noexcept { return d_; }

  /// What lies in a lane of a node: a leaf, or another node.
  struct Child {
    std::int64_t at;     ///< the node's number, or the leaf's first panel of eight points
    std::int64_t first;  ///< of a leaf's points in `shape().order`
    std::int64_t size;   ///< points of a leaf; 0 for a node
  };
  /// Child 0 is the root; those of node i are `child_of(i, 0)` and following.
  [[nodiscard]] const Child& child(std::int64_t i) const noexcept { return children_[static_cast<std::size_t>(i)]; }
  static std::int64_t child_of(std::int64_t node, std::int64_t lane) noexcept { return 1 + node * kTreeWidth + lane; }
  [[nodiscard]] std::int64_t nodes() const noexcept { return static_cast<std::int64_t>(lanes_.size()); }
  /// Points below child i.
  [[nodiscard]] std::int64_t points_below(std::int64_t i) const noexcept {
    const Child& one = child(i);
    return one.size > 0 ? one.size : node_points_[static_cast<std::size_t>(one.at)];
  }
  /// A bit for each lane of a node that holds a child.
  [[nodiscard]] std::uint32_t lanes(std::int64_t node) const noexcept { return lanes_[static_cast<std::size_t>(node)]; }
  /// [d][lo, hi][8] of the element type.
  [[nodiscard]] const void* boxes(std::int64_t node) const noexcept {
    return boxes_.data() + node * 2 * kTreeWidth * point_bytes();
  }
  [[nodiscard]] std::int64_t panels() const noexcept { return panels_; }
  /// [panels][d][8] of the element type.
  [[nodiscard]] const std::byte* points(std::int64_t panel) const noexcept {
    return points_.data() + panel * kTreeWidth * point_bytes();
  }
  /// Eight points take eight times as much.
  [[nodiscard]] std::int64_t point_bytes() const noexcept { return d_ * element_size_; }
  /// Bytes of an element of a tree that is built of rows of that type.
  static std::uint64_t element_bytes(DType dtype) noexcept;
  /// The box of all points: [d] smallest, [d] largest values.
  [[nodiscard]] const double* lowest() const noexcept { return bounds_.data(); }
  [[nodiscard]] const double* highest() const noexcept { return bounds_.data() + d_; }

 private:
  Tree() = default;
  template <class T>
  friend class TreeBuilder;

  kernels::TreeShape shape_;
  Element element_ = Element::float64;
  std::int64_t element_size_ = 8;
  std::int64_t d_ = 0;
  std::int64_t panels_ = 0;
  std::vector<Child> children_;            // nodes in preorder: a parent before its children
  std::vector<std::uint8_t> lanes_;        // of each node
  std::vector<std::int64_t> node_points_;  // of each node, below it
  std::vector<double> bounds_;
  core::AlignedArray<std::byte> boxes_;
  core::AlignedArray<std::byte> points_;
};

}  // namespace vicinal::cpu
