// See cluster_output.hpp.
#include "density/cluster_output.hpp"

#include <fmt/core.h>

#include <optional>

#include "base/row_names.hpp"
#include "io/id_array.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

constexpr std::size_t kClustersPrinted = 30;

NamedArray written_array(const RowValues& value, std::int64_t n) {
  if (!value.numbers.empty()) return {value.array, {value.numbers.data(), "<f8", {n}}};
  if (!value.switches.empty()) return {value.array, {value.switches.data(), "|u1", {n}}};
  return {value.array, {value.integers.empty() ? value.rows.data() : value.integers.data(), "<i8", {n}}};
}

std::string field_of(const RowValues& value, const RowNames& names, std::size_t row) {
  if (!value.numbers.empty()) return format_number(value.numbers[row]);
  if (!value.switches.empty()) return fmt::format("{}", value.switches[row]);
  if (!value.integers.empty()) return fmt::format("{}", value.integers[row]);
  return value.rows[row] < 0 ? std::string() : names.field(value.rows[row]);
}

}  // namespace

void write_clusters(const Context& ctx, const std::string& output, const DensityRows& rows,
                    const std::vector<std::int64_t>& labels, const std::vector<RowValues>& values) {
  if (output.empty()) return;
  const auto n = static_cast<std::int64_t>(labels.size());
  if (output.ends_with(".npy")) return write_npy(output, {labels.data(), "<i8", {n}});
  if (output.ends_with(".npz")) {
    std::vector<NamedArray> arrays = {{"labels", {labels.data(), "<i8", {n}}}};
    for (const RowValues& value : values) {
      if (!value.array.empty()) arrays.push_back(written_array(value, n));
    }
    if (!rows.kept.empty()) arrays.push_back({"rows", {rows.kept.data(), "<i8", {n}}});
    std::optional<io::IdArray> ids;
    if (rows.table.ids) arrays.push_back({"row_ids", ids.emplace(ctx, output, *rows.table.ids).view()});
    return write_npz(output, arrays);
  }
  const RowNames names(rows.table, rows.kept);
  std::string text = csv_field(names.header()) + ",label";
  for (const RowValues& value : values) text += value.name.empty() ? "" : "," + value.name;
  text += "\n";
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (row % 65536 == 0) ctx.check_cancelled();
    text += fmt::format("{},{}", names.field(static_cast<std::int64_t>(row)), labels[row]);
    for (const RowValues& value : values) {
      if (!value.name.empty()) text += "," + field_of(value, names, row);
    }
    text += "\n";
  }
  write_text(output, text);
}

std::string clusters_text(const std::vector<std::int64_t>& sizes, std::int64_t noise, const std::string& name,
                          const std::vector<double>& more) {
  std::vector<std::vector<std::string>> lines = {{"cluster", "rows"}};
  if (!name.empty()) lines[0].push_back(name);
  for (std::size_t cluster = 0; cluster < std::min(sizes.size(), kClustersPrinted); ++cluster) {
    lines.push_back({fmt::format("{}", cluster), fmt::format("{}", sizes[cluster])});
    if (!name.empty()) lines.back().push_back(fmt::format("{:.4f}", more[cluster]));
  }
  lines.push_back({"noise", fmt::format("{}", noise)});
  if (!name.empty()) lines.back().emplace_back();
  std::string text = format_table(lines);
  if (sizes.size() > kClustersPrinted) {
    text += fmt::format("the first {} of {} clusters\n", kClustersPrinted, sizes.size());
  }
  return text;
}

}  // namespace vicinal::cli
