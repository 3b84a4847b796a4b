// The rows that stand out most, and the columns that push them out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli {

/// What a column has of a row's squared distance to the mean of its neighbors.
struct ColumnShare {
  std::int64_t column = 0;
  double share = 0;  ///< in [0, 1]
};

/// Below this a share is not shown to people: it would be 0 %.
inline constexpr double kShareShown = 0.005;

struct OutlyingRow {
  std::int64_t row = 0;
  double score = 0;
  std::vector<ColumnShare> columns;  ///< largest first, ties by column; empty where the row is that mean, or not asked
};

/// Rows in the order of (score, descending; row). O(n log n).
std::vector<std::int64_t> ranking(std::span<const double> scores);

/// For each of `rows` the `most` columns with the largest shares: neighbors [i] are those of rows[i] of `asked` in
/// `table`. O(k d) a row.
std::vector<std::vector<ColumnShare>> column_shares(const TableView& asked, std::span<const std::int64_t> rows,
                                                    const TableView& table, const NeighborGraph& neighbors,
                                                    std::size_t most);

}  // namespace vicinal::cli
