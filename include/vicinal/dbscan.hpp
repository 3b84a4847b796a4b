// dbscan: clusters of one density, and noise (docs/density.md; docs/contract.md, clause 28).
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
  /// Rows are neighbors if their distance is at most `eps`: finite and above 0; with `inner_product` any finite number.
  double eps = 0.5;
  /// Minimum number of neighbors of a core row, itself included; at least 1, and it may exceed n.
  std::int64_t min_samples = 5;
  /// [n] finite weights: the sum of the neighbors' weights, instead of their number, is compared with `min_samples`. A
  /// weight below 0 may keep the neighbors of its row from being core rows. Empty: each row weighs 1.
  std::span<const double> weights = {};
  Metric metric = Metric::euclidean;
  double p = 2;                       ///< exponent of `minkowski`, finite and at least 1
  Method method = Method::automatic;  ///< automatic, fused, direct or kdtree; all give the same labels
};

/// Clusters of a table's rows. Core rows that are neighbors are in the same cluster.
struct Dbscan {
  /// [n] the number of each row's cluster, or -1 for noise. Clusters are numbered by their smallest core row. A border
  /// row (not a core row, but a neighbor of core rows) has the smallest of their numbers, as in scikit-learn.
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> core;   ///< [n] 1 for core rows, else 0
  std::int64_t clusters = 0;        ///< number of clusters
  std::vector<std::int64_t> sizes;  ///< [clusters] rows of each
  std::int64_t core_rows = 0;
  std::int64_t noise = 0;  ///< rows with label -1
  DbscanOptions options;   ///< those of the call, without the weights
  Plan plan;
  double prepare_seconds = 0;  ///< 0 for an Index
  double cluster_seconds = 0;
  SearchStats stats;  ///< number of different rows; other counters are not kept
};

/// The clusters of DBSCAN (Ester et al. 1996) of a table's rows [n, d], which are those of scikit-learn. The same
/// labels for every method, thread count, instruction set and device.
///
/// Memory is O(n) for every `eps`: about 42 n bytes, and that of the search; the graph of neighbors is never stored.
/// Time: at most about that of `count`, and less if `eps` is large, because a search stops when further neighbors
/// cannot change the result. In a kd-tree, rows of a box that are all neighbors of each other are joined at once, and
/// rows of the largest cluster do not search for each other. If a weight is below 0, every neighbor of every row is
/// visited. On a device, memory is the device's (docs/limits.md), and without a kd-tree each row is searched twice.
///
/// Throws `invalid_argument` for options outside their domain, a method that does not serve the metric and a table that
/// comes in blocks, `bad_data` naming row and column of the first NaN or infinity or two rows whose distance overflows
/// float64, `over_memory` before work begins, also for a table that does not fit into a device's memory,
/// `device_unavailable` for a context on several devices, `cancelled`.
VICINAL_API Dbscan dbscan(const Context& ctx, const TableView& table, const DbscanOptions& options);
VICINAL_API Dbscan dbscan(const Context& ctx, const Index& index, const DbscanOptions& options);

/// The plan of `dbscan` without running it: method, bytes of memory and the reason; the expected seconds are those of a
/// search for `min_samples` neighbors. Throws as it does.
VICINAL_API Plan plan_dbscan(const Context& ctx, const TableView& table, const DbscanOptions& options);

}  // namespace vicinal
