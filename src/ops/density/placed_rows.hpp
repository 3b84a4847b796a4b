// Rows of a table in places of their own, as float64, and the distances of pairs, one by one (contract clauses 1 and
// 2).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal::ops {

/// A row as PlacedRows compares it: of cosine brought to length one.
struct ComparedRow {
  const double* values;
  bool is_zero;  ///< of cosine
};

/// Rows in places.
class PlacedRows {
 public:
  /// `rows`: the table's row at each place.
  PlacedRows(const Context& ctx, const TableView& table, std::vector<std::int64_t> rows, Metric metric, double p);

  [[nodiscard]] std::int64_t cols() const noexcept { return cols_; }
  /// Pairs between two looks at the cancel token: some milliseconds, also with a power for each column.
  [[nodiscard]] std::int64_t polled_pairs() const noexcept;
  [[nodiscard]] std::int64_t count() const noexcept { return static_cast<std::int64_t>(rows_.size()); }
  /// The table's row at a place.
  [[nodiscard]] std::int64_t row_at(std::int64_t place) const { return rows_[static_cast<std::size_t>(place)]; }
  /// As reported (contract clause 2). Throws `bad_data` where it overflows.
  [[nodiscard]] double distance(std::int64_t a, std::int64_t b) const;
  /// Row `row` of another table as it is compared, written to values[cols].
  [[nodiscard]] ComparedRow compared(const TableView& table, std::int64_t row, double* values) const;
  /// The key of such a row and a place; infinity where it overflows.
  [[nodiscard]] double key_to(const ComparedRow& row, std::int64_t place) const;
  /// What is reported for a key.
  [[nodiscard]] double reported(double key) const;

 private:
  [[nodiscard]] double key(const ComparedRow& x, const ComparedRow& y) const;
  [[nodiscard]] ComparedRow at(std::int64_t place) const;

  std::vector<std::int64_t> rows_;
  std::int64_t cols_;
  Metric metric_;
  double p_;
  std::vector<double> values_;         // [count, cols]
  std::vector<std::uint8_t> is_zero_;  // of cosine
};

/// Calls body(first, last, worker) for ranges of [begin, end) of about as much work, on all threads where it is worth
/// it. `cols`: of what is compared for each.
void for_ranges(const Context& ctx, std::int64_t begin, std::int64_t end, std::int64_t cols,
                const std::function<void(std::int64_t first, std::int64_t last, int worker)>& body);
/// The length of each of these ranges but the last.
std::int64_t range_length(std::int64_t cols) noexcept;

}  // namespace vicinal::ops
