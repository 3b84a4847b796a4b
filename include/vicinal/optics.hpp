// optics: an order of the rows in which rows of a cluster follow each other, the distances at which rows are reached,
// and clusters that are read from them (docs/density.md; docs/contract.md, clause 30).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

struct OpticsOptions {
  /// The core distance of a row is the distance of its `min_samples`-th nearest row, itself included; from 2 to n.
  std::int64_t min_samples = 5;
  /// Rows are neighbors if their distance is at most `max_eps`: above 0; infinity: all rows are.
  double max_eps = std::numeric_limits<double>::infinity();
  Metric metric = Metric::euclidean;  ///< inner_product, whose distances may be negative, is refused
  double p = 2;                       ///< exponent of `minkowski`, finite and at least 1
  Method method = Method::automatic;  ///< automatic, fused, direct or kdtree; all give the same order
};

/// The rows of a table in the order of OPTICS. Element i of each array but `ordering` is about row i.
struct Optics {
  std::vector<std::int64_t> ordering;      ///< [n] row numbers, in the order in which rows are placed
  std::vector<double> reachability;        ///< [n] distance at which the row is reached; infinity if no row reaches it
  std::vector<double> core_distances;      ///< [n] infinity if above `max_eps`
  std::vector<std::int64_t> predecessors;  ///< [n] the row from which the row is reached, or -1
  OpticsOptions options;                   ///< those of the call
  Plan plan;                               ///< of the search for neighbors, with the memory of the whole call
  SearchStats stats;                       ///< of the search for neighbors
  double order_seconds = 0;                ///< after the neighbors were found
};

/// The order of OPTICS (Ankerst, Breunig, Kriegel and Sander 1999) of a table's rows [n, d], which is that of
/// scikit-learn, except that distances are not rounded to 15 decimals before they are compared. Of rows that are
/// equally far, the one with the smaller number comes first. The same bits for every method, thread count and
/// instruction set.
///
/// Memory is O(n) for every `max_eps`: 16 n k bytes for lists of k = min(min_samples + 4, n - 1) neighbors,
/// and about 100 n bytes; with the methods fused and direct also the table as float64. Time: that of `knn` with this k;
/// then with method kdtree some searches for each row, all on one thread, and with the other methods the keys of all
/// pairs of rows.
///
/// Throws `invalid_argument` for options outside their domain, a method that does not serve the metric and a table that
/// comes in blocks, `bad_data` naming row and column of the first NaN or infinity or two rows whose distance overflows
/// float64, `over_memory` before work begins, `device_unavailable` for a context of a CUDA device, `cancelled`.
VICINAL_API Optics optics(const Context& ctx, const TableView& table, const OpticsOptions& options = {});
VICINAL_API Optics optics(const Context& ctx, const Index& index, const OpticsOptions& options = {});

/// The plan of `optics` without running it: method, bytes of memory, expected seconds of the search for neighbors, and
/// the reason. Throws as it does.
VICINAL_API Plan plan_optics(const Context& ctx, const TableView& table, const OpticsOptions& options = {});

/// Clusters that were read from an order.
struct OpticsClusters {
  std::vector<std::int64_t> labels;  ///< [n] the cluster of each row, or -1 for noise
  std::int64_t clusters = 0;         ///< number of labels
  std::int64_t noise = 0;            ///< rows with label -1
  std::vector<std::int64_t> sizes;   ///< [clusters] rows of each
  /// The hierarchy that `optics_xi` finds: the first and last place in `ordering` of each cluster, also of clusters
  /// that contain others and have no label. Of clusters that end in the same ascent, smaller ones come first. Empty for
  /// `optics_dbscan`.
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
};

struct OpticsXiOptions {
  /// A place is steep if the reachability rises or falls by at least this share from it to the next one; at least 0 and
  /// below 1.
  double xi = 0.05;
  std::int64_t min_cluster_size = 0;   ///< minimum number of rows, from 2 to n; 0: `min_samples` of the order
  bool predecessor_correction = true;  ///< leave out rows at the end of a cluster that are reached from another one
};

/// Clusters between a steep descent and a steep ascent of the reachability, with scikit-learn's labels: those of the
/// innermost clusters. Time O(n), plus at most the square of the number of steep areas; memory O(n), and 16 bytes per
/// cluster. Throws `invalid_argument` for options outside their domain and for arrays that are not an order of rows,
/// `over_memory`, `cancelled`.
VICINAL_API OpticsClusters optics_xi(const Context& ctx, const Optics& order, const OpticsXiOptions& options = {});

/// Clusters of one density, with scikit-learn's labels: those of `dbscan` with this eps, except for some border rows.
/// `eps` is from 0 to `max_eps` of the order. O(n) time and memory. Throws as `optics_xi` does.
VICINAL_API OpticsClusters optics_dbscan(const Context& ctx, const Optics& order, double eps);

}  // namespace vicinal
