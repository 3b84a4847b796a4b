// `vicinal knn`: the k nearest rows, of a table within itself or of queries against it.
#include "vicinal/knn.hpp"

#include <chrono>
#include <memory>

#include "base/common_options.hpp"
#include "base/input.hpp"
#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "base/planned_inputs.hpp"
#include "commands.hpp"
#include "nearest/neighbors_output.hpp"

namespace vicinal::cli {
namespace {

struct KnnCommand : NeighborsCommand {
  std::int64_t k = 5;

  void run() const;
};

void KnnCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common);
  check_output("-o", output, {".npz", ".csv"});
  check_output("--report", report, {".html", ".htm"});
  const ReadOptions reading = this->reading();
  PlannedInputs inputs(runtime, common);
  const TableView shape = inputs.add_table(table, reading);
  const TableView shape_asked = queries.empty() ? TableView{} : inputs.add_table(queries, reading);
  inputs.add(page_bytes(shape, shape_asked) + missing_bytes(shape, shape_asked));
  const Context ctx = inputs.fit("knn", [&](const Context& rest) {
    return plan_knn(rest, shape, queries.empty() ? nullptr : &shape_asked, knn_options(search, k, {})).memory;
  });
  const NeighborTables tables = read(runtime);
  const Table& rows = tables.rows;
  const Table& asked = tables.asked;
  const auto filter = read_filter(runtime.ctx, search.filter, rows.view.rows());
  const KnnOptions options = knn_options(search, k, filter);
  if (common.explain) {
    Plan plan = plan_knn(ctx, rows.view, queries.empty() ? nullptr : &asked.view, options);
    plan.memory = inputs.total(plan.memory);
    return print_plan(common, plan);
  }
  NeighborGraph graph = queries.empty() ? knn(ctx, rows.view, options) : knn(ctx, rows.view, asked.view, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!tables.kept.empty()) graph = with_ids_of_file(std::move(graph), tables.kept);
  report::NeighborProfile profile = profile_of(rows, asked);
  profile.add(graph);
  runtime.ctx.check_cancelled();
  io::OutputGroup together(interrupt_token());
  if (!output.empty()) write_graph(output, graph, row_numbers(tables));
  deliver(runtime, {rows, asked, profile, row_numbers(tables), seconds, {}}, together);
}

}  // namespace

Command add_knn(const Parser& root) {
  auto command = std::make_shared<KnnCommand>();
  const Parser app = root.add_subcommand("knn", "Find the k nearest rows of each row");
  app.add_option("TABLE", command->table, "Rows to search: .npy, .npz, .csv, .tsv or idx; plain, gzip or xz")
      .type_name("FILE")
      .required();
  app.add_option("QUERIES", command->queries,
                 "Rows to find neighbors for; if omitted, the rows of TABLE, each excluding itself")
      .type_name("FILE");
  app.add_option("-k", command->k, "Neighbors per row").type_name("K").capture_default_str().group("Search");
  app.add_option("-o,--output", command->output, "Output file: .npz (ids, distances) or .csv").type_name("FILE");
  command->add_to(app);
  app.add_examples({"vicinal knn train.npy -k 10 -o graph.npz", "vicinal knn train.npy test.npy -k 5 --metric cosine",
                    "vicinal knn train.csv --drop class -k 3 -o graph.csv",
                    "vicinal knn train.npy test.npy -k 5 --report report.html"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli
