// Missing values: NaN in a table of numbers. Rows that have some are left out, or the values are filled from a fitted
// table: by a column's mean or median, or from the nearest rows that have the value (docs/contract.md, clause 24).
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

/// What a missing value becomes.
enum class Filling : std::uint8_t {
  none,    ///< it stays, and whoever computes with the table refuses it
  mean,    ///< the mean of its column
  median,  ///< the median of its column
  knn,     ///< the mean of its column over the k nearest rows that have a value there
};

/// "none", "mean", "median", "knn".
VICINAL_API std::string_view name_of(Filling filling) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the names there are.
VICINAL_API Filling filling_from(std::string_view name);

struct ImputeOptions {
  Filling filling = Filling::knn;
  std::int64_t k = 5;  ///< of Filling::knn: neighbors, at least 1
};

/// Fills missing values by what a fitted table has. Columns of text (Table::categories) take no part: they are neither
/// compared nor filled.
class VICINAL_API Imputer {
 public:
  /// Fills nothing (Filling::none).
  Imputer() = default;

  /// What the columns of a table [n, d] are filled with. Filling::knn keeps a copy of the table.
  ///
  /// Throws `invalid_argument` for an empty table, one in device memory and options outside their domain; `bad_data`
  /// naming row and column of an infinite value and of a missing text, and the column that has no value at all or a sum
  /// beyond float64; `over_memory` before work begins; `cancelled`. O(n d) time, 8 n d bytes; the same bits for every
  /// thread count.
  static Imputer fit(const Context& ctx, const Table& table, const ImputeOptions& options = {});
  static Imputer fit(const Context& ctx, const TableView& table, const ImputeOptions& options = {});

  /// The rows with their missing values filled: float64 [m, d] that the result owns, or the table itself where nothing
  /// is missing. Names, labels and categories are those of the table given. `name` stands for the table in errors.
  ///
  /// Throws `invalid_argument` for another number of columns than the fitted table has, and for a table in device
  /// memory; `bad_data` naming row and column of an infinite value, of a missing text and of a mean beyond float64;
  /// `over_memory` before work begins; `cancelled`. With Filling::knn O(r n d) time, r the rows that have missing
  /// values, on the context's device; memory 8 (m + n) d bytes, and no r x n matrix: on a CUDA device batches of rows,
  /// within its limit. Otherwise O(m d) time on the host and 8 m d bytes. The same bits for every thread count,
  /// instruction set and device.
  [[nodiscard]] Table apply(const Context& ctx, Table table, const std::string& name = "table") const;
  [[nodiscard]] Table apply(const Context& ctx, const TableView& table, const std::string& name = "table") const;

  [[nodiscard]] Filling filling() const noexcept { return filling_; }
  [[nodiscard]] std::int64_t k() const noexcept { return k_; }
  /// [d]: the mean or median of each column of the fitted table, NaN of a column of text. With Filling::knn the mean,
  /// for rows that have nothing in common with any row that has the value.
  [[nodiscard]] const std::vector<double>& values() const noexcept { return values_; }
  /// Filling::knn: the fitted table, float64 [n, d] with NaN for what is missing; else an empty one.
  [[nodiscard]] TableView donors() const noexcept;

  /// An imputer of given parts: donors [n, values.size()] row-major, empty unless Filling::knn. Throws
  /// `invalid_argument` for values that are infinite, k below 1, and donors that do not fit or are infinite.
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
  Table table;                     ///< with their labels; the table given, where no row has a missing value
  std::vector<std::int64_t> rows;  ///< ascending: the numbers of these rows in the table given
};
/// Leaves out the rows of a table [n, d] that have a missing value (NaN). What is kept is float64, unless it is all.
/// O(n d) time, 8 n d bytes. Throws `invalid_argument` for a table in device memory and labels that do not number its
/// rows; `bad_data` where no row is left; `over_memory`, `cancelled`. `name` stands for the table in errors.
VICINAL_API CompleteRows complete_rows(const Context& ctx, Table table, const std::string& name = "table");

}  // namespace vicinal
