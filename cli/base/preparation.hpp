// Columns before they are compared: texts become codes, and columns of different size are brought to one. Fitted on one
// table, applied to it and to every later one, and kept with a model as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/parser.hpp"
#include "vicinal/context.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

struct PreparationOptions {
  std::string categories = "none";
  std::string scale = "none";
};

void add_preparation_options(const Parser& command, PreparationOptions& options);

/// What happens to each column. A text becomes its number among the sorted texts of the fitted table, one that is not
/// there the number after the last; or, one-hot, as many columns as there are texts, 1 in its own and 0 in the others,
/// and for one that is not there 0 in all. Then x becomes (x - shift) / scale, but in one-hot columns.
class Preparation {
 public:
  struct Column {
    std::string name;                     ///< empty where the file names none
    std::vector<std::string> categories;  ///< ascending; none for a column of numbers
    double shift = 0;
    double scale = 1;
    bool one_hot = false;

    /// Columns that it becomes.
    [[nodiscard]] std::int64_t width() const noexcept {
      return one_hot ? static_cast<std::int64_t>(categories.size()) : 1;
    }
  };

  Preparation() = default;
  /// `categories`: none, where there are no texts; ordinal; onehot. `scale`: none; standard: mean and standard
  /// deviation (of n) become 0 and 1; minmax: least and largest value do. A column of one value is scaled by 1. Means
  /// and deviations are those of exact sums, rounded once. O(n d). Throws `bad_data` for numbers that are not finite,
  /// and where a column's range is beyond float64.
  static Preparation fit(const Context& ctx, const Table& table, const PreparationOptions& options);

  /// The table as it is to be compared: itself where nothing is to be done, else a copy as float64. `file` is for
  /// sentences. Throws `invalid_argument` for another number of columns, `bad_data` for other names of columns, or
  /// where a text has become a number or the other way round.
  [[nodiscard]] Table apply(const Context& ctx, Table table, const std::string& file) const;

  /// Tells the reader of another file which of its columns hold text: those of the fitted table, counted without
  /// `left_out` (names or positions), in a file whose columns have the given names, or none. Throws `bad_data` for
  /// names that are not those of the fitted table.
  void find_texts(ReadOptions& reading, const std::vector<std::string>& names, const std::vector<std::string>& left_out,
                  const std::string& file) const;

  [[nodiscard]] const std::vector<Column>& columns() const noexcept { return columns_; }
  [[nodiscard]] const std::string& scale() const noexcept { return scale_; }
  [[nodiscard]] bool has_texts() const noexcept;
  /// What became of columns of text: "ordinal", "one-hot"; empty where there are none.
  [[nodiscard]] std::string texts_as() const;
  /// Columns of a prepared table.
  [[nodiscard]] std::int64_t width() const noexcept;
  /// The name of a prepared column, or "column 3" from 0; "protocol=tcp" of a one-hot one.
  [[nodiscard]] std::string name_of(std::int64_t column) const;

  /// What becomes of the columns, as the options that ask for it; empty where nothing does.
  [[nodiscard]] std::string summary() const;
  /// As JSON, and back. Throws `bad_data` naming the file for text that `to_text` did not write for d prepared
  /// columns.
  [[nodiscard]] std::string to_text() const;
  static Preparation from_text(const std::string& text, std::int64_t d, const std::string& file);

 private:
  void require_same_names(const std::vector<std::string>& names, const std::string& file) const;
  void require_same_columns(const Table& table, const std::string& file) const;
  [[nodiscard]] std::string name_of_source(std::int64_t column) const;

  std::vector<Column> columns_;
  std::string scale_ = "none";
};

}  // namespace vicinal::cli
