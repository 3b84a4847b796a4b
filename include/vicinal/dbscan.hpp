// dbscan: clusters of rows that lie densely, and noise (docs/density.md; docs/contract.md, clause 28).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

struct DbscanOptions {
  /// Rows are neighbors if their distance is at most `eps`: finite and above 0; of `inner_product` finite.
  double eps = 0.5;
  /// A row is a core row if at least so many rows, itself included, are within `eps`; at least 1, and it may exceed n.
  std::int64_t min_samples = 5;
  /// [n] finite weights: instead of the number of rows their weights are added up and compared with `min_samples`.
  /// A weight below 0 keeps rows from being core rows. Empty: each row weighs 1.
  std::span<const double> weights = {};
  Metric metric = Metric::euclidean;
  double p = 2;                       ///< exponent of `minkowski`, finite and at least 1
  Method method = Method::automatic;  ///< automatic, fused, direct or kdtree; all give the same labels
};

/// Clusters of a table's rows. Core rows that are neighbors are in the same cluster.
struct Dbscan {
  /// [n] the number of each row's cluster, or -1 for noise. Clusters are numbered by their smallest core row. A row
  /// that is no core row has the smallest number of the core rows that are its neighbors, as in scikit-learn.
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> core;   ///< [n] 1 for core rows, else 0
  std::int64_t clusters = 0;        ///< number of clusters
  std::vector<std::int64_t> sizes;  ///< [clusters] rows of each
  std::int64_t core_rows = 0;
  std::int64_t noise = 0;  ///< rows with label -1; all other rows that are no core rows are border rows
  DbscanOptions options;   ///< those of the call, without the weights
  Plan plan;
  double prepare_seconds = 0;  ///< 0 for an Index
  double cluster_seconds = 0;
  SearchStats stats;  ///< number of different rows; other counters are not kept
};

/// The clusters of DBSCAN (Ester et al. 1996) of a table's rows [n, d], which are those of scikit-learn. The same
/// labels for every method, thread count and instruction set.
///
/// Memory is O(n) for every `eps`: about 42 n bytes, and what the search takes; the graph of neighbors is never
/// written. Searches stop as soon as they know enough, so that a large `eps` is fast: in a kd-tree, boxes of rows that
/// are all neighbors of each other are joined at once, and rows of large clusters do not search for each other.
/// Time: about that of `count`, and less if `eps` is large; with a weight below 0 every neighbor of every row is
/// visited.
///
/// Throws `invalid_argument` for options outside their domain, a method that does not serve the metric and a table that
/// comes in blocks, `bad_data` naming row and column of the first NaN or infinity or two rows whose distance overflows
/// float64, `over_memory` before work begins, `device_unavailable` for a context of a CUDA device, `cancelled`.
VICINAL_API Dbscan dbscan(const Context& ctx, const TableView& table, const DbscanOptions& options);
VICINAL_API Dbscan dbscan(const Context& ctx, const Index& index, const DbscanOptions& options);

/// The plan of `dbscan` without running it: method, bytes of memory and the reason; the expected seconds are those of a
/// search for `min_samples` neighbors. Throws as it does.
VICINAL_API Plan plan_dbscan(const Context& ctx, const TableView& table, const DbscanOptions& options);

}  // namespace vicinal
