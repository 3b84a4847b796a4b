// See branches.hpp.
#include "ops/density/branches.hpp"

#include "core/poll.hpp"
#include "ops/density/hierarchy.hpp"

namespace vicinal::ops {

Branches::Branches(const Context& ctx, const CondensedTree& tree, std::int64_t labels)
    : within_(tree.parents.size()),
      is_branch_(tree.parents.size(), 0),
      label_deaths_(static_cast<std::size_t>(labels), 0) {
  core::Poll poll(ctx);
  deaths_ = deaths_of(poll, tree);
  is_branch_[0] = 1;
  for (std::size_t cluster = tree.parents.size(); cluster-- > 1;) {
    poll.step();
    if (tree.labels[cluster] >= 0) is_branch_[cluster] = 1;
    if (is_branch_[cluster] != 0) is_branch_[static_cast<std::size_t>(tree.parents[cluster])] = 1;
  }
  for (std::size_t cluster = 0; cluster < tree.parents.size(); ++cluster) {
    const std::int64_t around = cluster == 0 ? -1 : within_[static_cast<std::size_t>(tree.parents[cluster])];
    within_[cluster] = around;
    if (is_branch_[cluster] == 0) continue;
    within_[cluster] = static_cast<std::int64_t>(branches_.size());
    const std::int64_t label = tree.labels[cluster];
    branches_.push_back({around, label, lambda_of(tree.births[cluster])});
    if (label >= 0) label_deaths_[static_cast<std::size_t>(label)] = deaths_[cluster];
  }
}

SoftRoom Branches::room() const {
  return {.heights = std::vector<double>(labels()),
          .scores = std::vector<double>(labels()),
          .branch_heights = std::vector<double>(branches_.size()),
          .on_path = std::vector<std::uint8_t>(branches_.size(), 0)};
}

void Branches::find_heights(std::size_t cluster, double lambda, SoftRoom& room) const {
  const std::int64_t own = within_[cluster];
  const auto set_path = [&](std::uint8_t value) {
    for (std::int64_t at = own; at >= 0; at = branches_[static_cast<std::size_t>(at)].parent) {
      room.on_path[static_cast<std::size_t>(at)] = value;
    }
  };
  set_path(1);
  for (std::size_t at = 0; at < branches_.size(); ++at) {
    const Branch& branch = branches_[at];
    double height = lambda;  // of a cluster around the row, or in the row's last cluster
    if (room.on_path[at] == 0) {
      const auto parent = static_cast<std::size_t>(branch.parent);
      if (room.on_path[parent] == 0) {
        height = room.branch_heights[parent];
      } else if (branch.parent != own || is_branch_[cluster] == 0) {
        height = branch.birth;
      }
    }
    room.branch_heights[at] = height;
    if (branch.label >= 0) room.heights[static_cast<std::size_t>(branch.label)] = height;
  }
  set_path(0);
}

std::uint64_t Branches::bytes(std::int64_t clusters, std::int64_t labels, int threads) noexcept {
  const auto c = static_cast<std::uint64_t>(clusters);
  const auto k = static_cast<std::uint64_t>(labels);
  // A vector that grows has room for twice as many.
  return c * (2 * sizeof(Branch) + sizeof(std::int64_t) + 1 + sizeof(double)) + k * sizeof(double) +
         static_cast<std::uint64_t>(threads) * (c * (sizeof(double) + 1) + 2 * k * sizeof(double));
}

}  // namespace vicinal::ops
