// What one reading of a table tells k-means: that its values are finite and not too large, and how long its columns'
// numbers are; and a point in their middle.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/cluster_parts.hpp"
#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cpu {

/// What the table's numbers are like, and its weights [n] (empty: 1 each). O(n d). Throws `bad_data` for a value that
/// is not finite, or from which squared distances may overflow, by row (`first_row` is added) and column.
kernels::TableRanges scan_table(const Context& ctx, const TableView& table, std::span<const double> weights = {},
                                std::int64_t first_row = 0);

/// The median of a sample of each column, [d].
std::vector<double> middle_of_table(const TableView& table);

}  // namespace vicinal::cpu
