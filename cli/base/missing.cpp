// See missing.hpp.
#include "base/missing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/input.hpp"
#include "base/output.hpp"

namespace vicinal::cli {

ImputeOptions MissingArguments::options() const {
  return {.filling = fills() ? filling_from(missing) : Filling::none, .k = k};
}

std::uint64_t MissingArguments::fill_bytes(const Context& ctx, const TableView& table, const TableView& asked) const {
  if (!any() || table.rows() == 0 || table.cols() == 0) return 0;
  if (fills()) {
    const std::uint64_t first = plan_impute(ctx, table, table, options()).memory;
    if (asked.rows() == 0) return first;
    const auto filled = [&](std::int64_t rows) {
      return static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(table.cols()) * sizeof(double);
    };
    // They may have columns that the table was read without.
    const TableView like(asked.data(), asked.dtype(), asked.rows(), table.cols(), 0, 0);
    const std::uint64_t then = plan_impute(ctx, table, like, options()).memory;
    return std::max(first + filled(asked.rows()), then > first ? filled(table.rows()) + then : 0);
  }
  return static_cast<std::uint64_t>(table.rows()) *
         (static_cast<std::uint64_t>(table.cols()) * sizeof(double) + 3 * sizeof(std::int64_t));
}

std::vector<std::int64_t> MissingArguments::drop_rows(const Context& ctx, Table& table, const std::string& file,
                                                      const RowsNeeded& needed) const {
  if (!drops()) return {};
  const std::int64_t rows = table.view.rows();
  CompleteRows kept = complete_rows(ctx, std::move(table), file);
  table = std::move(kept.table);
  const std::int64_t dropped = rows - table.view.rows();
  if (dropped == 0) return {};
  if (table.view.rows() < needed.rows) {
    throw Error(
        ErrorCode::bad_data,
        fmt::format("{}: {} of {} rows have missing values, so that --missing drop leaves {}, too few for {}; fill the "
                    "values by mean, median or knn",
                    file, dropped, rows, table.view.rows(), needed.by));
  }
  add_note(fmt::format("{}: {} of {} rows have missing values and are left out", file, format_count(dropped),
                       format_count(rows)));
  return std::move(kept.rows);
}

void MissingArguments::refuse_drop(const std::string& why) const {
  if (!drops()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--missing drop: {}; fill the values by mean, median or knn, or leave out the rows first by "
                          "vicinal convert --missing drop",
                          why));
}

void MissingArguments::refuse_drop_into(const std::string& output) const {
  if (output.ends_with(".npy")) refuse_drop("-o: a .npy has no place for the numbers of rows, as .csv and .npz have");
}

void keep_rows(const Context& ctx, const std::vector<std::int64_t>& rows, Table& table) {
  if (rows.empty()) return;
  const auto values = std::make_shared<std::vector<double>>();
  values->reserve(rows.size() * static_cast<std::size_t>(table.view.cols()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % 4096 == 0) ctx.check_cancelled();
    for (std::int64_t j = 0; j < table.view.cols(); ++j) values->push_back(value_at(table.view, rows[i], j));
  }
  table.view = TableView(values->data(), static_cast<std::int64_t>(rows.size()), table.view.cols());
  table.storage = values;
}

void add_missing_options(const Parser& command, MissingArguments& arguments) {
  const std::string group = "Missing values";
  command
      .add_choice("--missing", arguments.missing, {"error", "drop", "mean", "median", "knn"},
                  "Missing values (NaN; in CSV empty, NA, null, ?): refuse them, drop their rows, or fill them by "
                  "their column's mean or median or from the nearest rows")
      .group(group);
  command.add_option("--missing-k", arguments.k, "Number of nearest rows whose mean --missing knn uses")
      .type_name("K")
      .capture_default_str()
      .group(group);
}

bool is_missing_option(const std::string& name) {
  return name == "--missing" || name == "--missing-k";
}

}  // namespace vicinal::cli
