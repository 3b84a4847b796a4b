// `vicinal info`: what a file holds, and for each column its type, how many values differ, what is missing, range and
// mean; of a model what was fitted. One pass, O(n d).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/common_options.hpp"
#include "base/image_shape.hpp"
#include "base/input.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"
#include "base/planned_inputs.hpp"
#include "commands.hpp"
#include "io/format.hpp"
#include "io/member.hpp"
#include "io/shown.hpp"
#include "io/summary.hpp"
#include "map_info.hpp"
#include "model_info.hpp"
#include "nearest/shard.hpp"
#include "report/contents.hpp"
#include "vicinal/io.hpp"
#include "vicinal/parts.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal::cli {
namespace {

/// Larger tables are described by their header alone, unless --columns asks.
constexpr std::int64_t kSummaryCells = std::int64_t{1} << 28;
constexpr std::size_t kColumnsShown = 20;

/// What is kept to count the values that differ, all columns together.
constexpr std::uint64_t kDistinctBytes = std::uint64_t{16} << 20;

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
  void print_model(const Json& model) const;
  void run_map(const Runtime& runtime) const;
  void run_part(const Runtime& runtime) const;
  void explain(const Runtime& runtime, const PlannedInputs& inputs, const std::string& reason) const;
};

struct Summary {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::string dtype;
  std::int64_t classes = -1;  ///< of the labels in the file; -1: none
  std::vector<io::ColumnSummary> columns;
  std::string problem;  ///< why there is no summary; empty when there is
};

void summarize(const Context& ctx, const Table& table, Summary& summary) {
  const TableView& view = table.view;
  summary.columns.resize(static_cast<std::size_t>(view.cols()));
  for (std::size_t j = 0; j < summary.columns.size(); ++j) {
    summary.columns[j].name = j < table.columns.size() ? table.columns[j] : fmt::format("{}", j);
    summary.columns[j].limit(kDistinctBytes / summary.columns.size());
  }
  const std::int64_t rows_a_check = std::max<std::int64_t>(1, 100000 / view.cols());
  for (std::int64_t i = 0; i < view.rows(); ++i) {
    if (i % rows_a_check == 0) {
      ctx.check_cancelled();
      ctx.report("summarize", static_cast<double>(i) / static_cast<double>(view.rows()));
    }
    for (std::int64_t j = 0; j < view.cols(); ++j) {
      summary.columns[static_cast<std::size_t>(j)].add(value_at(view, i, j));
    }
  }
}

void summarize_fields(const Context& ctx, const InfoCommand& command, Summary& summary) {
  io::TextSummary found = io::summarize_text(ctx, command.file, read_options(command.input), kDistinctBytes);
  for (const std::string& note : found.notes) add_note(note);
  summary.rows = found.rows;
  summary.cols = std::ssize(found.columns);
  summary.dtype = "float64";
  summary.columns = std::move(found.columns);
}

Summary read_summary(const Context& ctx, const InfoCommand& command, const FileInfo& info) {
  Summary summary;
  try {
    if (io::has_named_columns(info.format)) {
      summarize_fields(ctx, command, summary);
      return summary;
    }
    const Table table = read_rows(ctx, command.file, read_options(command.input));
    summary.rows = table.view.rows();
    summary.cols = table.view.cols();
    summary.dtype = name_of(table.view.dtype());
    if (table.labels) summary.classes = table.labels->class_count();
    if (summary.rows <= 0 || summary.cols <= 0) {
      summary.problem = "the table is empty";
    } else if (!command.all && summary.rows > kSummaryCells / summary.cols) {
      summary.problem = "the table is large; --columns summarizes its columns nevertheless";
    } else {
      summarize(ctx, table, summary);
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

/// Columns that are not read as numbers unless --categories says so.
std::int64_t text_columns(const Summary& summary) {
  return std::count_if(summary.columns.begin(), summary.columns.end(),
                       [](const io::ColumnSummary& column) { return column.texts > 0; });
}

Json info_json(const FileInfo& info, const Summary& summary) {
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
    const io::ColumnSummary& column = summary.columns[j];
    Json entry = {{"name", column.name},           {"type", column.type()},
                  {"distinct", column.distinct()}, {"distinct_is_least", !column.counts_all()},
                  {"missing", column.missing},     {"nan", column.nan},
                  {"infinite", column.infinite}};
    if (column.texts > 0) {
      entry["first"] = column.first_text;
      entry["last"] = column.last_text;
    } else if (column.finite > 0) {
      entry["min"] = column.smallest;
      entry["max"] = column.largest;
      entry["mean"] = column.mean();
    }
    columns.push_back(entry);
  }
  json["summary"] = {{"rows", summary.rows},
                     {"cols", summary.cols},
                     {"dtype", summary.dtype},
                     {"text_columns", text_columns(summary)},
                     {"columns", columns}};
  if (summary.classes >= 0) json["summary"]["classes"] = summary.classes;
  return json;
}

/// At most 16 characters or so of a text, for a cell.
std::string cut_text(const std::string& text) {
  constexpr std::size_t kMost = 16;
  std::string all = io::printable(text);
  if (all.size() <= kMost) return all;
  std::size_t end = kMost - 3;
  while (end > 0 && (static_cast<unsigned char>(all[end]) & 0xc0) == 0x80) --end;
  return all.substr(0, end) + "...";
}

std::string columns_text(const Summary& summary) {
  std::vector<std::vector<std::string>> lines = {{"column", "type", "distinct", "missing", "min", "max", "mean"}};
  const bool infinite = std::any_of(summary.columns.begin(), summary.columns.end(),
                                    [](const io::ColumnSummary& column) { return column.infinite > 0; });
  if (infinite) lines[0].emplace_back("infinite");
  const std::size_t shown = std::min(summary.columns.size(), kColumnsShown);
  for (std::size_t j = 0; j < shown; ++j) {
    const io::ColumnSummary& column = summary.columns[j];
    const auto number = [&](double value) { return column.finite > 0 ? fmt::format("{:.6g}", value) : "-"; };
    std::vector<std::string> line = {column.name, std::string(column.type()),
                                     fmt::format("{}{}", column.counts_all() ? "" : ">= ", column.distinct()),
                                     fmt::format("{}", column.missing + column.nan)};
    if (column.texts > 0) {
      line.insert(line.end(), {cut_text(column.first_text), cut_text(column.last_text), "-"});
    } else {
      line.insert(line.end(), {number(column.smallest), number(column.largest), number(column.mean())});
    }
    if (infinite) line.push_back(fmt::format("{}", column.infinite));
    lines.push_back(std::move(line));
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
  OutputFiles together;
  write_text(report, page);
  together.commit();
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
  const std::uint64_t cells = 64 * columns * static_cast<std::uint64_t>(table.rows());
  inputs.add(columns * (sizeof(io::ColumnSummary) + sizeof(std::string) + (common.json ? kJson : 0)));
  inputs.add(std::min(kDistinctBytes, cells));
  if (!report.empty()) inputs.add(kPage + columns * kPageColumn);
}

void InfoCommand::print_model(const Json& model) const {
  if (!report.empty()) throw Error(ErrorCode::invalid_argument, "--report: shows tables only, and the file is a model");
  if (common.json) return print_result({{"command", "info"}, {"model", model}});
  print_text(
      fmt::format("{}: model of {}\n{}", io::printable(file), model.front().get<std::string>(), model_text(model)));
}

void InfoCommand::explain(const Runtime& runtime, const PlannedInputs& inputs, const std::string& reason) const {
  Plan plan;
  plan.method = Method::direct;
  plan.isa = name_of(runtime.ctx.isa());
  plan.threads = runtime.ctx.threads();
  plan.memory = inputs.total(0);
  plan.reason = reason;
  print_plan(common, plan);
}

void InfoCommand::run_map(const Runtime& runtime) const {
  if (!report.empty()) throw Error(ErrorCode::invalid_argument, "--report: shows tables only, and the file is a map");
  PlannedInputs inputs(runtime, common);
  inputs.add_map(file, false, 0);
  if (common.explain) return explain(runtime, inputs, fmt::format("the layers of {} are described", file));
  inputs.require("info", 0);
  const PolygonFileInfo map = describe_polygon_file(runtime.ctx, file);
  runtime.progress->clear();
  if (common.json) return print_result({{"command", "info"}, {"map", map_json(map)}});
  std::error_code unknown;
  const auto size = std::filesystem::file_size(file, unknown);
  print_text(fmt::format("{}: {}, {}\n{}", io::printable(file), map.format,
                         format_bytes(unknown ? 0 : static_cast<double>(size)), map_text(map)));
}

void InfoCommand::run_part(const Runtime& runtime) const {
  if (!report.empty()) throw Error(ErrorCode::invalid_argument, "--report: shows tables only, and the file is a part");
  if (common.explain) {
    return explain(runtime, PlannedInputs(runtime, common),
                   fmt::format("{} is described from its header, after its checksum is compared", file));
  }
  const PartInfo part = open_part(runtime.ctx, file).info;
  runtime.progress->clear();
  if (common.json) return print_result({{"command", "info"}, {"part", part_json(part)}});
  print_text(fmt::format("{}: part of {}\n{}", io::printable(file), name_of(part.kind), part_text(part)));
}

void InfoCommand::run() const {
  check_output("--report", report, {".html", ".htm"});
  const Runtime runtime = make_runtime(common, Computes::on_host);
  std::error_code unknown;
  if (const auto kind = std::filesystem::status(io::place_of(file).file, unknown).type();
      kind == std::filesystem::file_type::fifo || kind == std::filesystem::file_type::socket) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("FILE: '{}' is a pipe, which can be read only once; info reads a file twice", file));
  }
  if (is_map(file)) return run_map(runtime);
  if (is_part_file(runtime.ctx, file)) return run_part(runtime);
  PlannedInputs inputs(runtime, common);
  plan(inputs);
  if (!common.explain) inputs.require("info", 0);
  if (const std::optional<Json> model = describe_model(runtime.ctx, file)) return print_model(*model);
  ReadOptions reading = read_options(input);
  reading.member.clear();  // all arrays are listed
  const FileInfo info = describe_file(runtime.ctx, file, reading);
  if (common.explain) {
    return explain(runtime, inputs,
                   fmt::format("{} is described from its header, then read once for the summary of its columns", file));
  }
  const Summary summary = read_summary(runtime.ctx, *this, info);
  if (!report.empty()) write_report(runtime.ctx, info);
  runtime.progress->clear();
  if (common.json) return print_result(info_json(info, summary));
  const bool plain = info.compression == Compression::none;
  const std::string packed = plain ? "" : fmt::format(" in {}", name_of(info.compression));
  std::string text = fmt::format("{}: {}{}, {}\n", io::printable(file), name_of(info.format), packed,
                                 format_bytes(static_cast<double>(info.bytes)));
  for (const FileInfo::Array& array : info.arrays) {
    const std::string size = array.shape.empty() ? "one" : fmt::format("{} of", fmt::join(array.shape, " x "));
    text +=
        fmt::format("array {}{} {}\n", array.name.empty() ? "" : io::printable(array.name) + ": ", size, array.dtype);
  }
  if (info.stored_values >= 0) text += fmt::format("{} values are stored\n", format_count(info.stored_values));
  if (!summary.problem.empty()) {
    text += fmt::format("no column summary: {}\n", summary.problem);
  } else {
    const std::int64_t texts = text_columns(summary);
    text += fmt::format("table {} rows of {} columns, read as {}{}\n\n", format_count(summary.rows), summary.cols,
                        summary.dtype, texts > 0 ? fmt::format("; not numbers: {}", texts) : "");
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
