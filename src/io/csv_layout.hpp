// What a delimited text file looks like before its rows are read: delimiter, header line, what each column is for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/bytes.hpp"
#include "io/csv_fields.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

/// `index`: it has no name and counts the rows, as tables of pandas and R do.
enum class ColumnRole : std::uint8_t { number, text, label, id, dropped, index };

/// How the lines of a text are counted in sentences.
struct LineCount {
  std::int64_t first = 1;   ///< the number of the first
  bool row_a_line = false;  ///< as Dialect::row_a_line
};

struct CsvLayout {
  std::string where;  ///< "'file.csv'", opens every sentence
  Dialect dialect;
  const char* body = nullptr;  ///< where the first data row may begin
  const char* end = nullptr;
  std::int64_t body_line = 1;  ///< number of the line at `body`, from 1
  bool header = false;
  bool header_of_numbers = false;  ///< 0, 1, .., d - 1
  bool unnamed_first = false;      ///< the header names the first column by nothing, or by what pandas makes of that
  bool missing = false;            ///< missing values become NaN
  std::int64_t index_base = 0;     ///< what the first row of an index holds: 0 or 1
  std::vector<std::string> names;  ///< [fields], empty without a header
  std::vector<ColumnRole> roles;   ///< [fields]
  std::vector<std::int64_t> found_texts;  ///< of role text, because of what is in them
  std::int64_t numbers = 0;               ///< columns of role number or text: those of the table
  std::int64_t texts = 0;                 ///< columns of role text
  /// Where the columns of role number or text, in the file's order, are in the table; empty: in that order.
  std::vector<std::int64_t> places;

  [[nodiscard]] std::int64_t fields() const noexcept { return static_cast<std::int64_t>(roles.size()); }
  /// The column of the table that the `at`-th of role number or text is.
  [[nodiscard]] std::int64_t place(std::int64_t at) const noexcept {
    return places.empty() ? at : places[static_cast<std::size_t>(at)];
  }
  [[nodiscard]] bool has(ColumnRole role) const noexcept {
    return std::find(roles.begin(), roles.end(), role) != roles.end();
  }
  /// The name of the column of that role, empty where there is none.
  [[nodiscard]] std::string name_of(ColumnRole role) const;
  /// "column 'age'", or "column 3" (from 0) without names.
  [[nodiscard]] std::string column_name(std::int64_t column) const;
  /// What was guessed and may be wrong: Table::notes.
  [[nodiscard]] std::vector<std::string> notes() const;
};

/// Whether the beginning of the bytes is text: no NUL or other control characters.
bool is_text(const Bytes& bytes) noexcept;

/// Moves p behind a byte order mark, blank lines and '#' lines at the top; counts the lines.
std::int64_t skip_preamble(const Context& ctx, const char*& p, const char* end);

/// Fields that each of the first lines has (1 when they differ), for separators other than blanks.
std::int64_t columns_of_sample(const Context& ctx, const char* begin, const char* end);

/// Looks at the first records only; their lines count as `lines` says. `invalid_argument` for options that
/// do not fit the file, `bad_data` for an empty one.
CsvLayout lay_out_csv(const Context& ctx, const Bytes& bytes, const std::string& file, const ReadOptions& options,
                      LineCount lines = {});

/// The layout for reading nothing but one column as labels.
CsvLayout lay_out_csv_labels(const Context& ctx, const Bytes& bytes, const std::string& file, const std::string& column,
                             std::optional<bool> header = {}, LineCount lines = {});

/// What pandas and R write for the name of an index column, and what pandas makes of that when it reads it.
inline bool is_no_name(std::string_view name) noexcept {
  return name.empty() || name == "Unnamed: 0";
}

/// Whether a text is a number (surrounding blanks removed before).
enum class NumberKind : std::uint8_t { number, missing, not_finite, too_large, text };
NumberKind parse_number(std::string_view text, double* value, char decimal = '.') noexcept;
/// The same of a table's field: True, False, Yes and No are 1 and 0, too.
NumberKind parse_cell(std::string_view text, double* value, char decimal) noexcept;

}  // namespace vicinal::io
