// Boxes of a kd-tree without its outliers. An edge is at least as heavy as the core keys of its rows, so a row whose
// core key is above the limits of all components that are searched for has no edge of use. Outliers between clusters
// make the boxes of most leaves much larger than those of the other rows, and those boxes keep clusters apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "cpu/density/other_rows.hpp"
#include "cpu/density/tree_parts.hpp"
#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/tree.hpp"

namespace vicinal::cpu {

/// A box that grows.
struct GrowingBox {
  explicit GrowingBox(std::int64_t d);
  void clear();
  void add(const double* from, const double* to);

  std::vector<double> low;   // [d]
  std::vector<double> high;  // [d]
  std::vector<double> x;     // [2 d] of what is added
};

class InnerBoxes {
 public:
  /// Whether rows can be left out: in few columns boxes are small, in many they keep nothing apart.
  static bool serve(const kernels::SpanningTask& task);
  /// Borrows all; `parts` are those of the tree. No row is left out.
  InnerBoxes(const Context& ctx, const Growth& growth, const Tree& tree, const TreeKeys& keys,
             std::span<const Below> parts);
  static std::uint64_t bytes(const kernels::SpanningTask& task, std::uint64_t threads);

  /// Leaves out the rows with core keys above `most`, and no others. O(n d), on all threads; for infinity O(1). A
  /// component whose limit is not above `most` has an edge of that key, and neither row of this edge is left out: so
  /// rows of several components are left while one is searched for.
  void leave_out(double most);

  [[nodiscard]] bool is_left_out(std::int64_t group) const { return most_ < kInfinity && core(group) > most_; }
  /// The core key of a group of equal rows.
  [[nodiscard]] double core(std::int64_t group) const { return growth_.core(growth_.places.members(group).front()); }
  /// [d][lo, hi][8], of the rows that are not left out. A child that has none has its box in the tree.
  [[nodiscard]] const void* boxes(std::int64_t node) const {
    return most_ < kInfinity ? boxes_.data() + node * node_bytes() : tree_.boxes(node);
  }
  /// low[d] and high[d] of a child, not the root.
  void box(std::int64_t child, double* low, double* high) const {
    keys_.box(boxes((child - 1) / kTreeWidth), (child - 1) % kTreeWidth, low, high);
  }

 private:
  [[nodiscard]] std::int64_t node_bytes() const { return 2 * kTreeWidth * tree_.point_bytes(); }
  void shrink(const Below& below, GrowingBox& box);
  bool add_points(const Below& leaf, GrowingBox& box) const;
  bool add_children(std::int64_t child, GrowingBox& box) const;

  const Context& ctx_;
  const Growth& growth_;
  const Tree& tree_;
  const TreeKeys& keys_;
  std::span<const Below> parts_;
  double most_ = kInfinity;
  std::vector<GrowingBox> scratch_;      // of each thread; empty as long as `boxes_`
  core::AlignedArray<std::byte> boxes_;  // [nodes][d][lo, hi][8], or empty: none was left out so far
  core::RawVector<std::uint8_t> empty_;  // [children] whether all rows below are left out
};

}  // namespace vicinal::cpu
