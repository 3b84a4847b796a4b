// regress: means of the neighbors' targets (k-nearest-neighbor and radius regression; docs/contract.md, clause 14).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/radius_batches.hpp"
#include "vicinal/table.hpp"
#include "vicinal/vote.hpp"

namespace vicinal {

struct RegressOptions {
  Weighting weights = Weighting::uniform;
  WeightFn custom = {};  ///< for Weighting::custom; called on several threads at once
  /// The value of a query that has no neighbors, or whose neighbors all have the weight 0.
  double outlier = std::numeric_limits<double>::quiet_NaN();
  /// For Weighting::given, of `average`: a weight for each of graph.ids; finite and not negative.
  std::span<const double> given = {};
};

struct Regression {
  std::vector<double> values;   ///< [m, outputs]
  std::int64_t rows = 0;        ///< m
  std::int64_t table_rows = 0;  ///< n
  std::int64_t outputs = 0;
  std::int64_t outliers = 0;  ///< queries without neighbors
  Plan plan;
  SearchStats stats;
};

/// The weighted means of the targets of each row's neighbors: [graph.rows, outputs], from targets [n, outputs]; both
/// are in host memory. The same bits for every thread count. O(m k outputs) time, O((m + n) outputs) memory. Throws
/// `invalid_argument` for targets that are not as many as the graph's table rows, graphs whose arrays do not fit
/// together, weights by distance with inner_product, given weights of another number than neighbors, and custom or
/// given weights that are negative or not finite; `bad_data` naming row and column of a target that is not finite, and
/// the query row whose sum is beyond float64; `over_memory` before it starts.
VICINAL_API std::vector<double> average(const Context& ctx, const NeighborGraph& graph, const TableView& targets,
                                        const RegressOptions& options = {});

/// The weighted means of the targets [n, outputs] of the k nearest rows for each query: values [m, outputs], with the
/// bits of `knn` followed by `average`. With a CUDA context the device finds the lists, and the host computes the
/// means.
///
/// Throws `invalid_argument` for options outside their domain, queries of another width than the table, targets that
/// are not as many as its rows, weights by distance with inner_product, and custom weights that are negative or not
/// finite, `bad_data` for NaN and infinity in table, queries and targets, and for distances and sums that overflow,
/// `over_memory` before work begins, `cancelled`. Cost of `knn`, and O(m k outputs).
VICINAL_API Regression regress(const Context& ctx, const Index& index, const TableView& queries,
                               const TableView& targets, const KnnOptions& options,
                               const RegressOptions& averaging = {});
VICINAL_API Regression regress(const Context& ctx, const TableView& table, const TableView& queries,
                               const TableView& targets, const KnnOptions& options,
                               const RegressOptions& averaging = {});
/// The weighted means of the targets of all rows within a radius of each query: values [m, outputs]. `watch`, if not
/// empty, receives the lists batch by batch as from `radius_batches`, after their means are computed. Throws as
/// `regress` does, and `over_memory` as `radius_batches` does. Cost of `radius_batches`, and O(neighbors outputs).
VICINAL_API Regression regress_radius(const Context& ctx, const Index& index, const TableView& queries,
                                      const TableView& targets, const RadiusOptions& options,
                                      const RegressOptions& averaging = {}, const TakeLists& watch = {});
VICINAL_API Regression regress_radius(const Context& ctx, const TableView& table, const TableView& queries,
                                      const TableView& targets, const RadiusOptions& options,
                                      const RegressOptions& averaging = {});

}  // namespace vicinal
