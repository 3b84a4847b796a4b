// minimum_spanning_tree: the shortest tree that joins all rows of a table, by distance or by mutual reachability
// (docs/density.md; docs/contract.md, clause 27).
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

struct SpanningTreeOptions {
  /// The core distance of a row is the distance to its `min_samples`-th nearest row. The length of an edge is the
  /// largest of three numbers: the distance of its two rows and their core distances (mutual reachability). With 1,
  /// which is the row itself, core distances are 0. From 1 to n; without `count_self` from 0 to n - 1.
  std::int64_t min_samples = 1;
  /// Whether a row itself is the first of its `min_samples` nearest rows, as in scikit-learn; the package hdbscan does
  /// not count it.
  bool count_self = true;
  /// Distances, but not core distances, are divided by this number. It must be above 0 and finite, and so must be its
  /// square for `euclidean` and its power p for `minkowski`; for `inner_product` it must be 1.
  double alpha = 1;
  Metric metric = Metric::euclidean;
  double p = 2;                       ///< exponent of `minkowski`, finite and at least 1
  Method method = Method::automatic;  ///< automatic, fused, direct or kdtree; all give the same tree
};

/// A tree of n rows: n - 1 edges, the shortest first.
struct SpanningTree {
  std::int64_t rows = 0;               ///< n
  std::vector<std::int64_t> a;         ///< [n - 1] the smaller row of each edge
  std::vector<std::int64_t> b;         ///< [n - 1] the larger one
  std::vector<double> lengths;         ///< [n - 1] ascending
  std::vector<double> core_distances;  ///< [n]; 0 where the row itself is the last of its `min_samples` nearest rows
  SpanningTreeOptions options;         ///< those of the call
  Plan plan;                           ///< of the search for neighbors, with the memory of the whole call
  SearchStats stats;                   ///< of the search for neighbors
  double tree_seconds = 0;             ///< after the neighbors were found
};

/// The minimum spanning tree of the complete graph of a table's rows [n, d]. Edges are ordered by (key, smaller row,
/// larger row), so there is only one such tree, also if distances are equal. The same bits for every method, thread
/// count, instruction set and device.
///
/// First the nearest neighbors of each row are found, from which most edges follow. The other edges are found by
/// searches for the nearest row of another component, in a kd-tree or by screens. Memory: 16 n k bytes for lists of up
/// to k = min_samples + 5 neighbors, about 200 n bytes, and a second copy of the kd-tree's boxes; with a CUDA context
/// this is mostly device memory. On the CPU, `euclidean` and `sqeuclidean` in a kd-tree of 8 columns or more take
/// another 50 n bytes and the memory of a search by screens (100 MB for float32, up to 300 MB for very narrow or wide
/// rows), because screens compare the rows for which the tree's boxes would drop few pairs. Time: that of `knn` with
/// this k, and of at most log2 n searches of all rows.
///
/// Throws `invalid_argument` for options outside their domain, a method that does not serve the metric and a table that
/// comes in blocks, `bad_data` naming row and column of the first NaN or infinity or two rows whose distance overflows
/// float64, `over_memory` before work begins, also for a table that does not fit into a device's memory,
/// `device_unavailable` for a context on several devices, `cancelled`.
VICINAL_API SpanningTree minimum_spanning_tree(const Context& ctx, const TableView& table,
                                               const SpanningTreeOptions& options = {});
VICINAL_API SpanningTree minimum_spanning_tree(const Context& ctx, const Index& index,
                                               const SpanningTreeOptions& options = {});

/// The plan of `minimum_spanning_tree` without running it: method, bytes of memory, expected seconds of the search for
/// neighbors, and the reason. Throws as it does.
VICINAL_API Plan plan_spanning_tree(const Context& ctx, const TableView& table,
                                    const SpanningTreeOptions& options = {});

}  // namespace vicinal
