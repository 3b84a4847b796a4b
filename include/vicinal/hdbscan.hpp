// hdbscan: clusters of different densities, and noise, from the minimum spanning tree by mutual reachability
// (docs/density.md; docs/contract.md, clause 29).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/spanning_tree.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// Which clusters of the condensed tree are chosen.
enum class ClusterSelection : std::uint8_t {
  excess_of_mass,  ///< "eom": the clusters that are most stable together; no cluster within another one
  leaves,          ///< "leaf": the clusters that contain no other cluster
};
/// "eom", "leaf".
VICINAL_API std::string_view name_of(ClusterSelection selection) noexcept;
/// Throws `invalid_argument` listing the valid names.
VICINAL_API ClusterSelection cluster_selection_from(std::string_view name);

struct HdbscanOptions {
  std::int64_t min_cluster_size = 5;  ///< minimum number of rows of a cluster, at least 2
  /// As SpanningTreeOptions::min_samples; 0: `min_cluster_size`. The larger, the more rows are noise.
  std::int64_t min_samples = 0;
  bool count_self = true;  ///< as SpanningTreeOptions
  double alpha = 1;        ///< as SpanningTreeOptions
  ClusterSelection selection = ClusterSelection::excess_of_mass;
  /// A chosen cluster that exists only below this distance is replaced by the smallest cluster around it that exists at
  /// it; at least 0 and finite.
  double epsilon = 0;
  std::int64_t max_cluster_size = 0;  ///< maximum number of rows of a cluster of `excess_of_mass`; 0: no limit
  bool allow_single_cluster = false;  ///< whether all rows may be one cluster
  Metric metric = Metric::euclidean;  ///< inner_product, whose distances may be negative, is refused
  double p = 2;
  Method method = Method::automatic;
};

/// The hierarchy of clusters with at least `min_cluster_size` rows. Edges are removed from the spanning tree, the
/// longest first. A cluster loses rows until it is divided into two clusters, or has fewer than `min_cluster_size`
/// rows. Cluster 0 has all rows. A cluster has a larger number than the cluster that it is a part of.
struct CondensedTree {
  std::vector<std::int64_t> parents;  ///< [c] the cluster that it is a part of; -1 for cluster 0
  std::vector<double> births;         ///< [c] length of the edge whose removal separates it; infinity for cluster 0
  std::vector<std::int64_t> sizes;    ///< [c] rows at its birth
  std::vector<double> stabilities;    ///< [c] excess of mass; may be infinite, where rows are equal
  std::vector<std::int64_t> labels;   ///< [c] the label of a chosen cluster, else -1
  std::vector<std::int64_t> row_clusters;  ///< [n] the last cluster that each row is in
  std::vector<double> row_distances;       ///< [n] length of the edge whose removal separates the row from it
};

/// Clusters of a table's rows.
struct Hdbscan {
  std::vector<std::int64_t> labels;            ///< [n] -1 for noise; clusters are numbered by their smallest rows
  std::vector<double> probabilities;           ///< [n] in [0, 1]: how firmly a row is in its cluster; 0 for noise
  std::vector<double> outlier_scores;          ///< [n] GLOSH, in [0, 1]; larger is more outlying
  std::int64_t clusters = 0;                   ///< number of clusters
  std::int64_t noise = 0;                      ///< rows with label -1
  std::vector<std::int64_t> sizes;             ///< [clusters] rows of each
  std::vector<double> persistences;            ///< [clusters] in [0, 1] where no two rows are equal
  std::vector<std::int64_t> exemplar_offsets;  ///< [clusters + 1] where the rows of each cluster begin in `exemplars`
  std::vector<std::int64_t> exemplars;         ///< the rows in the densest places of each cluster, ascending
  std::vector<double> core_distances;          ///< [n] those of the spanning tree
  CondensedTree tree;
  HdbscanOptions options;  ///< those of the call; if a spanning tree was passed, with the tree's options
  Plan plan;
  SearchStats stats;           ///< of the search for neighbors
  double tree_seconds = 0;     ///< for the spanning tree, after the neighbors were found
  double cluster_seconds = 0;  ///< for the clusters, after the spanning tree was found
};

/// The clusters of HDBSCAN (Campello, Moulavi and Sander 2013; McInnes and Healy 2017) of a table's rows [n, d]. They
/// are those of scikit-learn if the minimum spanning tree is unique. If equal distances allow several trees, the order
/// of the edges decides (docs/contract.md, clause 27), and scikit-learn may return other clusters. The same bits for
/// every method, thread count, instruction set and device.
///
/// Time and memory of `minimum_spanning_tree`, and O(n log n) time and about 160 n bytes for the hierarchy. Throws as
/// `minimum_spanning_tree` does, and `invalid_argument` for `inner_product`.
VICINAL_API Hdbscan hdbscan(const Context& ctx, const TableView& table, const HdbscanOptions& options = {});
VICINAL_API Hdbscan hdbscan(const Context& ctx, const Index& index, const HdbscanOptions& options = {});
/// The same from a spanning tree that `minimum_spanning_tree` returned, to try other sizes or selections without
/// another search: O(n log n) time and about 160 n bytes. `min_samples`, `count_self`, `alpha`, metric and method are
/// those of the tree. Throws `invalid_argument` for options outside their domain and for arrays that are not a spanning
/// tree in ascending order, `over_memory` before work begins, `cancelled`.
VICINAL_API Hdbscan hdbscan(const Context& ctx, const SpanningTree& tree, const HdbscanOptions& options = {});

/// The plan of `hdbscan` without running it. Throws as it does.
VICINAL_API Plan plan_hdbscan(const Context& ctx, const TableView& table, const HdbscanOptions& options = {});

}  // namespace vicinal
