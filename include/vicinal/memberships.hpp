// memberships: how much each row belongs to each cluster of hdbscan (docs/density.md; docs/contract.md, clause 29).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/hdbscan.hpp"
#include "vicinal/hdbscan_model.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// Soft clusters of rows.
struct Memberships {
  std::int64_t first = 0;      ///< number of the first row
  std::int64_t rows = 0;       ///< m
  std::int64_t clusters = 0;   ///< c
  std::vector<double> values;  ///< [m, c] row by row, in [0, 1]; a row's sum is how firmly it is in any cluster
};

/// The memberships of the rows that were clustered: those of all_points_membership_vectors of the package hdbscan. A
/// row belongs to a cluster the more, the nearer it is to the cluster's exemplars and the denser the place is where
/// both come apart in the condensed tree. Not all rows have the largest membership in the cluster of their label. The
/// same bits for every method, thread count and instruction set.
///
/// Time of `knn` with k = 1 of all rows among the exemplars, cluster by cluster, and O(n c); memory 8 n c bytes, and
/// that of the search. Throws `invalid_argument` for a clustering of another table, `over_memory` before work begins,
/// `cancelled`.
VICINAL_API Memberships memberships(const Context& ctx, const Index& index, const Hdbscan& fitted);
/// Those of rows [m, d] that were not clustered, as membership_vector of the package hdbscan, which weighs tree and
/// distances otherwise than for the rows that were clustered. No cluster changes. Cost of `predict`, and as above.
/// Throws as `predict` does.
VICINAL_API Memberships memberships(const Context& ctx, const Index& index, const Hdbscan& fitted,
                                    const TableView& queries);
/// As above, for rows that have the form of the rows that the model was made from: the model's preparation is applied
/// first. `queries` as a Table may have columns of text (Preparation::read). Throws as `predict` of a model does.
VICINAL_API Memberships memberships(const Context& ctx, const HdbscanModel& model, const Table& queries);
/// As above, for rows of numbers.
VICINAL_API Memberships memberships(const Context& ctx, const HdbscanModel& model, const TableView& queries);

/// Takes the memberships of consecutive rows.
using TakeMemberships = std::function<void(const Memberships& batch)>;

/// The same without a matrix of all rows: passes them to `take` batch by batch in the order of the rows. `queries`:
/// rows that were not clustered; nullptr: those that were. Throws as `memberships` does, and what `take` throws.
VICINAL_API void membership_batches(const Context& ctx, const Index& index, const Hdbscan& fitted,
                                    const TableView* queries, const TakeMemberships& take);
/// Bytes that `membership_batches` needs at most for a clustering of the table with these options, without the
/// clustering itself and what `predict` needs. Reads no value. Throws `invalid_argument` for options outside their
/// domain.
VICINAL_API std::uint64_t membership_bytes(const Context& ctx, const TableView& table, const HdbscanOptions& options);
/// Bytes that `membership_batches` needs for `queries` [m, d], rows that were not clustered. `index`, `fitted` and
/// `queries` themselves are not counted. Reads no value of the queries. O(n) time. Throws `invalid_argument` as
/// `memberships` does.
VICINAL_API std::uint64_t membership_bytes(const Context& ctx, const Index& index, const Hdbscan& fitted,
                                           const TableView& queries);

}  // namespace vicinal
