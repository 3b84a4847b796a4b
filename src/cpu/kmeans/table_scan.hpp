// What one reading of a table tells k-means: that its values are finite and not too large, how long its columns'
// numbers are, and a point in their middle.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/kmeans/sums.hpp"
#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cpu {

struct TableScan {
  double largest = 0;                ///< of |value|
  std::vector<double> centre;        ///< [d] the median of a sample of each column
  std::vector<ColumnRange> columns;  ///< [d] of the values
  std::vector<double> least;         ///< [d] of |value| but 0
};

/// O(n d). Throws `bad_data` for a value that is not finite, or from which squared distances may overflow, by row and
/// column.
TableScan scan_table(const Context& ctx, const TableView& table);

/// The ranges of weight times value, rounded. Throws `bad_data` where sums of them might overflow.
std::vector<ColumnRange> terms_of(const TableScan& scan, std::span<const double> weights);

}  // namespace vicinal::cpu
