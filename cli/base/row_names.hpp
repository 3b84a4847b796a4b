// What rows are called in outputs: by their numbers, or by the ids that --id reads.
#pragma once

#include <cstdint>
#include <string>

#include "base/output.hpp"
#include "base/parser.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

class RowNames {
 public:
  /// Numbers.
  RowNames() = default;
  /// The ids of the table, borrowed; numbers where it has none.
  explicit RowNames(const Table& table) : ids_(table.ids ? &*table.ids : nullptr) {}

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
  const RowIds* ids_ = nullptr;
};

/// --id, for a command whose outputs tell of rows.
void add_id_option(const Parser& command, std::string& id);

}  // namespace vicinal::cli
