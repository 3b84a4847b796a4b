// Missing values: NaN in a table of numbers. Rows with missing values are dropped, or the values are filled from a
// fitted table: by the mean or median of the column, or from the nearest rows that have the value (docs/contract.md,
// clause 24).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/io.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// How a missing value is replaced.
enum class Filling : std::uint8_t {
  none,    ///< not at all; functions that compute with the table refuse it
  mean,    ///< the mean of its column
  median,  ///< the median of its column
  knn,     ///< the mean of its column over the k nearest rows that have a value there
};

/// "none", "mean", "median", "knn".
VICINAL_API std::string_view name_of(Filling filling) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API Filling filling_from(std::string_view name);

struct ImputeOptions {
  Filling filling = Filling::knn;
  std::int64_t k = 5;  ///< Filling::knn: number of neighbors, at least 1
};

/// Fills missing values from a fitted table. Columns of text (Table::categories) are neither compared nor filled.
class VICINAL_API Imputer {
 public:
  /// Fills nothing (Filling::none).
  Imputer() = default;

  /// An imputer that is fitted on a table [n, d]. With Filling::knn it keeps a copy of the table.
  ///
  /// Throws `invalid_argument` for an empty table, one in device memory and options outside their domain; `bad_data`
  /// naming row and column of an infinite value and of a missing text, and the column that has no value at all or a sum
  /// beyond float64; `over_memory` before work begins; `cancelled`. O(n d) time, 8 n d bytes; the same bits for every
  /// thread count.
  static Imputer fit(const Context& ctx, const Table& table, const ImputeOptions& options = {});
  static Imputer fit(const Context& ctx, const TableView& table, const ImputeOptions& options = {});

  /// The rows of a table [m, d] with their missing values filled: float64 [m, d] that the result owns, or the table
  /// itself if nothing is missing. Names, labels and categories are those of the argument. `name` is the table's name
  /// in errors.
  ///
  /// Throws `invalid_argument` for another number of columns than the fitted table has, and for a table in device
  /// memory; `bad_data` naming row and column of an infinite value, of a missing text and of a mean beyond float64;
  /// `over_memory` before work begins; `cancelled`. With Filling::knn O(r n d) time for r rows with missing values, on
  /// the context's device; memory 8 (m + n) d bytes, and no r x n matrix: a CUDA device takes batches of rows, within
  /// its memory limit. Otherwise O(m d) time on the host and 8 m d bytes. The same bits for every thread count,
  /// instruction set and device.
  [[nodiscard]] Table apply(const Context& ctx, Table table, const std::string& name = "table") const;
  [[nodiscard]] Table apply(const Context& ctx, const TableView& table, const std::string& name = "table") const;

  [[nodiscard]] Filling filling() const noexcept { return filling_; }
  [[nodiscard]] std::int64_t k() const noexcept { return k_; }
  /// [d] the mean or median of each column of the fitted table, NaN for a column of text. With Filling::knn the mean,
  /// which fills rows that share no column with any row that has the value.
  [[nodiscard]] const std::vector<double>& values() const noexcept { return values_; }
  /// Filling::knn: the fitted table, float64 [n, d] with NaN for missing values; else an empty table.
  [[nodiscard]] TableView donors() const noexcept;

  /// An imputer from its parts: `values` as `values()` returns them, and donors [n, values.size()] row-major, empty
  /// unless Filling::knn. Throws `invalid_argument` for infinite values, k below 1, and donors that do not fit or are
  /// infinite.
  static Imputer of(const ImputeOptions& options, std::vector<double> values, std::vector<double> donors = {});

 private:
  Filling filling_ = Filling::none;
  std::int64_t k_ = 0;
  std::vector<double> values_;
  std::shared_ptr<const std::vector<double>> donors_;
};

/// What fitting an Imputer of a table [n, d] and applying it to rows [m, d] takes, and where it runs, by shapes alone:
/// as much as where every row has missing values. Only Filling::knn computes on the context's device. O(1) time. Throws
/// `invalid_argument` as `fit` and `apply` do for options and shapes; `over_memory` where a device has no room.
VICINAL_API Plan plan_impute(const Context& ctx, const TableView& fitted, const TableView& rows,
                             const ImputeOptions& options = {});

/// How many values are missing (NaN) in each column: [d]. O(n d) time on all threads. Throws `invalid_argument` for a
/// table in device memory, `over_memory`, `cancelled`.
VICINAL_API std::vector<std::int64_t> count_missing(const Context& ctx, const TableView& table);

/// The rows of a table that have every value.
struct CompleteRows {
  Table table;                     ///< these rows with their labels; the argument itself if no row has a missing value
  std::vector<std::int64_t> rows;  ///< ascending: the numbers of these rows in the argument
};
/// Drops the rows of a table [n, d] that have a missing value (NaN). The result is float64, unless no row is dropped.
/// O(n d) time, 8 n d bytes. Throws `invalid_argument` for a table in device memory and labels that are not as many as
/// its rows; `bad_data` if no row is left; `over_memory`, `cancelled`. `name` is the table's name in errors.
VICINAL_API CompleteRows complete_rows(const Context& ctx, Table table, const std::string& name = "table");

}  // namespace vicinal
