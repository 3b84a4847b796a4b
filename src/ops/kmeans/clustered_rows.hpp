// The rows that k-means works on (contract clause 12): a table as it is, or copies in the host's memory. Rows are
// copied where some have no weight, those that have and the others apart, and for cosine, brought to length one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/in_steps.hpp"
#include "core/poll.hpp"
#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal::ops {

struct RowCopy {
  std::unique_ptr<std::byte[]> bytes;
  TableView table;
};

class ClusteredRows {
 public:
  /// Weights: [n] finite and at least 0, or empty: 1 each. A table that need not be copied is not looked at; another is
  /// read twice. Throws `bad_data` for what `kernels::Backend::lloyd` refuses and, with Metric::cosine, for rows of
  /// zeros, whether they have a weight or not.
  /// `first_row` is added to the numbers of rows.
  ClusteredRows(const Context& ctx, const TableView& table, std::span<const double> weights, Metric metric,
                std::int64_t first_row = 0);

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

/// Puts values of the rows left out (ascending) among those of the others, in the order of the table. Throws
/// `cancelled`.
template <class T>
void insert_left_out(const Context& ctx, std::vector<T>& values, const std::vector<T>& others,
                     const std::vector<std::int64_t>& left_out) {
  // From the last row to the first, each value moves to its place.
  std::size_t kept = values.size();
  std::size_t other = others.size();
  core::resize_in_steps(ctx, values, static_cast<std::int64_t>(kept + other));
  core::Poll poll(ctx);
  for (std::size_t row = values.size(); row-- > 0;) {
    poll.step();
    const bool is_out = other > 0 && left_out[other - 1] == static_cast<std::int64_t>(row);
    values[row] = is_out ? others[--other] : values[--kept];
  }
}

/// A table that the host can read: itself, or, of one in a device's memory, its rows as float64, and the bytes that
/// this takes.
RowCopy rows_on_host(const Context& ctx, const TableView& table);
std::uint64_t bytes_on_host(const TableView& table);

/// Brings rows [n, d] to length one. Throws `bad_data` for a row of zeros; `number_of(i)` is the number it names.
void bring_to_length_one(const Context& ctx, std::span<double> rows, std::int64_t d, std::string_view table,
                         const std::function<std::int64_t(std::int64_t i)>& number_of);

/// Whether rows are copied, and the bytes that this takes on the host at most.
bool copies_rows(std::span<const double> weights, Metric metric);
std::uint64_t copy_bytes(const TableView& table, Metric metric);
/// What a copy of so many rows will be like, without its rows: for plans.
TableView shape_of_copy(const TableView& table, std::int64_t rows, Metric metric);

}  // namespace vicinal::ops
