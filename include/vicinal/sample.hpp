// sample_rows: a random sample of a table's rows (docs/contract.md, clause 22), for computations in O(n^2) and for
// pictures.
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// Some rows of a table, as float64.
struct TableSample {
  std::vector<std::int64_t> ids;  ///< [s] their numbers in the table, ascending
  std::vector<double> values;     ///< [s, cols]
  std::int64_t cols = 0;

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(ids.size()); }
  /// Borrows `values`.
  [[nodiscard]] TableView view() const noexcept { return {values.data(), size(), cols}; }
};

/// `count` rows of a table, drawn without replacement, each with the same probability; all rows if there are not more.
/// The same seed gives the same rows on every machine. All values are copied, including NaN and infinity.
///
/// O(count cols) time and memory; a table in a device's memory is copied to the host first. Throws `invalid_argument`
/// for an empty table and a count below 1, `over_memory`, `cancelled`.
VICINAL_API TableSample sample_rows(const Context& ctx, const TableView& table, std::int64_t count,
                                    std::uint64_t seed = 0);

}  // namespace vicinal
