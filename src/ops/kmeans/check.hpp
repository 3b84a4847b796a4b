// What k-means refuses at its door, before anything is read (contract clause 12), and small facts that follow from its
// options.
#pragma once

#include <cstdint>
#include <span>

#include "vicinal/kmeans.hpp"

namespace vicinal::ops {

/// Throws `invalid_argument` for options outside their domain, or that do not fit the table.
void check_kmeans(const Context& ctx, const TableView& table, const KMeansOptions& options);
/// What of this a rank can see of its shard, whose first row is row `first_row` of the table; mini-batches are refused.
void check_shard(const Context& ctx, const TableView& shard, std::int64_t first_row, const KMeansOptions& options);
/// The rest: what depends on the rows of all shards, and on how many of them have a weight.
void check_all_rows(std::int64_t rows, std::int64_t weighted, const KMeansOptions& options);
/// Throws `invalid_argument` for a table, weights, a metric or a number of clusters that no k-means has.
void check_clusters(const Context& ctx, const TableView& table, std::span<const double> weights, Metric metric,
                    std::int64_t clusters);
/// Throws `invalid_argument` unless given centers are [clusters, d] in host memory.
void check_given(const Context& ctx, const TableView& centres, std::int64_t clusters, std::int64_t d);
/// Throws `invalid_argument` unless there are none or one for each of n rows, finite and at least 0; `first_row` is
/// added to the number of a row.
void check_weights(std::span<const double> weights, std::int64_t n, std::int64_t first_row = 0);
/// Throws `bad_data` by row and column for centers [k, d] that are not finite or are 2^500 and more.
void check_centres(std::span<const double> centres, std::int64_t d);

/// Throws `invalid_argument` for a model whose centers do not fit its clusters and columns, or of a metric that k-means
/// does not have; `bad_data` as `check_centres`.
void check_model(const KMeans& model);

/// Rows that have a weight above 0.
std::int64_t weighted_rows(const TableView& table, std::span<const double> weights);
/// What sums of keys are multiplied by to be an inertia.
double inertia_unit(Metric metric);

}  // namespace vicinal::ops
