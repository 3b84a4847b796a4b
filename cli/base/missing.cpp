// See missing.hpp.
#include "base/missing.hpp"

#include <fmt/core.h>

#include <utility>

#include "base/output.hpp"

namespace vicinal::cli {

ImputeOptions MissingArguments::options() const {
  return {.filling = fills() ? filling_from(missing) : Filling::none, .k = k};
}

std::uint64_t MissingArguments::fill_bytes(const TableView& table) const {
  const std::uint64_t bytes = static_cast<std::uint64_t>(table.rows() * table.cols()) * sizeof(double);
  if (!any()) return 0;
  return missing == "knn" ? 3 * bytes : fills() ? 2 * bytes : bytes;
}

std::vector<std::int64_t> MissingArguments::drop_rows(const Context& ctx, Table& table, const std::string& file) const {
  if (!drops()) return {};
  const std::int64_t rows = table.view.rows();
  CompleteRows kept = complete_rows(ctx, std::move(table), file);
  table = std::move(kept.table);
  const std::int64_t dropped = rows - table.view.rows();
  if (dropped == 0) return {};
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

void add_missing_options(const Parser& command, MissingArguments& arguments) {
  const std::string group = "Missing values";
  command
      .add_choice("--missing", arguments.missing, {"error", "drop", "mean", "median", "knn"},
                  "Missing values (NaN; in CSV empty, NA, null, ?): refuse them, drop their rows, or fill them by "
                  "their column's mean or median or from the nearest rows")
      .group(group);
  command.add_option("--missing-k", arguments.k, "Nearest rows that --missing knn takes the mean of")
      .type_name("K")
      .capture_default_str()
      .group(group);
}

bool is_missing_option(const std::string& name) {
  return name == "--missing" || name == "--missing-k";
}

}  // namespace vicinal::cli
