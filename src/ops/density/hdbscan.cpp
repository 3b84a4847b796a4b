// hdbscan: the spanning tree by mutual reachability, its condensed tree, the clusters chosen from it, and what is known
// of their rows (contract clause 29).
#include "vicinal/hdbscan.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "core/entry.hpp"
#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "core/names.hpp"
#include "core/poll.hpp"
#include "core/seconds.hpp"
#include "ops/common/refuse.hpp"
#include "ops/density/clustering.hpp"
#include "ops/density/hierarchy.hpp"
#include "ops/density/spanning_tree.hpp"
#include "ops/nearest/search.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<ClusterSelection>, 2> kSelections = {
    {{ClusterSelection::excess_of_mass, "eom"}, {ClusterSelection::leaves, "leaf"}}};

void check_hdbscan(const HdbscanOptions& options) {
  if (options.min_cluster_size < 2) {
    refuse("min_cluster_size: is " + std::to_string(options.min_cluster_size) + ", must be at least 2");
  }
  if (options.max_cluster_size < 0) {
    refuse("max_cluster_size: is " + std::to_string(options.max_cluster_size) + ", must be at least 1, or 0 for any");
  }
  if (!(options.epsilon >= 0) || std::isinf(options.epsilon)) refuse("epsilon: must be at least 0 and finite");
  if (options.metric == Metric::inner_product) {
    refuse("metric: inner_product may be below 0; hdbscan takes all other metrics");
  }
}

SpanningTreeOptions tree_options(const HdbscanOptions& options) {
  return {.min_samples = options.min_samples != 0 ? options.min_samples : options.min_cluster_size,
          .count_self = options.count_self,
          .alpha = options.alpha,
          .metric = options.metric,
          .p = options.p,
          .method = options.method};
}

/// Beside the spanning tree: the condensed tree, labels, probabilities, scores, exemplars and core distances.
std::uint64_t hierarchy_bytes(std::int64_t n, const HdbscanOptions& options) {
  return ops::condense_bytes(n, options.min_cluster_size) + static_cast<std::uint64_t>(n) * 7 * sizeof(double);
}

/// What follows from a condensed tree whose clusters are chosen.
class Summary {
 public:
  Summary(const Context& ctx, Hdbscan& found)
      : poll_(ctx), found_(found), tree_(found.tree), children_(ops::first_children(tree_)) {}

  void run(const std::vector<std::uint8_t>& chosen) {
    find_owners(chosen);
    find_deaths();
    label_rows();
    rate_rows();
    rate_clusters();
    find_exemplars();
  }

 private:
  [[nodiscard]] std::size_t rows() const { return tree_.row_clusters.size(); }
  [[nodiscard]] std::size_t clusters() const { return tree_.parents.size(); }
  [[nodiscard]] std::size_t cluster_of(std::size_t row) const {
    return static_cast<std::size_t>(tree_.row_clusters[row]);
  }
  [[nodiscard]] double lambda(std::size_t row) const { return ops::lambda_of(tree_.row_distances[row]); }

  /// The chosen cluster that each is a part of, or -1.
  void find_owners(const std::vector<std::uint8_t>& chosen) {
    for (std::size_t cluster = 0; cluster < clusters(); ++cluster) {
      const std::int64_t above = cluster > 0 ? owners_[static_cast<std::size_t>(tree_.parents[cluster])] : -1;
      owners_.push_back(chosen[cluster] != 0 ? static_cast<std::int64_t>(cluster) : above);
    }
  }

  /// The largest lambda with which something leaves a cluster, and a cluster or one of its parts.
  void find_deaths() {
    deaths_ = ops::deaths_of(poll_, tree_);
    deaths_within_ = deaths_;
    for (std::size_t cluster = clusters(); cluster-- > 1;) {
      double& death = deaths_within_[static_cast<std::size_t>(tree_.parents[cluster])];
      death = std::max(death, deaths_within_[cluster]);
    }
  }

  void label_rows() {
    const double threshold = found_.options.epsilon > 0 ? ops::lambda_of(found_.options.epsilon) : deaths_[0];
    found_.labels.assign(rows(), -1);
    for (std::size_t row = 0; row < rows(); ++row) {
      poll_.step();
      const std::int64_t owner = owners_[cluster_of(row)];
      // Of all rows as one cluster those that stay to its end.
      if (owner < 0 || (owner == 0 && !(lambda(row) >= threshold))) continue;
      std::int64_t& label = tree_.labels[static_cast<std::size_t>(owner)];
      if (label < 0) {
        label = found_.clusters++;
        found_.sizes.push_back(0);
        chosen_.push_back(static_cast<std::size_t>(owner));
      }
      found_.labels[row] = label;
      ++found_.sizes[static_cast<std::size_t>(label)];
    }
    found_.noise = static_cast<std::int64_t>(std::count(found_.labels.begin(), found_.labels.end(), -1));
  }

  void rate_rows() {
    found_.probabilities.assign(rows(), 0);
    found_.outlier_scores.assign(rows(), 0);
    for (std::size_t row = 0; row < rows(); ++row) {
      poll_.step();
      const double own = lambda(row);
      if (const std::int64_t label = found_.labels[row]; label >= 0) {
        const double death = deaths_[chosen_[static_cast<std::size_t>(label)]];
        found_.probabilities[row] = std::isinf(own) || death == 0 ? 1 : std::min(own, death) / death;
      }
      const double within = deaths_within_[cluster_of(row)];
      if (std::isinf(own) || within == 0) continue;
      found_.outlier_scores[row] = std::isinf(within) ? 1 : (within - own) / within;
    }
  }

  void rate_clusters() {
    const double most = deaths_within_[0];
    for (std::size_t label = 0; label < chosen_.size(); ++label) {
      const double whole = static_cast<double>(found_.sizes[label]) * most;
      found_.persistences.push_back(std::isinf(most) || most == 0 ? 1 : tree_.stabilities[chosen_[label]] / whole);
    }
  }

  /// Of each part of a cluster that is not divided the rows that leave it last.
  void find_exemplars() {
    const auto is_exemplar = [&](std::size_t row) {
      const std::size_t cluster = cluster_of(row);
      return found_.labels[row] >= 0 && children_[cluster] < 0 && lambda(row) == deaths_[cluster];
    };
    std::vector<std::int64_t>& offsets = found_.exemplar_offsets;
    offsets.assign(static_cast<std::size_t>(found_.clusters) + 1, 0);
    for (std::size_t row = 0; row < rows(); ++row) {
      poll_.step();
      if (is_exemplar(row)) ++offsets[static_cast<std::size_t>(found_.labels[row]) + 1];
    }
    for (std::size_t label = 1; label < offsets.size(); ++label) offsets[label] += offsets[label - 1];
    found_.exemplars.resize(static_cast<std::size_t>(offsets.back()));
    std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
    for (std::size_t row = 0; row < rows(); ++row) {
      poll_.step();
      if (!is_exemplar(row)) continue;
      std::int64_t& at = next[static_cast<std::size_t>(found_.labels[row])];
      found_.exemplars[static_cast<std::size_t>(at++)] = static_cast<std::int64_t>(row);
    }
  }

  core::Poll poll_;
  Hdbscan& found_;
  CondensedTree& tree_;
  std::vector<std::int64_t> children_;
  std::vector<std::int64_t> owners_;   // [clusters]
  std::vector<double> deaths_;         // [clusters]
  std::vector<double> deaths_within_;  // [clusters]
  std::vector<std::size_t> chosen_;    // [labels] the cluster of each
};

Hdbscan clusters_of(const Context& ctx, const SpanningTree& tree, std::vector<double> core_distances,
                    const HdbscanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Hdbscan found;
  found.options = options;
  found.plan = tree.plan;
  found.stats = tree.stats;
  found.tree_seconds = tree.tree_seconds;
  found.core_distances = std::move(core_distances);
  found.tree = ops::condense(ctx, tree, options.min_cluster_size);
  ops::summarize(ctx, found, ops::choose_clusters(found.tree, options));
  found.cluster_seconds = seconds_since(start);
  return found;
}

ops::TreeUse use_of(std::int64_t n, const HdbscanOptions& options) {
  return {"hdbscan", hierarchy_bytes(n, options)};
}

Hdbscan clusters_of_rows(const Context& ctx, const Index& index, const HdbscanOptions& options) {
  const ops::TreeUse use = use_of(index.rows(), options);
  SpanningTree tree = ops::spanning_tree_of(ctx, index, tree_options(options), use);
  std::vector<double> core_distances = std::move(tree.core_distances);
  return clusters_of(ctx, tree, std::move(core_distances), options);
}

/// With those of the tree where that has settled them.
HdbscanOptions options_of_tree(HdbscanOptions options, const SpanningTreeOptions& made) {
  options.min_samples = made.min_samples;
  options.count_self = made.count_self;
  options.alpha = made.alpha;
  options.metric = made.metric;
  options.p = made.p;
  options.method = made.method;
  if (!made.count_self && made.min_samples == 0) {  // the same rank, as 0 means min_cluster_size here
    options.min_samples = 1;
    options.count_self = true;
  }
  return options;
}

}  // namespace

void ops::summarize(const Context& ctx, Hdbscan& found, const std::vector<std::uint8_t>& chosen) {
  Summary(ctx, found).run(chosen);
}

std::string_view name_of(ClusterSelection selection) noexcept {
  return core::name_in(kSelections, selection);
}
ClusterSelection cluster_selection_from(std::string_view name) {
  return core::value_in(kSelections, "selection", name);
}

Hdbscan hdbscan(const Context& ctx, const TableView& table, const HdbscanOptions& options) try {
  const core::Entry entry;
  check_hdbscan(options);
  ops::check_spanning_tree(ctx, table, tree_options(options));
  return ops::with_index(ctx, table, [&](const Index& index) { return clusters_of_rows(ctx, index, options); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Hdbscan hdbscan(const Context& ctx, const Index& index, const HdbscanOptions& options) try {
  const core::Entry entry;
  check_hdbscan(options);
  ops::check_spanning_tree(ctx, index.table(), tree_options(options));
  return clusters_of_rows(ctx, index, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Hdbscan hdbscan(const Context& ctx, const SpanningTree& tree, const HdbscanOptions& options) try {
  const core::Entry entry;
  check_hdbscan(options);
  ops::check_tree(ctx, tree);
  core::require_memory(ctx, hierarchy_bytes(tree.rows, options), "hdbscan");
  return clusters_of(ctx, tree, tree.core_distances, options_of_tree(options, tree.options));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_hdbscan(const Context& ctx, const TableView& table, const HdbscanOptions& options) try {
  const core::Entry entry;
  check_hdbscan(options);
  return ops::plan_spanning_tree_of(ctx, table, tree_options(options), use_of(table.rows(), options));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
