// The options --missing and --missing-k.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/common_options.hpp"
#include "base/parser.hpp"
#include "vicinal/impute.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

/// How many rows an option needs, "-k 5".
struct RowsNeeded {
  std::int64_t rows = 1;
  std::string by;
};

struct MissingArguments {
  std::string missing = "error";
  std::int64_t k = 5;

  [[nodiscard]] bool any() const { return missing != "error"; }
  [[nodiscard]] bool drops() const { return missing == "drop"; }
  [[nodiscard]] bool fills() const { return any() && !drops(); }
  [[nodiscard]] ImputeOptions options() const;
  /// Where what they ask for runs.
  [[nodiscard]] Computes computes() const { return missing == "knn" ? Computes::on_device : Computes::on_host; }
  /// Bytes of host memory that filling or dropping takes beside the table: of what is filled and of what fills
  /// (plan_impute); of what is left, its rows' numbers and what files of one value a row have for them. Rows that are
  /// `asked` about are filled after the table, from it.
  [[nodiscard]] std::uint64_t fill_bytes(const Context& ctx, const TableView& table, const TableView& asked = {}) const;
  /// Leaves out the rows of a table that have missing values, where that is asked for, and notes how many. The numbers
  /// in the file of the rows that are left; empty where they are as they were. Throws `bad_data` where some were left
  /// out and fewer are left than needed.
  [[nodiscard]] std::vector<std::int64_t> drop_rows(const Context& ctx, Table& table, const std::string& file,
                                                    const RowsNeeded& needed = {}) const;
  /// Refuses `drop` for what numbers all rows, or has no place for the numbers of those that are left.
  void refuse_drop(const std::string& why) const;
  /// Refuses it where the output has no place for the numbers of rows.
  void refuse_drop_into(const std::string& output) const;
};

void add_missing_options(const Parser& command, MissingArguments& arguments);
/// Whether it is one of theirs.
bool is_missing_option(const std::string& name);

/// read(), of a table to which --missing applies: where it refuses a missing value, the sentence names the option.
template <class Read>
Table naming_missing(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    const std::string sentence = error.what();
    if (error.code() != ErrorCode::bad_data || !sentence.ends_with("(a missing value)")) throw;
    throw Error(error.code(), sentence + "; --missing fills such values or leaves out their rows");
  }
}

/// The number in its file of a row of a table; `numbers` are those that drop_rows gave.
inline std::int64_t row_number(std::int64_t row, std::span<const std::int64_t> numbers) {
  return numbers.empty() ? row : numbers[static_cast<std::size_t>(row)];
}

/// A table of numbers with the rows given; as it was where none are.
void keep_rows(const Context& ctx, const std::vector<std::int64_t>& rows, Table& table);

/// Those of the values that belong to the rows given; all of them where none are.
template <class Value>
void keep_rows(const std::vector<std::int64_t>& rows, std::size_t width, std::vector<Value>& values) {
  if (rows.empty()) return;
  std::vector<Value> kept;
  kept.reserve(rows.size() * width);
  for (const std::int64_t row : rows) {
    const auto first = values.begin() + row * static_cast<std::ptrdiff_t>(width);
    kept.insert(kept.end(), first, first + static_cast<std::ptrdiff_t>(width));
  }
  values = std::move(kept);
}

}  // namespace vicinal::cli
