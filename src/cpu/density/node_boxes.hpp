// Boxes around some of the rows below each child of a kd-tree, in the layout of the tree's own boxes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/aligned.hpp"
#include "core/infinity.hpp"
#include "cpu/density/components.hpp"
#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "cpu/nearest/tree/walk.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// A box that grows.
struct GrowingBox {
  explicit GrowingBox(std::int64_t d)
      : low(static_cast<std::size_t>(d)), high(static_cast<std::size_t>(d)), x(static_cast<std::size_t>(2 * d)) {}
  static std::uint64_t bytes(std::int64_t d) { return 4 * static_cast<std::uint64_t>(d) * sizeof(double); }
  void clear() {
    std::fill(low.begin(), low.end(), kInfinity);
    std::fill(high.begin(), high.end(), -kInfinity);
  }
  void add(const double* from, const double* to) {
    for (std::size_t j = 0; j < low.size(); ++j) {
      low[j] = std::min(low[j], from[j]);
      high[j] = std::max(high[j], to[j]);
    }
  }

  std::vector<double> low;   // [d]
  std::vector<double> high;  // [d]
  std::vector<double> x;     // [2 d] of what is added
};

class NodeBoxes {
 public:
  static constexpr std::int64_t kMaxColumns = 32;  // in more columns boxes take more memory than they save time

  /// Borrows both. Holds no boxes before `allocate`.
  NodeBoxes(const Tree& tree, const TreeKeys& keys) : tree_(tree), keys_(keys) {}
  static std::uint64_t bytes(const TableView& table) {
    const std::uint64_t box = 2 * static_cast<std::uint64_t>(table.cols()) * Tree::element_bytes(table.dtype());
    return child_count_bound(static_cast<std::uint64_t>(table.rows())) * box;
  }
  /// All values are 0, also those of lanes without a child, which are read, too.
  void allocate(const Context& ctx) {
    boxes_.reserve(tree_.nodes() * node_bytes());
    for_each_row(ctx, tree_.nodes(), [&](std::int64_t node) {
      std::fill_n(boxes_.data() + node * node_bytes(), node_bytes(), std::byte{});
    });
  }

  [[nodiscard]] bool empty() const { return boxes_.data() == nullptr; }
  /// [d][lo, hi][8]
  [[nodiscard]] const std::byte* of(std::int64_t node) const { return boxes_.data() + node * node_bytes(); }
  /// Of the root, which is in no node, nothing is kept.
  void put(std::int64_t child, const GrowingBox& box) {
    if (child == 0) return;
    const std::int64_t node = (child - 1) / kTreeWidth;
    keys_.put_box(boxes_.data() + node * node_bytes(), (child - 1) % kTreeWidth, box.low.data(), box.high.data());
  }

 private:
  [[nodiscard]] std::int64_t node_bytes() const { return 2 * kTreeWidth * tree_.point_bytes(); }

  const Tree& tree_;
  const TreeKeys& keys_;
  core::AlignedArray<std::byte> boxes_;  // [nodes][d][lo, hi][8]
};

}  // namespace vicinal::cpu
