// A kd-tree as tasks for threads.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// A child of a tree and the first of the groups below it, which follow each other.
struct Below {
  std::int64_t child;
  std::int64_t first_group;
};

/// Calls visit(Below) for each child of a child that is a node, in their order.
template <class Visit>
void for_each_child(const Tree& tree, const Below& below, const Visit& visit) {
  const std::int64_t node = tree.child(below.child).at;
  std::int64_t first = below.first_group;
  for (std::uint32_t lanes = tree.lanes(node); lanes != 0; lanes &= lanes - 1) {
    const std::int64_t child = Tree::child_of(node, std::countr_zero(lanes));
    visit(Below{child, first});
    first += tree.points_below(child);
  }
}

/// Whether a child is a task, unless one above it is.
bool is_part(const Tree& tree, std::int64_t child);
/// Children that hold all rows of a tree, each once, in its order.
std::vector<Below> tree_parts(const Context& ctx, const Tree& tree);
std::uint64_t tree_parts_bytes(std::uint64_t rows);

/// Calls visit(Below) for a child and all below it, those of a node before the node; without `with_parts`, for all but
/// the parts.
template <class Visit>
void visit_below(const Tree& tree, const Below& below, bool with_parts, const Visit& visit) {
  if (!with_parts && is_part(tree, below.child)) return;
  if (tree.child(below.child).size == 0) {
    for_each_child(tree, below, [&](const Below& child) { visit_below(tree, child, with_parts, visit); });
  }
  visit(below);
}

/// Calls visit(Below, worker) for every child, those of a node before the node: those of the parts on all threads.
template <class Visit>
void from_the_parts(const Context& ctx, const Tree& tree, std::span<const Below> parts, const Visit& visit) {
  core::parallel_for(ctx, std::ssize(parts), [&](std::int64_t part, int worker) {
    visit_below(tree, parts[static_cast<std::size_t>(part)], true, [&](const Below& below) { visit(below, worker); });
  });
  visit_below(tree, {0, 0}, false, [&](const Below& below) { visit(below, 0); });
}

}  // namespace vicinal::cpu
