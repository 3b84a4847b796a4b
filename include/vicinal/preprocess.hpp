// Preparation of columns before rows are compared (docs/contract.md, clause 20): missing values are filled, texts
// become codes, and columns of different units are scaled. A preparation is fitted on one table, applied to that table
// and to later ones, and saved with every model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/impute.hpp"
#include "vicinal/io.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// How columns of numbers are scaled. A column of one value is only shifted.
enum class Scaling : std::uint8_t {
  none,
  standard,  ///< to mean 0 and standard deviation 1 (of n, not n - 1)
  minmax,    ///< to 0 .. 1
};

/// How a column of text is encoded.
enum class TextCodes : std::uint8_t {
  ordinal,  ///< one column: the position of the text in the sorted texts of the fitted table; a new text gets the next
            ///< number
  one_hot,  ///< one column for each text: 1 in rows with this text, else 0; not scaled. A new text: 0 in all columns
};

/// "none", "standard", "minmax".
VICINAL_API std::string_view name_of(Scaling scaling) noexcept;
/// "ordinal", "onehot".
VICINAL_API std::string_view name_of(TextCodes codes) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API Scaling scaling_from(std::string_view name);
VICINAL_API TextCodes text_codes_from(std::string_view name);

struct PreparationOptions {
  Scaling scaling = Scaling::none;
  TextCodes texts = TextCodes::ordinal;  ///< encoding of columns of text (Table::categories)
  /// How missing values (NaN) are filled. This is the first step; the filled table is scaled.
  ImputeOptions missing = {.filling = Filling::none};
};

class VICINAL_API Preparation {
 public:
  /// The preparation of one column of the fitted table: a number or code x becomes (x - shift) / scale.
  struct Column {
    std::string name;                     ///< empty if the table has no names
    std::vector<std::string> categories;  ///< texts in ascending order of their bytes; empty: a column of numbers
    double shift = 0;
    double scale = 1;      ///< above 0
    bool one_hot = false;  ///< then neither shifted nor scaled

    /// Number of prepared columns that it becomes.
    [[nodiscard]] std::int64_t width() const noexcept {
      return one_hot ? static_cast<std::int64_t>(categories.size()) : 1;
    }
  };

  /// A preparation that does nothing, for tables of any width.
  Preparation() = default;

  /// Fits a preparation on a table [n, d]: the scales of its columns, the texts of its columns of text, and the filling
  /// of missing values. Sums are exact and rounded once, so the bits are the same for every thread count. With
  /// Scaling::none and Filling::none no row is read. With Filling::knn the result keeps a copy of the table; with
  /// scaling as well, the table is filled here to compute the scales, and again by `apply`.
  ///
  /// Throws `invalid_argument` for options outside their domain, a table in device memory, and categories that are not
  /// as many as the columns or not in ascending order, `bad_data` naming row and column of the first value that is not
  /// finite, and a column whose range is beyond float64, `over_memory` before work begins, `cancelled`, and what
  /// Imputer throws. O(n d) time in one pass over the table, with Scaling::standard two; memory: at most 1.2 kB for
  /// each column and thread, and the texts; with a filling that of Imputer as well.
  static Preparation fit(const Context& ctx, const Table& table, const PreparationOptions& options = {});
  static Preparation fit(const Context& ctx, const TableView& table, const PreparationOptions& options = {});

  /// The prepared rows of a table [n, d]: float64 [n, width()] that the result owns, or the table itself if nothing
  /// changes. Labels and names of columns are those of the argument. `name` is the table's name in errors.
  ///
  /// Columns are used in their order; `read` brings the columns of a file into the order of the fitted table. Throws
  /// `invalid_argument` for another number of columns than the fitted table has, and for a table in device memory;
  /// `bad_data` for other names of columns, for numbers where the fitted table has text or text where it has numbers,
  /// and naming row and column of the first value that is not finite before or after scaling; `over_memory` before work
  /// begins; `cancelled`; and, with a filling, what Imputer::apply throws. O(n width()) time, 8 n width() bytes, and
  /// those of Imputer::apply; the same bits for every thread count.
  [[nodiscard]] Table apply(const Context& ctx, Table table, const std::string& name = "table") const;
  /// As above. A TableView has no texts, so if the fitted table has a column of text, this throws `invalid_argument`
  /// naming the first one.
  [[nodiscard]] Table apply(const Context& ctx, const TableView& table, const std::string& name = "table") const;

  /// Reads another table with the same columns from a file, as `read_table` does; the rows are not prepared. If the
  /// file and the fitted table both have column names, the columns of the fitted table are found by their names and are
  /// returned in its order. Table::notes names the other columns that are ignored, except those that `options` ignore
  /// (`matched`). In a CSV, columns that are text in the fitted table are read as text, also if they look like numbers,
  /// and missing values are read if there is a filling (ReadOptions::missing). Throws what `read_table` throws, and
  /// `bad_data` naming the columns that the file lacks.
  [[nodiscard]] Table read(const Context& ctx, const std::filesystem::path& path, ReadOptions options = {}) const;

  struct Matched {
    ReadOptions options;
    std::string
        note;  ///< a sentence that names columns which neither the fitted table nor the caller's options name; or empty
  };
  /// The options for reading a file whose columns have `names` (empty if it has no names) like the fitted table. If
  /// both have names, and those of the fitted table are all different, ReadOptions::only has the columns of the fitted
  /// table. Otherwise columns are matched by position, and names that both have must be equal. ReadOptions::text has
  /// the columns of text. Throws `bad_data` naming the missing columns and `file`.
  [[nodiscard]] Matched matched(ReadOptions options, const std::vector<std::string>& names,
                                const std::string& file) const;

  /// The columns of the fitted table; empty: a preparation that does nothing.
  [[nodiscard]] const std::vector<Column>& columns() const noexcept { return columns_; }
  [[nodiscard]] Scaling scaling() const noexcept { return scaling_; }
  [[nodiscard]] bool has_texts() const noexcept;
  /// Whether every column has a name and all names are different, so that `matched` uses names.
  [[nodiscard]] bool has_names() const;
  /// The imputer that fills missing values.
  [[nodiscard]] const Imputer& imputer() const noexcept { return imputer_; }
  /// Whether `apply` changes rows.
  [[nodiscard]] bool changes_rows() const noexcept {
    return scaling_ != Scaling::none || has_texts() || imputer_.filling() != Filling::none;
  }
  /// Columns of prepared rows; 0 for a preparation without columns.
  [[nodiscard]] std::int64_t width() const noexcept;
  /// The name of a prepared column: the name of the original column, or "column 3" (counted from 0) if it has none;
  /// "protocol=tcp" for a column of one-hot codes.
  [[nodiscard]] std::string name_of(std::int64_t column) const;

  /// A preparation from its parts. Throws `invalid_argument` for categories that are not in ascending order, one-hot
  /// columns without categories, shifts that are not finite, scales that are not finite and above 0, and an imputer of
  /// other columns.
  static Preparation of(std::vector<Column> columns, Scaling scaling, Imputer imputer = {});

 private:
  std::vector<Column> columns_;
  Scaling scaling_ = Scaling::none;
  Imputer imputer_;
};

}  // namespace vicinal
