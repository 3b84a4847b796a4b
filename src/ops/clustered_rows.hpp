// The rows that k-means works on (contract clause 12): a table as it is, or, where some rows have no weight, two copies
// in the host's memory, one of those that have and one of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::ops {

struct RowCopy {
  std::unique_ptr<std::byte[]> bytes;
  TableView table;
};

class ClusteredRows {
 public:
  /// Weights: [n] finite and at least 0, or empty: 1 each. Where none is 0 the table itself is used, and not looked at;
  /// else it is read twice. Throws `bad_data` for what `kernels::Backend::lloyd` refuses, in rows that it leaves out
  /// too.
  ClusteredRows(const Context& ctx, const TableView& table, std::span<const double> weights);

  [[nodiscard]] const TableView& table() const noexcept { return kept_.table; }
  [[nodiscard]] std::span<const double> weights() const noexcept { return weights_; }
  /// The rows of weight 0, ascending, and their copy.
  [[nodiscard]] const std::vector<std::int64_t>& left_out() const noexcept { return left_out_; }
  [[nodiscard]] const TableView& table_left_out() const noexcept { return others_.table; }

 private:
  RowCopy kept_;
  RowCopy others_;
  std::span<const double> weights_;
  std::vector<double> kept_weights_;
  std::vector<std::int64_t> left_out_;
};

/// What a copy of so many rows will be like, without its rows: for plans.
TableView shape_of_copy(const TableView& table, std::int64_t rows);

}  // namespace vicinal::ops
