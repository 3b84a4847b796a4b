// One query's way through a kd-tree, for searches that leave boxes out by more than their distance. Near boxes are
// entered first.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/tree.hpp"

namespace vicinal::cpu {

/// Offers `visitor` the points whose keys are not above its limit, except those of boxes that it does not enter:
///   double limit() const                                 a key above this is of no use; it may fall; -infinity: stop
///   bool enters(std::int64_t child, double key) const    whether the child (Tree::child) with that box key is entered
///   void offer(double key, std::int64_t distinct)        a point
/// and, where it is there,
///   void take(std::int64_t child)                        all points below a child, whose keys are not above the limit
/// The bounds of keys are proven in tree.hpp; with `take` no key may overflow. O(log n) for near limits.
template <class Visitor>
void walk(const Context& ctx, const Tree& tree, const TreeKeys& keys, const double* x, Visitor& visitor) {
  constexpr bool kTakes = requires {
    visitor.take(std::int64_t{0});
  };
  constexpr int kStack = (Tree::kMaxDepth + 2) * static_cast<int>(kTreeWidth);
  constexpr std::int64_t kPoints = 256;  // of a leaf, ranked in one call
  double stack_keys[kStack];
  std::int64_t stack[kStack];
  int size = 0;
  stack_keys[size] = 0;
  stack[size++] = 0;
  std::int64_t opened = 0;
  if constexpr (kTakes) {
    if (keys.farthest(x, tree.lowest(), tree.highest()) <= visitor.limit()) return visitor.take(0);
  }
  while (size > 0) {
    const double box_key = stack_keys[--size];
    const std::int64_t at = stack[size];
    if (box_key > visitor.limit() || !visitor.enters(at, box_key)) continue;
    const Tree::Child& child = tree.child(at);
    if (++opened % 16 == 0) ctx.check_cancelled();
    if (child.size > 0) {
      const std::int64_t* const rows = tree.shape().order.data() + child.first;
      const std::byte* const points = tree.points(child.at);
      for (std::int64_t first = 0; first < child.size; first += kPoints) {
        double found_keys[kPoints];
        std::int32_t found_at[kPoints];
        const std::int64_t found =
            keys.points(x, points + first * tree.point_bytes(), std::min(kPoints, child.size - first), visitor.limit(),
                        found_keys, found_at);
        for (std::int64_t f = 0; f < found; ++f) {
          if (!(found_keys[f] <= visitor.limit())) continue;
          visitor.offer(found_keys[f], rows[first + found_at[f]]);
        }
      }
      continue;
    }
    alignas(64) double box_keys[kTreeWidth];
    std::uint32_t near = 0;
    if constexpr (kTakes) {
      std::uint32_t inside = 0;
      near = keys.boxes(x, tree.boxes(child.at), visitor.limit(), box_keys, inside) & tree.lanes(child.at);
      for (inside &= near, near &= ~inside; inside != 0; inside &= inside - 1) {
        visitor.take(Tree::child_of(child.at, std::countr_zero(inside)));
      }
    } else {
      near = keys.boxes(x, tree.boxes(child.at), visitor.limit(), box_keys) & tree.lanes(child.at);
    }
    const int bottom = size;
    for (; near != 0; near &= near - 1) {  // the nearest on top, of equals the first
      const int lane = std::countr_zero(near);
      int place = size++;
      for (; place > bottom && stack_keys[place - 1] <= box_keys[lane]; --place) {
        stack_keys[place] = stack_keys[place - 1];
        stack[place] = stack[place - 1];
      }
      stack_keys[place] = box_keys[lane];
      stack[place] = Tree::child_of(child.at, lane);
    }
  }
}

/// The most children, the root included, that a tree of n rows has: nodes are fewer than leaves, of which there are at
/// most as many as Tree::bytes counts.
constexpr std::uint64_t child_count_bound(std::uint64_t n) noexcept {
  return (n / 12 + n / 64 + 64) * static_cast<std::uint64_t>(kTreeWidth) + 1;
}

/// Calls visit(child) for every child below the root, those of a node before the node itself; the root, child 0, last.
template <class Visit>
void from_the_leaves(const Tree& tree, const Visit& visit) {
  for (std::int64_t node = tree.nodes(); node-- > 0;) {
    for (std::uint32_t lanes = tree.lanes(node); lanes != 0; lanes &= lanes - 1) {
      visit(Tree::child_of(node, std::countr_zero(lanes)));
    }
  }
  visit(0);
}

}  // namespace vicinal::cpu
