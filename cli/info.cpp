// `vicinal info`: what a file holds, and per column its range, mean and what is missing. One pass, O(n d).
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/common_options.hpp"
#include "base/image_shape.hpp"
#include "base/input.hpp"
#include "base/output.hpp"
#include "base/planned_inputs.hpp"
#include "commands.hpp"
#include "io/shown.hpp"
#include "report/contents.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

/// Larger tables are described by their header alone, unless --columns asks.
constexpr std::int64_t kSummaryCells = std::int64_t{1} << 28;
constexpr std::size_t kColumnsShown = 20;

struct ColumnSummary {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  std::int64_t finite = 0;
  std::int64_t nan = 0;
  std::int64_t infinite = 0;

  void add(double value) {
    if (std::isnan(value)) {
      ++nan;
    } else if (std::isinf(value)) {
      ++infinite;
    } else {
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
      sum += value;
      ++finite;
    }
  }
  [[nodiscard]] double mean() const { return sum / static_cast<double>(finite); }
};

struct InfoCommand {
  CommonOptions common;
  InputOptions input;
  std::string file;
  std::string report;
  std::string image_shape;
  bool all = false;

  void run() const;
  void write_report(const Context& ctx, const FileInfo& info) const;
  void plan(PlannedInputs& inputs) const;
};

struct Summary {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::string dtype;
  std::vector<std::string> names;
  std::int64_t classes = -1;  ///< of the labels in the file; -1: none
  std::vector<ColumnSummary> columns;
  std::string problem;  ///< why there is no summary; empty when there is
};

std::vector<ColumnSummary> summarize(const Context& ctx, const TableView& view) {
  std::vector<ColumnSummary> columns(static_cast<std::size_t>(view.cols()));
  const std::int64_t rows_a_check = std::max<std::int64_t>(1, 100000 / view.cols());
  for (std::int64_t i = 0; i < view.rows(); ++i) {
    if (i % rows_a_check == 0) {
      ctx.check_cancelled();
      ctx.report("summarize", static_cast<double>(i) / static_cast<double>(view.rows()));
    }
    for (std::int64_t j = 0; j < view.cols(); ++j) columns[static_cast<std::size_t>(j)].add(value_at(view, i, j));
  }
  return columns;
}

Summary read_summary(const Context& ctx, const InfoCommand& command, const FileInfo& info) {
  Summary summary;
  try {
    const Table table = read_rows(ctx, command.file, read_options(command.input));
    summary.rows = table.view.rows();
    summary.cols = table.view.cols();
    summary.dtype = name_of(table.view.dtype());
    summary.names = table.columns;
    if (table.labels) summary.classes = table.labels->class_count();
    if (summary.rows <= 0 || summary.cols <= 0) {
      summary.problem = "the table is empty";
    } else if (!command.all && summary.rows > kSummaryCells / summary.cols) {
      summary.problem = "the table is large; --columns summarizes its columns nevertheless";
    } else {
      summary.columns = summarize(ctx, table.view);
    }
  } catch (const Error& error) {
    // Several arrays are described all the same; which one to summarize, --member says.
    const bool unnamed =
        error.code() == ErrorCode::invalid_argument && info.arrays.size() != 1 && command.input.member.empty();
    if (error.code() != ErrorCode::bad_data && !unnamed) throw;
    summary.problem = error.what();
  }
  return summary;
}

std::string column_name(const Summary& summary, std::size_t j) {
  return j < summary.names.size() ? summary.names[j] : fmt::format("{}", j);
}

Json summary_json(const FileInfo& info, const Summary& summary) {
  Json json = {{"command", "info"},
               {"format", name_of(info.format)},
               {"compression", name_of(info.compression)},
               {"bytes", info.bytes}};
  json["arrays"] = Json::array();
  for (const FileInfo::Array& array : info.arrays) {
    json["arrays"].push_back({{"name", array.name}, {"dtype", array.dtype}, {"shape", array.shape}});
  }
  json["column_names"] = info.columns;
  if (info.stored_values >= 0) json["stored_values"] = info.stored_values;
  if (!summary.problem.empty()) {
    json["summary"] = {{"problem", summary.problem}};
    return json;
  }
  Json columns = Json::array();
  for (std::size_t j = 0; j < summary.columns.size(); ++j) {
    const ColumnSummary& column = summary.columns[j];
    Json entry = {{"name", column_name(summary, j)}, {"nan", column.nan}, {"infinite", column.infinite}};
    if (column.finite > 0) {
      entry["min"] = column.smallest;
      entry["max"] = column.largest;
      entry["mean"] = column.mean();
    }
    columns.push_back(entry);
  }
  json["summary"] = {{"rows", summary.rows}, {"cols", summary.cols}, {"dtype", summary.dtype}, {"columns", columns}};
  if (summary.classes >= 0) json["summary"]["classes"] = summary.classes;
  return json;
}

std::string columns_text(const Summary& summary) {
  std::vector<std::vector<std::string>> lines = {{"column", "min", "max", "mean", "NaN", "infinite"}};
  const std::size_t shown = std::min(summary.columns.size(), kColumnsShown);
  for (std::size_t j = 0; j < shown; ++j) {
    const ColumnSummary& column = summary.columns[j];
    const bool any = column.finite > 0;
    lines.push_back({column_name(summary, j), any ? fmt::format("{:.6g}", column.smallest) : "-",
                     any ? fmt::format("{:.6g}", column.largest) : "-",
                     any ? fmt::format("{:.6g}", column.mean()) : "-", fmt::format("{}", column.nan),
                     fmt::format("{}", column.infinite)});
  }
  std::string text = format_table(lines);
  if (shown < summary.columns.size()) {
    text += fmt::format("... and {} more columns (--json has all)\n", summary.columns.size() - shown);
  }
  return text;
}

void InfoCommand::write_report(const Context& ctx, const FileInfo& info) const {
  const auto start = std::chrono::steady_clock::now();
  const Table table = read_rows(ctx, file, read_options(input));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const std::string page =
      report::render(ctx, {file, &info, &table, image_shape_of(image_shape, table), seconds.count()});
  ctx.check_cancelled();
  write_text(report, page);
}

/// A summary of each column, and what is printed of it.
void InfoCommand::plan(PlannedInputs& inputs) const {
  constexpr std::uint64_t kJson = 2000;  // of a column: objects, names and numbers, and their text
  // Of a page: the values and the rows of a hundred columns that it shows; and of a column: sums, and a pixel of each
  // image, as it is drawn and as text.
  constexpr std::uint64_t kPage = std::uint64_t{8} << 20;
  constexpr std::uint64_t kPageColumn = 64 + 24 * 4;
  TableView table;
  try {
    table = inputs.add_table(file, read_options(input));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_data) return;  // no table: the file is described all the same
    throw;
  }
  const auto columns = static_cast<std::uint64_t>(table.cols());
  inputs.add(columns * (sizeof(ColumnSummary) + sizeof(std::string) + (common.json ? kJson : 0)));
  if (!report.empty()) inputs.add(kPage + columns * kPageColumn);
}

void InfoCommand::run() const {
  check_output("--report", report, {".html", ".htm"});
  const Runtime runtime = make_runtime(common, Computes::on_host);
  std::error_code unknown;
  if (const auto kind = std::filesystem::status(file, unknown).type();
      kind == std::filesystem::file_type::fifo || kind == std::filesystem::file_type::socket) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("FILE: '{}' is a pipe, which can be read only once; info reads a file twice", file));
  }
  PlannedInputs inputs(runtime, common);
  plan(inputs);
  if (!common.explain) inputs.require("info", 0);
  const FileInfo info = describe_file(runtime.ctx, file, read_options(input).format);
  if (common.explain) {
    Plan plan;
    plan.method = Method::direct;
    plan.isa = name_of(runtime.ctx.isa());
    plan.threads = runtime.ctx.threads();
    plan.memory = inputs.total(0);
    plan.reason = fmt::format("{} is described from its header, then read once for the summary of its columns", file);
    return print_plan(common, plan);
  }
  const Summary summary = read_summary(runtime.ctx, *this, info);
  if (!report.empty()) write_report(runtime.ctx, info);
  runtime.progress->clear();
  if (common.json) return print_json(summary_json(info, summary));
  const bool plain = info.compression == Compression::none;
  const std::string packed = plain ? "" : fmt::format(" in {}", name_of(info.compression));
  std::string text = fmt::format("{}: {}{}, {}\n", io::printable(file), name_of(info.format), packed,
                                 format_bytes(static_cast<double>(info.bytes)));
  for (const FileInfo::Array& array : info.arrays) {
    text += fmt::format("array {}{} of {}\n", array.name.empty() ? "" : io::printable(array.name) + ": ",
                        fmt::join(array.shape, " x "), array.dtype);
  }
  if (info.stored_values >= 0) text += fmt::format("{} values are stored\n", format_count(info.stored_values));
  if (!summary.problem.empty()) {
    text += fmt::format("no column summary: {}\n", summary.problem);
  } else {
    text += fmt::format("table {} rows of {} columns, read as {}\n\n", format_count(summary.rows), summary.cols,
                        summary.dtype);
    if (summary.classes >= 0) text += fmt::format("labels of {} classes\n\n", format_count(summary.classes));
    text += columns_text(summary);
  }
  print_text(text);
}

}  // namespace

Command add_info(const Parser& root) {
  auto command = std::make_shared<InfoCommand>();
  const Parser app = root.add_subcommand("info", "Describe the contents of a file");
  app.add_option("FILE", command->file, "Any file that vicinal reads").type_name("FILE").required();
  app.add_flag("--columns", command->all, "Summarize all columns of a large table");
  app.add_option("--report", command->report, "HTML report with columns, values and images").type_name("FILE");
  app.add_option("--image-shape", command->image_shape, "Show each row as a gray image of this size in the report")
      .type_name("HxW");
  add_input_options(app, command->input);
  add_common_options(app, command->common);
  app.add_examples({"vicinal info train.npy", "vicinal info train.csv --drop class", "vicinal info train.npy --json",
                    "vicinal info train.npy --report report.html"});
  return {app, [command] { command->run(); }, &command->common.json};
}

}  // namespace vicinal::cli
