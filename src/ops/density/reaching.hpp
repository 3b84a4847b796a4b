// The rows of a clustering that new rows reach first, and where these come to be in its condensed tree (contract clause
// 29).
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/hdbscan.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/table.hpp"

namespace vicinal::ops {

/// What new rows reach first.
struct Reached {
  std::vector<std::int64_t> rows;  ///< [m] of the table
  std::vector<double> distances;   ///< [m] at which each reaches it
};

/// What `reach_rows` takes with `result_bytes`, and how it searches. Checks the clustering and the queries,
/// and reads no value of these.
Plan plan_reach(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries,
                std::uint64_t result_bytes);

/// Checks the clustering and the queries, and that there is memory for both this and `result_bytes`.
Reached reach_rows(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries,
                   std::uint64_t result_bytes);

/// The last cluster of a row that reaches row `by` of the table with a lambda.
std::size_t cluster_reached(const CondensedTree& tree, std::int64_t by, double lambda) noexcept;

}  // namespace vicinal::ops
