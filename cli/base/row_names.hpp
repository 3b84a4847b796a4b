// What rows are called in outputs: by their numbers, or by the ids that --id reads.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/output.hpp"
#include "base/parser.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

class RowNames {
 public:
  /// Numbers.
  RowNames() = default;
  /// The ids of the table, borrowed; where it has none, numbers: those given of its rows, or their own.
  explicit RowNames(const Table& table, std::vector<std::int64_t> numbers = {})
      : ids_(table.ids ? &*table.ids : nullptr), numbers_(std::move(numbers)) {}

  explicit RowNames(const Table&&, std::vector<std::int64_t> = {}) = delete;

  /// The rows' numbers, where they are others than 0, 1, ..; else empty.
  [[nodiscard]] const std::vector<std::int64_t>& numbers() const noexcept { return numbers_; }
  /// Null for numbers.
  [[nodiscard]] const RowIds* ids() const noexcept { return ids_; }
  /// Of a column of names: "row", or that of the ids.
  [[nodiscard]] std::string header() const;
  [[nodiscard]] std::string text(std::int64_t row) const;
  /// As a field of CSV.
  [[nodiscard]] std::string field(std::int64_t row) const;
  /// A number, or a text where not all ids are whole numbers.
  [[nodiscard]] Json json(std::int64_t row) const;

 private:
  [[nodiscard]] std::int64_t number_of(std::int64_t row) const {
    return numbers_.empty() ? row : numbers_[static_cast<std::size_t>(row)];
  }

  const RowIds* ids_ = nullptr;
  std::vector<std::int64_t> numbers_;
};

/// Throws what writing the ids of a table to an .npz would throw, naming `file`, from which they come: before there is
/// anything to write. Nothing for other outputs.
void require_ids_fit(const Context& ctx, const std::string& output, const std::string& file, const Table& table);

/// --id, for a command whose outputs tell of rows.
void add_id_option(const Parser& command, std::string& id);

}  // namespace vicinal::cli
