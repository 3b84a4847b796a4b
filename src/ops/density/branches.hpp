// The part of a condensed tree in which its chosen clusters come apart: these and all clusters around them (contract
// clause 29).
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/hdbscan.hpp"

namespace vicinal::ops {

/// What a worker needs for one row.
struct SoftRoom {
  std::vector<double> heights;  ///< [labels] the lambda with which a row and a cluster come apart
  std::vector<double> scores;   ///< [labels]
  std::vector<double> branch_heights;
  std::vector<std::uint8_t> on_path;  ///< whether a branch is around the row; all 0 between rows
};

class Branches {
 public:
  /// Of a tree whose labels are 0 to `labels` - 1, once each.
  Branches(const Context& ctx, const CondensedTree& tree, std::int64_t labels);

  [[nodiscard]] SoftRoom room() const;
  /// The heights of a row whose last cluster is `cluster`, which it leaves with `lambda`. O(branches).
  void find_heights(std::size_t cluster, double lambda, SoftRoom& room) const;
  /// Of a cluster of the condensed tree: the largest lambda with which something leaves it.
  [[nodiscard]] double death(std::size_t cluster) const { return deaths_[cluster]; }
  [[nodiscard]] double death_of_label(std::size_t label) const { return label_deaths_[label]; }
  [[nodiscard]] std::size_t labels() const { return label_deaths_.size(); }

  /// Bytes of all this and of the rooms of so many threads, at most.
  static std::uint64_t bytes(std::int64_t clusters, std::int64_t labels, int threads) noexcept;

 private:
  struct Branch {
    std::int64_t parent;  // the branch around it, or -1
    std::int64_t label;   // or -1
    double birth;         // lambda
  };

  std::vector<Branch> branches_;      // ascending, by the numbers of their clusters
  std::vector<std::int64_t> within_;  // [clusters] the smallest branch that each is or is in
  std::vector<std::uint8_t> is_branch_;
  std::vector<double> deaths_;        // [clusters]
  std::vector<double> label_deaths_;  // [labels]
};

}  // namespace vicinal::ops
