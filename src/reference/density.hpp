// Spanning trees and density clusters by the letter of docs/contract.md, clauses 27 to 30: every pair of rows. Shares
// no code with the library.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "reference/reference.hpp"
#include "vicinal/dbscan.hpp"
#include "vicinal/hdbscan.hpp"
#include "vicinal/hdbscan_model.hpp"
#include "vicinal/optics.hpp"
#include "vicinal/spanning_tree.hpp"
#include "vicinal/validity.hpp"

namespace vicinal::reference {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// The keys of all pairs of a table's rows, [n * n]. Not finite where a key overflows.
std::vector<double> pair_keys(const TableView& table, Metric metric, double p);

/// The labels, core rows and clusters that `vicinal::dbscan` must return. `keys` as above, by the metric of the
/// options.
Dbscan dbscan(std::span<const double> keys, const DbscanOptions& options);

/// What `vicinal::minimum_spanning_tree` must return but for plan, statistics and times. `keys`: those of the table's
/// pairs by the metric of the options, all finite.
SpanningTree minimum_spanning_tree(std::span<const double> keys, const SpanningTreeOptions& options);

/// What `vicinal::hdbscan` must return for a spanning tree but for plan, statistics and times.
Hdbscan hdbscan(const SpanningTree& tree, const HdbscanOptions& options);

/// What `vicinal::predict` must return. `keys`: those of each query and each row of the table, [m * n], by the metric
/// of the options, all finite; `distances`: what is reported for them. Core distances and condensed tree are those of
/// `fitted`.
HdbscanPrediction predict(const Hdbscan& fitted, std::span<const double> keys, std::span<const double> distances);

/// The values that `vicinal::memberships` must return within 2^-47, relative. `keys` and `distances` as for `predict`,
/// of the rows that were clustered (`is_new` is false) or of others. Labels and exemplars are those of `fitted`.
std::vector<double> memberships(const Hdbscan& fitted, std::span<const double> keys, std::span<const double> distances,
                                bool is_new);

/// What `vicinal::validity` must return. `keys`: of the table's pairs, all finite; `cols`: of the table.
Validity validity(std::span<const double> keys, std::int64_t cols, std::span<const std::int64_t> labels,
                  const ValidityOptions& options);

/// What `vicinal::optics` must return but for plan, statistics and times. `keys` as above.
Optics optics(std::span<const double> keys, const OpticsOptions& options);
/// Labels, their number, starts and ends of the clusters that are read from an order.
OpticsClusters optics_dbscan(const Optics& order, double eps);
OpticsClusters optics_xi(const Optics& order, const OpticsXiOptions& options);

}  // namespace vicinal::reference
