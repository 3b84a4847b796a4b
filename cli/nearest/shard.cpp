// See shard.hpp.
#include "nearest/shard.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/input.hpp"
#include "base/output.hpp"
#include "base/planned_inputs.hpp"
#include "io/shown.hpp"

namespace vicinal::cli {
namespace {

[[noreturn]] void refuse_rows(const std::string& why) {
  throw Error(ErrorCode::invalid_argument, "--rows: " + why);
}

/// One end of the range, or `missing` where it is left out.
std::int64_t end_of_range(std::string_view text, std::int64_t missing, const std::string& whole) {
  if (text.empty()) return missing;
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || value < 0) {
    refuse_rows(fmt::format("'{}' is no range of rows; write BEGIN:END, such as 0:500000", whole));
  }
  return value;
}

std::string range_text(std::int64_t first, std::int64_t count, std::int64_t total) {
  std::string text = fmt::format("{} to {}", first, first + count - 1);
  if (total > 0) text += fmt::format(" of {}", total);
  return text;
}

}  // namespace

Shard::Shard(const NeighborsCommand& command) : command_(command) {
  const std::string& text = command.row_range;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) end_of_range("-", 0, text);
  begin_ = end_of_range(std::string_view(text).substr(0, colon), 0, text);
  end_ = end_of_range(std::string_view(text).substr(colon + 1), -1, text);
  if (end_ >= 0 && end_ <= begin_) refuse_rows(fmt::format("'{}' has no rows", text));
  if (!command.output.ends_with(".part")) refuse_rows("needs a file for the part, -o FILE.part");
  if (command.resume.any()) {
    throw Error(ErrorCode::invalid_argument,
                "--rows: --resume keeps blocks of the whole search, and cannot be combined with it");
  }
  refuse_for_parts(command, "--rows");
}

std::int64_t Shard::end_in(std::int64_t rows) const {
  const std::int64_t end = end_ < 0 ? rows : end_;
  if (begin_ >= end || end > rows) {
    refuse_rows(fmt::format("'{}' is outside of the table, which has rows 0 to {}", command_.row_range, rows - 1));
  }
  return end;
}

ShardSearch Shard::search_of(const TableView& table, const TableView& queries,
                             const std::vector<std::uint64_t>& filter) const {
  const bool self = command_.queries.empty();
  const TableView& asked = self ? table : queries;
  return {table.slice(begin_, end_in(table.rows())),
          asked,
          filter_of_rows(filter, begin_, end_in(table.rows())),
          {begin_, 0, self, table.rows(), asked.rows()}};
}

void Shard::run(const Runtime& runtime, std::chrono::steady_clock::time_point start, std::string_view job,
                const std::function<Plan(const Context& ctx, const ShardSearch& part)>& plan,
                const std::function<WrittenPart(const Context& ctx, const ShardSearch& part)>& search) const {
  const ReadOptions reading = command_.reading();
  PlannedInputs inputs(runtime, command_.common);
  const TableView shape = inputs.add_table(command_.table, reading);
  const TableView shape_asked = command_.queries.empty() ? TableView{} : inputs.add_table(command_.queries, reading);
  inputs.add(command_.missing.fill_bytes(runtime.ctx, shape, shape_asked));
  const Context ctx =
      inputs.fit(job, [&](const Context& rest) { return plan(rest, search_of(shape, shape_asked, {})).memory; });
  const NeighborTables tables = command_.read(runtime);
  const ShardSearch part = search_of(tables.rows.view, tables.asked.view,
                                     read_filter(runtime.ctx, command_.search.filter, tables.rows.view.rows()));
  if (command_.common.explain) {
    Plan shown = plan(ctx, part);
    shown.memory = inputs.total(shown.memory);
    return print_plan(command_.common, shown);
  }
  OutputFiles together;
  const WrittenPart found = search(ctx, part);
  together.commit();
  tell(runtime, found, start);
}

void Shard::tell(const Runtime& runtime, const WrittenPart& found, std::chrono::steady_clock::time_point start) const {
  const NeighborPart& part = found.part;
  runtime.progress->clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (command_.common.json) {
    Json json = {{"command", part.info.kind == PartKind::knn ? "knn" : "radius"},
                 {"part", part_json(part.info)},
                 {"neighbors", found.neighbors},
                 {"seconds", seconds},
                 {"plan", to_json(part.plan)},
                 {"stats", to_json(part.stats)},
                 {"output", command_.output}};
    return print_result(std::move(json));
  }
  cli::tell(runtime, command_.common,
            fmt::format("{} neighbors of {} rows among rows {} by {} in {} ({})", format_count(found.neighbors),
                        format_count(part.info.queries),
                        range_text(part.info.place.first_id, part.info.rows, part.info.place.total_rows),
                        name_of(part.info.metric), format_duration(seconds), ran_as(part.plan)));
}

void refuse_for_parts(const NeighborsCommand& command, const std::string& option) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", option, why));
  };
  const std::string changed = command.graph_output.given();
  if (!changed.empty()) refuse(changed + " changes merged lists only; give it to a command that reads them");
  if (!command.report.empty()) refuse("--report shows merged lists only");
  if (!command.id.empty()) refuse("a part has row numbers, so --id cannot be combined with it");
  command.missing.refuse_drop(option + " numbers the rows of TABLE");
}

std::vector<std::uint64_t> filter_of_rows(const std::vector<std::uint64_t>& words, std::int64_t begin,
                                          std::int64_t end) {
  if (words.empty()) return {};
  std::vector<std::uint64_t> here(static_cast<std::size_t>((end - begin + 63) / 64), 0);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::uint64_t bit = words[static_cast<std::size_t>(row / 64)] >> (row % 64) & 1;
    here[static_cast<std::size_t>((row - begin) / 64)] |= bit << ((row - begin) % 64);
  }
  return here;
}

Json part_json(const PartInfo& part) {
  Json json = {{"kind", name_of(part.kind)},
               {"first_id", part.place.first_id},
               {"rows", part.rows},
               {"total_rows", part.place.total_rows},
               {"first_query", part.place.first_query},
               {"queries", part.queries},
               {"total_queries", part.place.total_queries},
               {"self", part.place.self},
               {"cols", part.cols},
               {"metric", name_of(part.metric)}};
  if (part.metric == Metric::minkowski) json["p"] = part.p;
  if (part.kind == PartKind::knn) json["k"] = part.k;
  if (part.kind != PartKind::knn) json["radius"] = part.has_radii ? Json("of each query") : Json(part.radius);
  if (part.kind == PartKind::radius) json["order"] = name_of(part.order);
  return json;
}

std::string part_text(const PartInfo& part) {
  const Json json = part_json(part);
  std::string text =
      fmt::format("rows              {}\n", range_text(part.place.first_id, part.rows, part.place.total_rows));
  text += fmt::format("queries           {}{}\n",
                      range_text(part.place.first_query, part.queries, part.place.total_queries),
                      part.place.self ? ", which are rows of the table" : "");
  for (const char* const name : {"cols", "metric", "p", "k", "radius", "order"}) {
    const auto value = json.find(name);
    if (value == json.end()) continue;
    text += fmt::format("{:<16}  {}\n", name, value->is_string() ? value->get<std::string>() : value->dump());
  }
  return text;
}

}  // namespace vicinal::cli
