#include "cpu/density/component_boxes.hpp"

#include <algorithm>
#include <bit>

#include "cpu/nearest/tree/walk.hpp"

namespace vicinal::cpu {

ComponentBoxes::ComponentBoxes(const Context& ctx, const Growth& growth, const Tree& tree, const TreeKeys& keys,
                               const InnerBoxes& inner, std::span<const Below> parts)
    : ctx_(ctx),
      growth_(growth),
      tree_(tree),
      keys_(keys),
      inner_(inner),
      parts_(parts),
      keeps_all_(!InnerBoxes::serve(growth.task)),
      rows_(static_cast<std::size_t>(1 + tree.nodes() * kTreeWidth)),
      others_(tree, keys) {
  for (int worker = 0; worker < ctx.threads(); ++worker) scratch_.emplace_back(tree.cols());
  if (tree.cols() <= NodeBoxes::kMaxColumns) others_.allocate(ctx);
}

std::uint64_t ComponentBoxes::bytes(const TableView& table, std::uint64_t threads) {
  return child_count_bound(static_cast<std::uint64_t>(table.rows())) * sizeof(Rows) +
         (table.cols() <= NodeBoxes::kMaxColumns ? NodeBoxes::bytes(table) : 0) +
         threads * GrowingBox::bytes(table.cols());
}

void ComponentBoxes::update() {
  from_the_parts(ctx_, tree_, parts_, [&](const Below& below, int worker) {
    GrowingBox& others = scratch_[static_cast<std::size_t>(worker)];
    if (tree_.child(below.child).size > 0) return update_leaf(below, others);
    ctx_.check_cancelled();
    update_node(below.child, others);
  });
}

void ComponentBoxes::update_leaf(const Below& below, GrowingBox& others) {
  const Tree::Child& leaf = tree_.child(below.child);
  Rows& rows = rows_[static_cast<std::size_t>(below.child)];
  const auto label_of = [&](std::int64_t point) { return growth_.group_label(below.first_group + point); };
  if (keeps_all_ && rows.label >= 0) {  // one component, which these rows stay
    rows.label = rows.main = label_of(0);
    return;
  }
  // The component of more than half of the points, if there is one, is what remains when different ones cancel out.
  rows.label = rows.main = kNoRows;
  rows.core = kInfinity;
  std::int64_t lead = 0;
  for (std::int64_t point = 0; point < leaf.size; ++point) {
    if (point % 4096 == 4095) ctx_.check_cancelled();
    if (inner_.is_left_out(below.first_group + point)) continue;
    const std::int64_t label = label_of(point);
    if (rows.label == kNoRows) rows.label = label;
    if (label != rows.label) rows.label = -1;
    if (lead == 0) rows.main = label;
    lead += label == rows.main ? 1 : -1;
    rows.core = std::min(rows.core, inner_.core(below.first_group + point));
  }
  if (rows.label != -1) return;
  if (lead == 0) rows.main = -1;
  if (rows.main < 0) return;
  others.clear();
  rows.core_of_others = kInfinity;
  for (std::int64_t point = 0; point < leaf.size; ++point) {
    if (point % 4096 == 4095) ctx_.check_cancelled();
    if (label_of(point) == rows.main || inner_.is_left_out(below.first_group + point)) continue;
    if (!others_.empty()) {
      keys_.point(tree_.points(leaf.at), point, others.x.data());
      others.add(others.x.data(), others.x.data());
    }
    rows.core_of_others = std::min(rows.core_of_others, inner_.core(below.first_group + point));
  }
  if (!others_.empty()) others_.put(below.child, others);
}

void ComponentBoxes::update_node(std::int64_t at, GrowingBox& others) {
  const std::int64_t node = tree_.child(at).at;
  Rows& rows = rows_[static_cast<std::size_t>(at)];
  rows.label = rows.main = kNoRows;
  rows.core = kInfinity;
  std::int64_t lead = 0;
  for (std::uint32_t lanes = tree_.lanes(node); lanes != 0; lanes &= lanes - 1) {
    const std::int64_t child = Tree::child_of(node, std::countr_zero(lanes));
    if (of(child).label == kNoRows) continue;
    const std::int64_t points = tree_.points_below(child);
    if (rows.label == kNoRows) rows.label = rows.main = of(child).main;
    if (of(child).label != rows.label) rows.label = -1;
    rows.core = std::min(rows.core, of(child).core);
    if (of(child).main == rows.main) {
      lead += points;
    } else if ((lead -= points) < 0) {
      rows.main = of(child).main;
      lead = -lead;
    }
  }
  if (rows.label != -1 || rows.main < 0) return;
  others.clear();
  rows.core_of_others = kInfinity;
  const std::size_t d = others.low.size();
  double* const low = others.x.data();
  for (std::uint32_t lanes = tree_.lanes(node); lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const Rows& child = of(Tree::child_of(node, lane));
    if (child.label == rows.main || child.label == kNoRows) continue;
    const bool in_part = child.main == rows.main;
    if (!others_.empty()) {
      keys_.box(in_part ? others_.of(node) : inner_.boxes(node), lane, low, low + d);
      others.add(low, low + d);
    }
    rows.core_of_others = std::min(rows.core_of_others, in_part ? child.core_of_others : child.core);
  }
  if (!others_.empty()) others_.put(at, others);
}

std::uint32_t ComponentBoxes::useful(std::int64_t node, const double* low, const double* high, std::int64_t label,
                                     double core, double limit, double* keys) const {
  std::uint32_t near = keys_.boxes_of_box(low, high, inner_.boxes(node), limit, keys) & tree_.lanes(node);
  std::uint32_t mixed = 0;
  for (std::uint32_t left = near; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::int64_t child = Tree::child_of(node, lane);
    if (!may_have(child, label, core, keys[lane])) {
      near ^= std::uint32_t{1} << lane;
    } else if (!others_.empty() && of(child).main == label) {
      mixed |= std::uint32_t{1} << lane;
    }
  }
  if (mixed == 0) return near;
  alignas(64) double keys_of_others[kTreeWidth];
  near &= ~mixed | keys_.boxes_of_box(low, high, others_.of(node), limit, keys_of_others);
  for (mixed &= near; mixed != 0; mixed &= mixed - 1) {
    const int lane = std::countr_zero(mixed);
    keys[lane] = keys_of_others[lane];
    if (!may_have(Tree::child_of(node, lane), label, core, keys[lane])) near ^= std::uint32_t{1} << lane;
  }
  return near;
}

}  // namespace vicinal::cpu
