// See lle.hpp. The dissection's tree may have nodes of one child or of several, where separators are empty: chains
// become one part, and several subtrees are shared out to two sides as evenly as their order lets them.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "plugin/lle.hpp"

namespace vicinal::plugin {
namespace {

constexpr std::int32_t kMostLevels = 10;  // cuDSS's own choice
constexpr std::int64_t kPartPoints = 64;  // of a leaf, about

class Splitter {
 public:
  Splitter(const solver::Dissection& dissection, PartTree& tree)
      : nodes_(dissection.nodes), tree_(tree), first_(nodes_.size()) {
    for (std::size_t t = 0; t < nodes_.size(); ++t) first_[t] = nodes_[t].begin;
    for (std::size_t t = 0; t < nodes_.size(); ++t) {
      const std::int32_t parent = nodes_[t].parent;
      if (parent >= 0) first_[parent] = std::min(first_[parent], first_[t]);
    }
  }

  /// Whole subtrees: nodes [begin, end), to part `index` of a level, the root's being 0.
  void run(std::int32_t begin, std::int32_t end, std::int32_t level, std::int32_t index) {
    const std::int32_t here = (1 << tree_.levels) - (1 << (level + 1)) + index;
    if (level + 1 == tree_.levels) {
      tree_.sizes[here] = points(begin, end);
      return;
    }
    const std::int32_t last = end;
    while (end > begin && first_[end - 1] == nodes_[begin].begin) --end;  // one tree: its root is of the separator
    tree_.sizes[here] = points(end, last);
    // Roots from the last one back; each begins where the subtree before it ends.
    std::int32_t middle = begin;
    std::int64_t least = -1;
    for (std::int32_t root = end; root > begin;) {
      const std::int32_t subtree = first_node(root - 1, begin);
      const std::int64_t uneven = std::abs(std::int64_t{points(begin, subtree)} - points(subtree, end));
      if (subtree > begin && (least < 0 || uneven < least)) {
        least = uneven;
        middle = subtree;
      }
      root = subtree;
    }
    run(begin, middle, level + 1, 2 * index);
    run(middle, end, level + 1, 2 * index + 1);
  }

 private:
  [[nodiscard]] std::int32_t points(std::int32_t begin, std::int32_t end) const {
    return begin == end ? 0 : nodes_[end - 1].end - nodes_[begin].begin;
  }
  /// The first node of a root's subtree: nodes are in the order of their points.
  [[nodiscard]] std::int32_t first_node(std::int32_t root, std::int32_t begin) const {
    const auto from = nodes_.begin();
    return static_cast<std::int32_t>(
        std::lower_bound(from + begin, from + root, first_[root],
                         [](const solver::Dissection::Node& node, solver::Point at) { return node.begin < at; }) -
        from);
  }

  const std::vector<solver::Dissection::Node>& nodes_;
  PartTree& tree_;
  std::vector<solver::Point> first_;  // of the points of each node's subtree
};

}  // namespace

PartTree part_tree(const solver::Dissection& dissection) {
  PartTree tree;
  const auto leaves = static_cast<std::uint64_t>(dissection.order.size()) / kPartPoints;
  tree.levels = std::clamp(static_cast<std::int32_t>(std::bit_width(leaves)), 1, kMostLevels);
  tree.sizes.assign((std::size_t{1} << tree.levels) - 1, 0);
  Splitter(dissection, tree).run(0, static_cast<std::int32_t>(dissection.nodes.size()), 0, 0);
  return tree;
}

}  // namespace vicinal::plugin
