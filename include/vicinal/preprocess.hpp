// Preparation: what is done to columns before rows are compared (docs/contract.md, clause 20). Missing values are
// filled, texts become codes, and columns of different size are brought to one. It is fitted on one table, applied to
// that table and to later ones, and saved with every model.
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

/// What a column of text becomes.
enum class TextCodes : std::uint8_t {
  ordinal,  ///< one column: the text's position in the sorted texts of the fitted table; a new text: the one after
  one_hot,  ///< a column for each text, 1 for the row's own and 0 otherwise; not scaled. A new text: all 0
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
  TextCodes texts = TextCodes::ordinal;  ///< of columns of text (Table::categories)
  /// How missing values (NaN) are filled, before anything else: what is scaled is the filled table.
  ImputeOptions missing = {.filling = Filling::none};
};

class VICINAL_API Preparation {
 public:
  /// What happens to one column of the fitted table: its number or code x becomes (x - shift) / scale.
  struct Column {
    std::string name;                     ///< empty where the table names none
    std::vector<std::string> categories;  ///< texts in ascending order of their bytes; empty: a column of numbers
    double shift = 0;
    double scale = 1;      ///< above 0
    bool one_hot = false;  ///< then neither shifted nor scaled

    /// Columns that it becomes.
    [[nodiscard]] std::int64_t width() const noexcept {
      return one_hot ? static_cast<std::int64_t>(categories.size()) : 1;
    }
  };

  /// Does nothing, to tables of any width.
  Preparation() = default;

  /// What brings the columns of a table [n, d] to one size, and its columns of text to numbers. Sums are exact and
  /// rounded once, so the same bits come for every thread count. Nothing is read with Scaling::none and Filling::none.
  /// With Filling::knn the result keeps a copy of the table, and with scaling as well the table is filled here to find
  /// the scales, which `apply` does again.
  ///
  /// Throws `invalid_argument` for options outside their domain, a table in device memory, and categories that are not
  /// as many as the columns or not in ascending order, `bad_data` naming row and column of the first value that is not
  /// finite, and a column whose range is beyond float64, `over_memory` before work begins, `cancelled`, and what
  /// Imputer throws. O(n d) time in one pass over the table, with Scaling::standard two; memory: at most 1.2 kB for
  /// each column and thread, and the texts; with a filling that of Imputer as well.
  static Preparation fit(const Context& ctx, const Table& table, const PreparationOptions& options = {});
  static Preparation fit(const Context& ctx, const TableView& table, const PreparationOptions& options = {});

  /// The rows as they are compared: float64 [n, width()], or the table itself where nothing changes. The result owns
  /// its rows; labels and names of the columns are those of the table given. `name` stands for the table in errors.
  ///
  /// Columns are compared in their order: `read` brings those of a file into that of the fitted table. Throws
  /// `invalid_argument` for another number of columns than the fitted table has, and for a table in device memory;
  /// `bad_data` for other names of columns, for numbers where the fitted table has text or text where it has numbers,
  /// and naming row and column of the first value that is not finite before or after scaling; `over_memory` before work
  /// begins; `cancelled`; and with a filling what Imputer::apply throws. O(n width()) time, 8 n width() bytes, and
  /// those of Imputer::apply; the same bits for every thread count.
  [[nodiscard]] Table apply(const Context& ctx, Table table, const std::string& name = "table") const;
  /// As above. A TableView has no texts: throws `invalid_argument` naming the first column of text, if there is one.
  [[nodiscard]] Table apply(const Context& ctx, const TableView& table, const std::string& name = "table") const;

  /// Reads another table of the same columns from a file, as `read_table` does, but does not prepare it: where both
  /// name their columns, those of the fitted table are found by their names and come in its order, and Table::notes
  /// says which others are left out, unless `options` leave them out, too (`matched`). In a CSV, the columns that hold
  /// text in the fitted table are read as text, whatever they look like, and missing values are read where there is a
  /// filling (ReadOptions::missing). Throws what `read_table` throws, and `bad_data` naming the columns that the file
  /// lacks.
  [[nodiscard]] Table read(const Context& ctx, const std::filesystem::path& path, ReadOptions options = {}) const;

  struct Matched {
    ReadOptions options;
    std::string note;  ///< a sentence on columns that neither the fitted table nor the caller's options name
  };
  /// `options` with which a file, whose columns have these names (none where they have no names), is read as the fitted
  /// table. Where both have names, all of them different in the fitted table, ReadOptions::only has its columns;
  /// else columns are those of the same position, and names that both have must be the same. Columns of text are in
  /// ReadOptions::text. Throws `bad_data` naming the columns that are not there; `file` stands for it.
  [[nodiscard]] Matched matched(ReadOptions options, const std::vector<std::string>& names,
                                const std::string& file) const;

  /// Of the fitted table; empty: a preparation that does nothing.
  [[nodiscard]] const std::vector<Column>& columns() const noexcept { return columns_; }
  [[nodiscard]] Scaling scaling() const noexcept { return scaling_; }
  [[nodiscard]] bool has_texts() const noexcept;
  /// Whether every column has a name, and no two the same: then `matched` goes by them.
  [[nodiscard]] bool has_names() const;
  /// What fills missing values.
  [[nodiscard]] const Imputer& imputer() const noexcept { return imputer_; }
  /// Whether `apply` changes rows.
  [[nodiscard]] bool changes_rows() const noexcept {
    return scaling_ != Scaling::none || has_texts() || imputer_.filling() != Filling::none;
  }
  /// Columns of prepared rows; 0 for a preparation without columns.
  [[nodiscard]] std::int64_t width() const noexcept;
  /// The name of a prepared column: that of the column it was made of, "column 3" (from 0) where it has none, and
  /// "protocol=tcp" for a column of one-hot codes.
  [[nodiscard]] std::string name_of(std::int64_t column) const;

  /// A preparation of given columns. Throws `invalid_argument` for categories that do not ascend, one-hot columns
  /// without categories, shifts or scales that are not finite or not above 0, and an imputer of other columns.
  static Preparation of(std::vector<Column> columns, Scaling scaling, Imputer imputer = {});

 private:
  std::vector<Column> columns_;
  Scaling scaling_ = Scaling::none;
  Imputer imputer_;
};

}  // namespace vicinal
