#include "cpu/density/tree_parts.hpp"

#include "core/poll.hpp"
#include "cpu/nearest/tree/walk.hpp"

namespace vicinal::cpu {
namespace {

void add_parts(const Tree& tree, const Below& below, core::Poll& poll, std::vector<Below>& parts) {
  poll.step();
  if (is_part(tree, below.child)) {
    parts.push_back(below);
    return;
  }
  for_each_child(tree, below, [&](const Below& child) { add_parts(tree, child, poll, parts); });
}

}  // namespace

bool is_part(const Tree& tree, std::int64_t child) {
  constexpr std::int64_t kPoints = 2048;  // at most, unless a leaf has more
  return tree.child(child).size > 0 || tree.points_below(child) <= kPoints;
}

std::vector<Below> tree_parts(const Context& ctx, const Tree& tree) {
  std::vector<Below> parts;
  core::Poll poll(ctx);
  add_parts(tree, {0, 0}, poll, parts);
  return parts;
}

std::uint64_t tree_parts_bytes(std::uint64_t rows) {
  return child_count_bound(rows) / kTreeWidth * 2 * sizeof(Below);  // one for each leaf at most, in a vector that grows
}

}  // namespace vicinal::cpu
