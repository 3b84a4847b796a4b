// `vicinal merge`: the files of all parts of a search become the graph, or the counts, of the whole table.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/common_options.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"
#include "commands.hpp"
#include "io/graph_writer.hpp"
#include "nearest/manifest.hpp"
#include "nearest/neighbors_output.hpp"
#include "vicinal/parts.hpp"

namespace vicinal::cli {
namespace {

struct MergeCommand {
  CommonOptions common;
  std::vector<std::string> files;
  std::string output;

  void run() const;
};

/// What all kinds of parts become.
struct Merged {
  std::int64_t rows = 0;
  std::int64_t table_rows = 0;
  std::int64_t neighbors = 0;
  Plan plan;
  SearchStats stats;
};

Merged merge_lists(const Context& ctx, const std::vector<PartSource>& parts, const std::string& output) {
  if (parts.front().info.kind == PartKind::knn) {
    const NeighborGraph graph = merge(ctx, parts);
    ctx.check_cancelled();
    write_graph(ctx, output, graph, {});
    return {graph.rows, graph.table_rows, std::ssize(graph.ids), graph.plan, graph.stats};
  }
  io::GraphWriter writer(ctx, output);
  const RadiusSummary found =
      merge_batches(ctx, parts, [&](std::int64_t first, const NeighborGraph& lists) { writer.add(first, lists); });
  writer.commit();
  return {found.rows, found.table_rows, found.neighbors, found.plan, found.stats};
}

Merged merge_to_counts(const Context& ctx, const std::vector<PartSource>& parts, const std::string& output) {
  const NeighborCounts found = merge_counts(ctx, parts);
  write_counts(output, found.counts, RowNames());
  Merged merged;
  merged.rows = std::ssize(found.counts);
  for (const PartSource& part : parts) {
    merged.table_rows = std::max(merged.table_rows, part.info.place.first_id + part.info.rows);
  }
  merged.neighbors = std::accumulate(found.counts.begin(), found.counts.end(), std::int64_t{0});
  merged.plan = found.plan;
  merged.stats = found.stats;
  return merged;
}

void MergeCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common, Computes::on_host);
  const Context& ctx = runtime.ctx;
  const std::vector<PartSource> parts = open_parts(ctx, files);
  const PartKind kind = parts.front().info.kind;
  const Plan plan = plan_merge(ctx, parts);
  if (common.explain) return print_plan(common, plan);
  if (output.empty()) throw Error(ErrorCode::invalid_argument, "-o: merge needs an output file");
  if (kind == PartKind::count) {
    check_output("-o", output, {".npy", ".csv"});
  } else {
    check_output("-o", output, {".npz", ".csv"});
  }
  OutputFiles together;
  const Merged merged = kind == PartKind::count ? merge_to_counts(ctx, parts, output) : merge_lists(ctx, parts, output);
  together.commit();
  runtime.progress->clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (common.json) {
    Json json = {{"command", "merge"}, {"kind", name_of(kind)}, {"parts", parts.size()}};
    json["rows"] = merged.rows;
    json["table_rows"] = merged.table_rows;
    json["neighbors"] = merged.neighbors;
    json["metric"] = name_of(parts.front().info.metric);
    if (kind == PartKind::knn) json["k"] = parts.front().info.k;
    json["seconds"] = seconds;
    json["plan"] = to_json(merged.plan);
    json["stats"] = to_json(merged.stats);
    json["output"] = output;
    return print_result(std::move(json));
  }
  tell(runtime, common,
       fmt::format("{} neighbors of {} rows among {} by {}, merged from {} parts in {}", format_count(merged.neighbors),
                   format_count(merged.rows), format_count(merged.table_rows), name_of(parts.front().info.metric),
                   parts.size(), format_duration(seconds)));
}

}  // namespace

Command add_merge(const Parser& root) {
  auto command = std::make_shared<MergeCommand>();
  const Parser app = root.add_subcommand("merge", "Merge the parts that knn and radius write with --rows or -o DIR/");
  app.add_option("PART", command->files,
                 "Files of all parts of one search, in any order; or the folder with these parts and their manifest")
      .type_name("FILE")
      .required();
  app.add_option("-o,--output", command->output, "Output file: .npz (ids, distances) or .csv; of counts .npy or .csv")
      .type_name("FILE");
  add_common_options(app, command->common);
  app.add_examples({"vicinal knn train.npy --rows 0:100 -o 0.part", "vicinal knn train.npy --rows 100: -o 1.part",
                    "vicinal merge 0.part 1.part -o graph.npz", "vicinal merge 0.part 1.part --explain"});
  return {app, [command] { command->run(); }, &command->common.json};
}

}  // namespace vicinal::cli
