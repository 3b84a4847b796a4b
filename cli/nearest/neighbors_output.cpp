// See neighbors_output.hpp. A person gets ten rows of up to five neighbors; the file has everything.
#include "nearest/neighbors_output.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/image_shape.hpp"
#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "io/atomic_file.hpp"
#include "report/neighbors.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kRowsShown = 10;
constexpr std::size_t kNeighborsShown = 5;

std::int64_t neighbors_in(const NeighborGraph& graph) {
  return static_cast<std::int64_t>(graph.ids.size());
}

/// A table of the first rows and their first neighbors, `id (distance)`.
std::string first_rows(const NeighborGraph& graph) {
  std::vector<std::vector<std::string>> lines = {{"row"}};
  if (graph.is_csr()) lines[0].push_back("found");
  std::size_t widest = 0;
  for (std::int64_t row = 0; row < std::min(graph.rows, kRowsShown); ++row) {
    const auto ids = graph.ids_of(row);
    const auto distances = graph.distances_of(row);
    std::vector<std::string> line = {fmt::format("{}", row)};
    if (graph.is_csr()) line.push_back(fmt::format("{}", ids.size()));
    const std::size_t shown = std::min(ids.size(), kNeighborsShown);
    for (std::size_t rank = 0; rank < shown; ++rank) {
      line.push_back(fmt::format("{} ({:.6g})", ids[rank], distances[rank]));
    }
    if (ids.size() > shown) line.push_back("...");
    widest = std::max(widest, shown);
    lines.push_back(line);
  }
  for (std::size_t rank = 0; rank < widest; ++rank) lines[0].push_back(fmt::format("{}. id (distance)", rank + 1));
  return format_table(lines);
}

/// What was found, where it went, how it ran, and the first rows.
void describe_graph(const NeighborGraph& graph, const std::string& output, double seconds, Json& json) {
  json["rows"] = graph.rows;
  json["table_rows"] = graph.table_rows;
  if (!graph.is_csr()) json["k"] = graph.k;
  json["neighbors"] = neighbors_in(graph);
  json["metric"] = name_of(graph.metric);
  if (graph.metric == Metric::minkowski) json["p"] = graph.p;
  if (output.empty()) {
    json["output"] = nullptr;
  } else {
    json["output"] = output;
  }
  json["seconds"] = seconds;
  json["plan"] = to_json(graph.plan);
  json["stats"] = to_json(graph.stats);
  Json head = Json::array();
  for (std::int64_t row = 0; row < std::min(graph.rows, kRowsShown); ++row) {
    const auto ids = graph.ids_of(row);
    const auto distances = graph.distances_of(row);
    const std::size_t shown = std::min(ids.size(), std::size_t{100});
    head.push_back({{"row", row},
                    {"ids", std::vector<std::int64_t>(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(shown))},
                    {"distances",
                     std::vector<double>(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(shown))}});
  }
  json["first_rows"] = head;
}

/// One sentence on how many neighbors were found, how, how fast and where they are.
std::string graph_sentence(const NeighborGraph& graph, const std::string& output, double seconds) {
  std::string text = fmt::format("{} neighbors of {} rows among {} by {} in {} ({})", format_count(neighbors_in(graph)),
                                 format_count(graph.rows), format_count(graph.table_rows), name_of(graph.metric),
                                 format_duration(seconds), ran_as(graph.plan));
  if (!output.empty()) return text + fmt::format(", written to {}", output);
  if (graph.rows > kRowsShown) text += fmt::format("; the first {} rows are shown, -o FILE writes all", kRowsShown);
  return text;
}

std::string page_of(const NeighborsCommand& command, const FoundNeighbors& found) {
  const bool self = command.queries.empty();
  report::NeighborsReport content;
  content.table_file = command.table;
  content.queries_file = command.queries;
  content.radius = found.radius.value_or(0);
  content.seconds = found.seconds;
  content.shown = {&found.graph, &found.rows.view, self ? &found.rows.view : &found.asked.view, self,
                   image_shape_of(command.image_shape, found.rows)};
  return render(content);
}

}  // namespace

void NeighborsCommand::add_to(const Parser& app) {
  app.add_option("--report", report, "HTML report with distances, hubs and nearest pairs").type_name("FILE");
  app.add_option("--image-shape", image_shape, "Show each row as a gray image of this size in the report")
      .type_name("HxW");
  graph_output.add_to(app);
  add_search_options(app, search);
  add_input_options(app, input);
  add_common_options(app, common);
}

void NeighborsCommand::deliver(const Runtime& runtime, const FoundNeighbors& found) const {
  const std::string page = report.empty() ? std::string() : page_of(*this, found);
  NeighborGraph changed;
  if (graph_output.changes_lists()) changed = graph_output.changed(runtime.ctx, found.graph);
  const NeighborGraph& graph = graph_output.changes_lists() ? changed : found.graph;
  runtime.ctx.check_cancelled();
  io::OutputGroup together(interrupt_token());
  if (!output.empty()) graph_output.write(runtime.ctx, output, graph);
  if (!report.empty()) write_text(report, page);
  together.commit();
  runtime.progress->clear();
  if (common.json) {
    Json json = {{"command", found.radius ? "radius" : "knn"}};
    if (found.radius) json["radius"] = *found.radius;
    describe_graph(graph, output, found.seconds, json);
    json["include_self"] = graph_output.include_self;
    json["symmetric"] = graph_output.symmetric == "no" ? Json(nullptr) : Json(graph_output.symmetric);
    json["report"] = report.empty() ? Json(nullptr) : Json(report);
    return print_json(json);
  }
  if (output.empty()) print_text(first_rows(graph));
  tell(runtime, common, graph_sentence(graph, output, found.seconds));
}

}  // namespace vicinal::cli
