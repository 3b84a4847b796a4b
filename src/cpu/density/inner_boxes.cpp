#include "cpu/density/inner_boxes.hpp"

#include <algorithm>
#include <bit>

#include "cpu/nearest/tree/walk.hpp"

namespace vicinal::cpu {

InnerBoxes::InnerBoxes(const Context& ctx, const Growth& growth, const Tree& tree, const TreeKeys& keys,
                       std::span<const Below> parts)
    : ctx_(ctx), growth_(growth), tree_(tree), keys_(keys), parts_(parts), boxes_(tree, keys) {}

bool InnerBoxes::serve(const kernels::SpanningTask& task) {
  constexpr std::int64_t kMinColumns = 8;
  const std::int64_t cols = task.search.queries.cols();
  return task.rank > 0 && cols >= kMinColumns && cols <= NodeBoxes::kMaxColumns;
}

std::uint64_t InnerBoxes::bytes(const kernels::SpanningTask& task, std::uint64_t threads) {
  if (!serve(task)) return 0;
  const TableView& table = task.search.queries;
  return NodeBoxes::bytes(table) + child_count_bound(static_cast<std::uint64_t>(table.rows())) +
         threads * GrowingBox::bytes(table.cols());
}

void InnerBoxes::leave_out(double max_core) {
  max_core_ = max_core;
  if (!(max_core < kInfinity)) return;
  if (boxes_.empty()) {
    for (int worker = 0; worker < ctx_.threads(); ++worker) scratch_.emplace_back(tree_.cols());
    empty_.resize(static_cast<std::size_t>(1 + tree_.nodes() * kTreeWidth));
    boxes_.allocate(ctx_);
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
  if (!any) {
    const std::int64_t node = (below.child - 1) / kTreeWidth;
    keys_.box(tree_.boxes(node), (below.child - 1) % kTreeWidth, box.low.data(), box.high.data());
  }
  boxes_.put(below.child, box);
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
    keys_.box(boxes_.of(node), lane, low, high);
    box.add(low, high);
    any = true;
  }
  return any;
}

}  // namespace vicinal::cpu
