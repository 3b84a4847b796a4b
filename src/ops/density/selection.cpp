// Which clusters of a condensed tree are chosen (contract clause 29). A cluster comes after the one that it is a part
// of, so that descending numbers go from the leaves to the root.
#include <algorithm>

#include "ops/density/hierarchy.hpp"

namespace vicinal::ops {
namespace {

std::vector<std::uint8_t> leaves_of(const std::vector<std::int64_t>& children) {
  std::vector<std::uint8_t> chosen(children.size(), 0);
  for (std::size_t cluster = 1; cluster < children.size(); ++cluster) chosen[cluster] = children[cluster] < 0 ? 1 : 0;
  return chosen;
}

std::vector<std::uint8_t> most_stable(const CondensedTree& tree, const std::vector<std::int64_t>& children,
                                      const HdbscanOptions& options) {
  std::vector<std::uint8_t> chosen(tree.parents.size(), 0);
  std::vector<double> best = tree.stabilities;  // of a cluster, or of all that are chosen within it
  for (std::size_t cluster = tree.parents.size(); cluster-- > 0;) {
    if (cluster == 0 && !options.allow_single_cluster) break;
    const auto child = static_cast<std::size_t>(std::max<std::int64_t>(children[cluster], 0));
    const double within = children[cluster] < 0 ? 0 : best[child] + best[child + 1];
    const bool is_too_large = options.max_cluster_size > 0 && tree.sizes[cluster] > options.max_cluster_size;
    if (within > best[cluster] || is_too_large) {
      best[cluster] = within;
    } else {
      chosen[cluster] = 1;
    }
  }
  // Of clusters within each other the outermost.
  std::vector<std::uint8_t> covered(tree.parents.size(), 0);
  for (std::size_t cluster = 1; cluster < tree.parents.size(); ++cluster) {
    const auto parent = static_cast<std::size_t>(tree.parents[cluster]);
    covered[cluster] = covered[parent] != 0 || chosen[parent] != 0 ? 1 : 0;
    if (covered[cluster] != 0) chosen[cluster] = 0;
  }
  return chosen;
}

/// Replaces chosen clusters that are born below epsilon by the smallest one around them that is not.
void join_near(const CondensedTree& tree, const HdbscanOptions& options, std::vector<std::uint8_t>& chosen) {
  if (chosen[0] != 0) return;
  std::vector<std::size_t> around(chosen.size(), 0);  // the smallest cluster around each that is not born below
  std::vector<std::uint8_t> wider(chosen.size(), 0);
  for (std::size_t cluster = 1; cluster < chosen.size(); ++cluster) {
    const auto parent = static_cast<std::size_t>(tree.parents[cluster]);
    const bool stays = !(tree.births[cluster] < options.epsilon) || (parent == 0 && !options.allow_single_cluster);
    around[cluster] = stays ? cluster : around[parent];
    if (chosen[cluster] != 0) wider[around[cluster]] = 1;
  }
  // Of clusters within each other the outermost.
  std::vector<std::uint8_t> covered(chosen.size(), 0);
  for (std::size_t cluster = 0; cluster < chosen.size(); ++cluster) {
    const auto parent = static_cast<std::size_t>(std::max<std::int64_t>(tree.parents[cluster], 0));
    covered[cluster] = cluster > 0 && (covered[parent] != 0 || wider[parent] != 0) ? 1 : 0;
    chosen[cluster] = covered[cluster] == 0 ? wider[cluster] : 0;
  }
}

}  // namespace

std::vector<std::uint8_t> choose_clusters(const CondensedTree& tree, const HdbscanOptions& options) {
  const std::vector<std::int64_t> children = first_children(tree);
  std::vector<std::uint8_t> chosen =
      options.selection == ClusterSelection::leaves ? leaves_of(children) : most_stable(tree, children, options);
  if (options.epsilon > 0) join_near(tree, options, chosen);
  return chosen;
}

}  // namespace vicinal::ops
