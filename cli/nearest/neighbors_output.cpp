// See neighbors_output.hpp. A person gets ten rows of up to five neighbors; the file has everything.
#include "nearest/neighbors_output.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/image_shape.hpp"
#include "base/input.hpp"
#include "base/known_columns.hpp"
#include "base/output.hpp"
#include "report/neighbors.hpp"

namespace vicinal::cli {
namespace {

constexpr std::size_t kNeighborsPrinted = 5;

/// A table of the first rows and their first neighbors, `id (distance)`.
std::string first_rows(const report::NeighborProfile& profile, std::span<const std::int64_t> numbers,
                       const NeighborNames& names) {
  std::vector<std::vector<std::string>> lines = {{names.asked.header()}};
  if (profile.within_radius()) lines[0].push_back("found");
  std::size_t widest = 0;
  for (std::size_t row = 0; row < profile.first_rows.size(); ++row) {
    const auto& [size, ids, distances] = profile.first_rows[row];
    std::vector<std::string> line = {names.asked.text(row_number(static_cast<std::int64_t>(row), numbers))};
    if (profile.within_radius()) line.push_back(fmt::format("{}", size));
    const std::size_t shown = std::min(ids.size(), kNeighborsPrinted);
    for (std::size_t rank = 0; rank < shown; ++rank) {
      line.push_back(fmt::format("{} ({:.6g})", names.rows.text(ids[rank]), distances[rank]));
    }
    if (size > static_cast<std::int64_t>(shown)) line.push_back("...");
    widest = std::max(widest, shown);
    lines.push_back(line);
  }
  for (std::size_t rank = 0; rank < widest; ++rank) lines[0].push_back(fmt::format("{}. id (distance)", rank + 1));
  return format_table(lines);
}

/// What was found, where it went, how it ran, and the first rows.
void describe_neighbors(const FoundNeighbors& found, const std::string& output, Json& json) {
  const report::NeighborProfile& profile = found.written;
  json["rows"] = profile.rows;
  json["table_rows"] = profile.table_rows;
  json["dropped_rows"] = found.dropped;
  const double max_radius = found.nearest.max_radius;
  if (!found.radius) json["max_radius"] = std::isinf(max_radius) ? Json(nullptr) : Json(max_radius);
  if (!profile.within_radius()) json["k"] = profile.k;
  json["neighbors"] = profile.neighbors;
  json["metric"] = name_of(profile.metric);
  if (profile.metric == Metric::minkowski) json["p"] = profile.p;
  if (output.empty()) {
    json["output"] = nullptr;
  } else {
    json["output"] = output;
  }
  json["seconds"] = found.seconds;
  json["plan"] = to_json(profile.plan);
  json["stats"] = to_json(profile.stats);
  Json head = Json::array();
  for (std::size_t row = 0; row < profile.first_rows.size(); ++row) {
    Json ids = Json::array();
    for (const std::int64_t near : profile.first_rows[row].ids) ids.push_back(found.names.rows.json(near));
    head.push_back({{"row", found.names.asked.json(row_number(static_cast<std::int64_t>(row), found.numbers))},
                    {"ids", ids},
                    {"distances", profile.first_rows[row].distances}});
  }
  json["first_rows"] = head;
}

/// One sentence on how many neighbors were found, how, how fast.
std::string neighbors_sentence(const report::NeighborProfile& profile, bool is_shown, double seconds) {
  std::string text = fmt::format("{} neighbors of {} rows among {} by {} in {} ({})", format_count(profile.neighbors),
                                 format_count(profile.rows), format_count(profile.table_rows), name_of(profile.metric),
                                 format_duration(seconds), ran_as(profile.plan));
  const std::size_t shown = profile.first_rows.size();
  if (is_shown && profile.rows > static_cast<std::int64_t>(shown)) {
    text += fmt::format("; the first {} rows are shown, -o FILE writes all", shown);
  }
  return text;
}

std::string page_of(const NeighborsCommand& command, const FoundNeighbors& found) {
  const bool self = command.queries.empty();
  report::NeighborsReport content;
  content.table_file = command.table;
  content.queries_file = command.queries;
  content.radius = found.radius.value_or(found.nearest.max_radius);
  content.most = found.radius ? 0 : found.nearest.k;
  content.seconds = found.seconds;
  content.shown = {&found.profile,
                   &found.rows.view,
                   self ? &found.rows.view : &found.asked.view,
                   self,
                   image_shape_of(command.image_shape, found.rows),
                   found.names.rows,
                   found.names.asked};
  return render(content);
}

}  // namespace

void NeighborsCommand::add_to(const Parser& app) {
  app.add_option("--report", report, "HTML report with distances, hubs and nearest pairs").type_name("FILE");
  app.add_option("--image-shape", image_shape, "Show each row as a gray image of this size in the report")
      .type_name("HxW");
  app.add_option("--rows", row_range,
                 "Search rows BEGIN to END - 1 of TABLE alone, and write a part for `vicinal merge`: -o FILE.part")
      .type_name("BEGIN:END")
      .group("Search");
  graph_output.add_to(app);
  resume.add_to(app);
  add_search_options(app, search);
  add_missing_options(app, missing);
  add_input_options(app, input);
  add_id_option(app, id);
  add_common_options(app, common);
  add_rank_options(app, common);
}

std::uint64_t NeighborsCommand::page_bytes(const TableView& rows, const TableView& asked) const {
  return report::NeighborProfile::page_bytes(depth(), queries.empty() ? rows.rows() : asked.rows(), rows.rows());
}

report::NeighborProfile NeighborsCommand::profile_of(const Table& rows, const Table& asked) const {
  return {depth(), queries.empty() ? rows.view.rows() : asked.view.rows(), rows.view.rows()};
}

ReadOptions NeighborsCommand::reading() const {
  ReadOptions reading = read_options(input);
  reading.missing = missing.any();
  reading.id = id;
  return reading;
}

/// QUERIES may have the columns of TABLE in another order, and need not have those that were left out there.
ReadOptions NeighborsCommand::reading_of_queries(const Context& ctx, const Table& rows) const {
  ReadOptions given = read_options(input);
  given.drop.clear();  // of TABLE, and known by their names
  const KnownColumns known = by_names(ctx, table, reading(), {{}, input.drop, id});
  given.id = id;
  given.id = same_id(ctx, table, queries, given, id, known.id);
  ReadOptions reading =
      asked_reading(ctx, queries, std::move(given), known, Preparation::fit(ctx, rows), rows.view.cols(), false)
          .options;
  reading.missing = missing.fills();
  return reading;
}

NeighborTables NeighborsCommand::read(const Runtime& runtime, const RowsNeeded& needed) const {
  const Context& ctx = runtime.ctx;
  if (missing.drops() && !search.filter.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "--filter: has a value for every row, so it cannot be combined with --missing drop");
  }
  if (!graph_output.given().empty()) missing.refuse_drop(graph_output.given() + " numbers the rows of TABLE");
  if (!report.empty()) missing.refuse_drop("--report refers to all rows of TABLE");
  NeighborTables tables;
  // A pipe can be looked at before it is read, and never after that.
  if (!queries.empty()) by_names(ctx, table, reading(), {{}, input.drop, id});
  tables.rows = naming_missing([&] { return load_table(runtime, common, table, reading()); });
  if (!queries.empty()) tables.asked = load_table(runtime, common, queries, reading_of_queries(ctx, tables.rows));
  std::optional<RowIds> ids = std::move(tables.rows.ids);
  tables.rows.ids.reset();
  const std::int64_t rows_read = tables.rows.view.rows();
  tables.kept = missing.drop_rows(ctx, tables.rows, table, needed);
  tables.dropped = rows_read - tables.rows.view.rows();
  tables.rows.ids = std::move(ids);
  require_ids_fit(ctx, output, table, tables.rows);
  require_ids_fit(ctx, output, queries, tables.asked);
  if (!missing.fills()) return tables;
  const Imputer imputer = Imputer::fit(ctx, tables.rows, missing.options());
  tables.rows = imputer.apply(ctx, std::move(tables.rows), table);
  if (!queries.empty()) tables.asked = imputer.apply(ctx, std::move(tables.asked), queries);
  return tables;
}

std::span<const std::int64_t> NeighborsCommand::row_numbers(const NeighborTables& tables) const {
  return queries.empty() ? std::span<const std::int64_t>(tables.kept) : std::span<const std::int64_t>();
}

NeighborNames NeighborsCommand::names(const NeighborTables& tables) const {
  return {RowNames(tables.rows), RowNames(queries.empty() ? tables.rows : tables.asked)};
}

GraphWriteOptions NeighborsCommand::write_options(const NeighborTables& tables) const {
  GraphWriteOptions options = graph_output.options();
  const NeighborNames called = names(tables);
  options.rows = row_numbers(tables);
  options.row_ids = called.asked.ids();
  options.table_ids = called.rows.ids();
  return options;
}

void NeighborsCommand::deliver_graph(const Runtime& runtime, const NeighborTables& tables, NeighborGraph graph,
                                     const NearestWanted& wanted, std::chrono::steady_clock::time_point start) const {
  // Where lists are changed no rows were left out (read).
  const bool is_changed = graph_output.changes_lists();
  if (!tables.kept.empty()) {
    for (std::int64_t& row : graph.ids) row = tables.kept[static_cast<std::size_t>(row)];
  }
  const NeighborGraph changed = is_changed ? graph_output.changed(runtime.ctx, graph) : NeighborGraph{};
  const NeighborGraph& lists = is_changed ? changed : graph;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report::NeighborProfile found = profile_of(tables.rows, tables.asked);
  found.add(graph);
  report::NeighborProfile written;
  if (is_changed) written.add(lists);
  runtime.ctx.check_cancelled();
  OutputFiles together;
  if (!output.empty()) write_graph(runtime.ctx, output, lists, write_options(tables));
  deliver(runtime,
          {tables.rows, tables.asked, found, is_changed ? written : found, row_numbers(tables), names(tables),
           tables.dropped, seconds, std::nullopt, wanted},
          together);
}

void NeighborsCommand::deliver(const Runtime& runtime, const FoundNeighbors& found, OutputFiles& together) const {
  if (!report.empty()) write_text(report, page_of(*this, found));
  runtime.ctx.check_cancelled();
  together.commit();
  runtime.progress->clear();
  if (common.json) {
    Json json = {{"command", found.radius ? "radius" : "knn"}};
    if (found.radius) json["radius"] = *found.radius;
    describe_neighbors(found, output, json);
    json["include_self"] = graph_output.include_self;
    json["symmetric"] = graph_output.symmetric == "no" ? Json(nullptr) : Json(graph_output.symmetric);
    json["report"] = report.empty() ? Json(nullptr) : Json(report);
    return print_result(std::move(json));
  }
  if (output.empty()) print_text(first_rows(found.written, found.numbers, found.names));
  tell(runtime, common, neighbors_sentence(found.written, output.empty(), found.seconds));
}

void write_counts(const std::string& output, const std::vector<std::int64_t>& counts, const RowNames& names) {
  const auto m = static_cast<std::int64_t>(counts.size());
  if (output.ends_with(".npy")) return write_npy(output, {counts.data(), "<i8", {m}});
  std::string text = csv_field(names.header()) + ",count\n";
  for (std::int64_t i = 0; i < m; ++i) {
    text += fmt::format("{},{}\n", names.field(i), counts[static_cast<std::size_t>(i)]);
  }
  write_text(output, text);
}

}  // namespace vicinal::cli
