// `vicinal knn`: the k nearest rows, of a table within itself or of queries against it.
#include "vicinal/knn.hpp"

#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>

#include "base/common_options.hpp"
#include "base/input.hpp"
#include "base/output.hpp"
#include "base/planned_inputs.hpp"
#include "commands.hpp"
#include "nearest/blocks.hpp"
#include "nearest/manifest.hpp"
#include "nearest/neighbors_output.hpp"
#include "nearest/parts_of_ranks.hpp"
#include "nearest/shard.hpp"

namespace vicinal::cli {
namespace {

struct KnnCommand : NeighborsCommand {
  std::int64_t k = 5;
  double max_radius = std::numeric_limits<double>::infinity();

  void run() const;
  void run_part(const Runtime& runtime, std::chrono::steady_clock::time_point start) const;

 private:
  void run_in_blocks(const Runtime& runtime, const Context& ctx, const NeighborTables& tables,
                     const KnnOptions& options, std::chrono::steady_clock::time_point start) const;
  /// Neighbors to search for.
  [[nodiscard]] std::int64_t searched() const { return k - (graph_output.include_self ? 1 : 0); }
  [[nodiscard]] KnnOptions options(const std::vector<std::uint64_t>& filter) const;
};

KnnOptions KnnCommand::options(const std::vector<std::uint64_t>& filter) const {
  KnnOptions options = knn_options(search, searched(), filter);
  options.max_radius = max_radius;
  return options;
}

void KnnCommand::run_part(const Runtime& runtime, std::chrono::steady_clock::time_point start) const {
  if (max_radius < std::numeric_limits<double>::infinity()) {
    throw Error(ErrorCode::invalid_argument, "--max-radius: parts have lists of k; leave it out with --rows");
  }
  const Shard shard(*this);
  shard.run(
      runtime, start, "knn",
      [&](const Context& ctx, const ShardSearch& part) {
        return plan_knn_part(ctx, part.rows, part.queries, knn_options(search, k, part.filter), part.place);
      },
      [&](const Context& ctx, const ShardSearch& part) {
        NeighborPart found = knn_part(ctx, part.rows, part.queries, knn_options(search, k, part.filter), part.place);
        write_part(runtime.ctx, output, found);
        const std::int64_t neighbors = std::ssize(found.ids);
        return WrittenPart{std::move(found), neighbors};
      });
}

/// --resume. Lists are cut by --max-radius when all are found.
void KnnCommand::run_in_blocks(const Runtime& runtime, const Context& ctx, const NeighborTables& tables,
                               const KnnOptions& options, std::chrono::steady_clock::time_point start) const {
  const TableView& rows = tables.rows.view;
  WholeSearch whole;
  whole.facts = {{"k", options.k, "number of neighbors"}};
  whole.filter = options.filter;
  whole.plan = plan_knn(ctx, rows, queries.empty() ? nullptr : &tables.asked.view, options);
  const Index index(ctx, rows, {.packed = Packing::never});
  KnnOptions of_block = options;
  of_block.max_radius = std::numeric_limits<double>::infinity();
  of_block.method = whole.plan.method;  // not what is best for a block alone
  whole.search = [&](const TableView& asked, const PartOptions& place, const std::filesystem::path& path) {
    write_part(ctx, path, knn_part(ctx, index, asked, of_block, place));
  };
  SearchBlocks blocks(runtime, *this, tables, whole);
  blocks.run();
  deliver_graph(runtime, tables, nearest_of(ctx, blocks, whole.plan, options.k, max_radius), {searched(), max_radius},
                start);
  blocks.finish();
}

void KnnCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  if (is_folder_of_parts(output)) {
    SearchOfRanks of_ranks;
    of_ranks.nearest = knn_options(search, k, {});
    of_ranks.nearest.max_radius = max_radius;
    return write_parts_of_ranks(*this, of_ranks, start);
  }
  const Runtime runtime = make_runtime(common);
  resume.check();
  if (!row_range.empty()) return run_part(runtime, start);
  check_output("-o", output, {".npz", ".csv"});
  check_output("--report", report, {".html", ".htm"});
  graph_output.check(queries, search.metric, output);
  if (graph_output.include_self && k < 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("-k: is {}, must be at least 2 with --include-self, which counts the row itself", k));
  }
  const ReadOptions reading = this->reading();
  PlannedInputs inputs(runtime, common);
  const TableView shape = inputs.add_table(table, reading);
  const TableView shape_asked = queries.empty() ? TableView{} : inputs.add_table(queries, reading);
  inputs.add(page_bytes(shape, shape_asked) + missing.fill_bytes(runtime.ctx, shape, shape_asked));
  if (resume.any()) inputs.add(kBytesOfBlocks);
  const auto more = [&](const Context& rest, const TableView& rows) {
    const std::int64_t lists = queries.empty() ? rows.rows() : shape_asked.rows();
    return graph_output.bytes(rest, lists, lists * searched());
  };
  const Context ctx = inputs.fit("knn", [&](const Context& rest) {
    const TableView* const others = queries.empty() ? nullptr : &shape_asked;
    const std::uint64_t searching = plan_knn(rest, shape, others, options({})).memory;
    return searching + more(rest, shape);
  });
  const NeighborTables tables = read(runtime, {searched() + (queries.empty() ? 1 : 0), fmt::format("-k {}", k)});
  const Table& rows = tables.rows;
  const Table& asked = tables.asked;
  const auto filter = read_filter(runtime.ctx, search.filter, rows.view.rows());
  const KnnOptions chosen = options(filter);
  if (common.explain) {
    Plan plan = plan_knn(ctx, rows.view, queries.empty() ? nullptr : &asked.view, chosen);
    plan.memory = inputs.total(plan.memory + more(ctx, rows.view));
    return print_plan(common, plan);
  }
  if (resume.any()) return run_in_blocks(runtime, ctx, tables, chosen, start);
  NeighborGraph graph = queries.empty() ? knn(ctx, rows.view, chosen) : knn(ctx, rows.view, asked.view, chosen);
  deliver_graph(runtime, tables, std::move(graph), {searched(), max_radius}, start);
}

}  // namespace

Command add_knn(const Parser& root) {
  auto command = std::make_shared<KnnCommand>();
  const Parser app = root.add_subcommand("knn", "Find the k nearest rows of each query, or of each row of a table");
  app.add_option("TABLE", command->table, "Rows to search: .npy, .npz, .csv, .tsv or idx; plain, gzip or xz")
      .type_name("FILE")
      .required();
  app.add_option("QUERIES", command->queries,
                 "Rows to find neighbors for; if omitted, the rows of TABLE, each excluding itself")
      .type_name("FILE");
  app.add_option("-k", command->k, "Neighbors per row").type_name("K").capture_default_str().group("Search");
  app.add_option("--max-radius", command->max_radius,
                 "Leave out neighbors that are farther away; lists may then be shorter than K [no limit]")
      .type_name("R")
      .group("Search");
  app.add_option("-o,--output", command->output,
                 "Output file: .npz (ids, distances; with --max-radius also offsets) or .csv; or DIR/ for parts, which "
                 "the processes of mpirun find together, and `vicinal merge` reads")
      .type_name("FILE");
  command->add_to(app);
  app.add_examples({"vicinal knn train.npy -k 10 -o graph.npz", "vicinal knn train.npy test.npy -k 5 --metric cosine",
                    "vicinal knn train.csv --drop class -k 3 -o graph.csv",
                    "mpirun -n 4 --bind-to none vicinal knn train.npy -k 10 -o parts/"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli
