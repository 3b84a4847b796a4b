// Boxes of a kd-tree without its outliers. An edge is at least as heavy as the core keys of its rows, so a row whose
// core key is above the limits of all components that are searched for has no edge of use. Outliers between clusters
// make the boxes of most leaves much larger than those of the other rows, and those boxes keep clusters apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/raw_vector.hpp"
#include "cpu/density/node_boxes.hpp"
#include "cpu/density/other_rows.hpp"
#include "cpu/density/tree_parts.hpp"
#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/tree.hpp"

namespace vicinal::cpu {

class InnerBoxes {
 public:
  /// Whether rows can be left out: in few columns boxes are small, in many they keep nothing apart.
  static bool serve(const kernels::SpanningTask& task);
  /// Borrows all; `parts` are those of the tree. No row is left out.
  InnerBoxes(const Context& ctx, const Growth& growth, const Tree& tree, const TreeKeys& keys,
             std::span<const Below> parts);
  static std::uint64_t bytes(const kernels::SpanningTask& task, std::uint64_t threads);

  /// Leaves out the rows with core keys above `max_core`, and no others. O(n d), on all threads; for infinity O(1). A
  /// component whose limit is not above `max_core` has an edge of that key, and neither row of this edge is left out:
  /// so rows of several components are left while one is searched for.
  void leave_out(double max_core);

  [[nodiscard]] bool is_left_out(std::int64_t group) const { return max_core_ < kInfinity && core(group) > max_core_; }
  /// The core key of a group of equal rows.
  [[nodiscard]] double core(std::int64_t group) const { return growth_.core(growth_.places.members(group).front()); }
  /// [d][lo, hi][8], of the rows that are not left out. A child that has none has its box in the tree.
  [[nodiscard]] const void* boxes(std::int64_t node) const {
    return max_core_ < kInfinity ? boxes_.of(node) : tree_.boxes(node);
  }
  /// low[d] and high[d] of a child, not the root.
  void box(std::int64_t child, double* low, double* high) const {
    keys_.box(boxes((child - 1) / kTreeWidth), (child - 1) % kTreeWidth, low, high);
  }

 private:
  void shrink(const Below& below, GrowingBox& box);
  bool add_points(const Below& leaf, GrowingBox& box) const;
  bool add_children(std::int64_t child, GrowingBox& box) const;

  const Context& ctx_;
  const Growth& growth_;
  const Tree& tree_;
  const TreeKeys& keys_;
  std::span<const Below> parts_;
  double max_core_ = kInfinity;
  NodeBoxes boxes_;                      // empty: none was left out so far
  std::vector<GrowingBox> scratch_;      // of each thread; empty as long as `boxes_`
  core::RawVector<std::uint8_t> empty_;  // [children] whether all rows below are left out
};

}  // namespace vicinal::cpu
