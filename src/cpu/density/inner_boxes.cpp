#include "cpu/density/inner_boxes.hpp"

#include <algorithm>
#include <bit>

#include "cpu/nearest/tree/walk.hpp"

namespace vicinal::cpu {

GrowingBox::GrowingBox(std::int64_t d)
    : low(static_cast<std::size_t>(d)), high(static_cast<std::size_t>(d)), x(static_cast<std::size_t>(2 * d)) {}

void GrowingBox::clear() {
  std::fill(low.begin(), low.end(), kInfinity);
  std::fill(high.begin(), high.end(), -kInfinity);
}

void GrowingBox::add(const double* from, const double* to) {
  for (std::size_t j = 0; j < low.size(); ++j) {
    low[j] = std::min(low[j], from[j]);
    high[j] = std::max(high[j], to[j]);
  }
}

InnerBoxes::InnerBoxes(const Context& ctx, const Growth& growth, const Tree& tree, const TreeKeys& keys,
                       std::span<const Below> parts)
    : ctx_(ctx), growth_(growth), tree_(tree), keys_(keys), parts_(parts) {}

bool InnerBoxes::serve(const kernels::SpanningTask& task) {
  constexpr std::int64_t kMinColumns = 8;
  constexpr std::int64_t kMaxColumns = 32;
  const std::int64_t cols = task.search.queries.cols();
  return task.rank > 0 && cols >= kMinColumns && cols <= kMaxColumns;
}

std::uint64_t InnerBoxes::bytes(const kernels::SpanningTask& task, std::uint64_t threads) {
  if (!serve(task)) return 0;
  const TableView& table = task.search.queries;
  const auto d = static_cast<std::uint64_t>(table.cols());
  return child_count_bound(static_cast<std::uint64_t>(table.rows())) *
             (2 * d * Tree::element_bytes(table.dtype()) + 1) +
         threads * 4 * d * sizeof(double);
}

void InnerBoxes::leave_out(double most) {
  most_ = most;
  if (!(most < kInfinity)) return;
  if (boxes_.data() == nullptr) {
    for (int worker = 0; worker < ctx_.threads(); ++worker) scratch_.emplace_back(tree_.cols());
    boxes_.reserve(tree_.nodes() * node_bytes());
    empty_.resize(static_cast<std::size_t>(1 + tree_.nodes() * kTreeWidth));
    for_each_row(ctx_, tree_.nodes(), [&](std::int64_t node) {  // lanes without a child are read, too
      std::fill_n(boxes_.data() + node * node_bytes(), node_bytes(), std::byte{0});
    });
  }
  from_the_parts(ctx_, tree_, parts_,
                 [&](const Below& below, int worker) { shrink(below, scratch_[static_cast<std::size_t>(worker)]); });
}

/// Of a child, after all below it.
void InnerBoxes::shrink(const Below& below, GrowingBox& box) {
  const bool is_leaf = tree_.child(below.child).size > 0;
  ctx_.check_cancelled();
  box.clear();
  const bool any = is_leaf ? add_points(below, box) : add_children(below.child, box);
  empty_[static_cast<std::size_t>(below.child)] = any ? 0 : 1;
  if (below.child == 0) return;  // the root is in no node
  const std::int64_t node = (below.child - 1) / kTreeWidth;
  const std::int64_t lane = (below.child - 1) % kTreeWidth;
  if (!any) keys_.box(tree_.boxes(node), lane, box.low.data(), box.high.data());
  keys_.put_box(boxes_.data() + node * node_bytes(), lane, box.low.data(), box.high.data());
}

/// Returns whether there is any.
bool InnerBoxes::add_points(const Below& leaf, GrowingBox& box) const {
  const Tree::Child& child = tree_.child(leaf.child);
  bool any = false;
  for (std::int64_t point = 0; point < child.size; ++point) {
    if (point % 4096 == 4095) ctx_.check_cancelled();
    if (is_left_out(leaf.first_group + point)) continue;
    keys_.point(tree_.points(child.at), point, box.x.data());
    box.add(box.x.data(), box.x.data());
    any = true;
  }
  return any;
}

bool InnerBoxes::add_children(std::int64_t child, GrowingBox& box) const {
  const std::int64_t node = tree_.child(child).at;
  bool any = false;
  for (std::uint32_t lanes = tree_.lanes(node); lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    if (empty_[static_cast<std::size_t>(Tree::child_of(node, lane))] != 0) continue;
    double* const low = box.x.data();
    double* const high = low + box.low.size();
    keys_.box(boxes_.data() + node * node_bytes(), lane, low, high);
    box.add(low, high);
    any = true;
  }
  return any;
}

}  // namespace vicinal::cpu
