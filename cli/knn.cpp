// `vicinal knn`: the k nearest rows, of a table within itself or of queries against it.
#include "vicinal/knn.hpp"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "common_options.hpp"
#include "input.hpp"
#include "neighbors_output.hpp"
#include "output.hpp"

namespace vicinal::cli {
namespace {

struct KnnCommand {
  CommonOptions common;
  SearchOptions search;
  InputOptions input;
  std::string table;
  std::string queries;
  std::string output;
  std::int64_t k = 5;

  void run() const;
};

void KnnCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common);
  check_output("-o", output, {".npz", ".csv"});
  const ReadOptions reading = read_options(input);
  const Table rows = load_table(runtime, common, table, reading);
  const Table asked = queries.empty() ? Table{} : load_table(runtime, common, queries, reading);
  const auto filter = read_filter(runtime.ctx, search.filter, rows.view.rows());
  const KnnOptions options = knn_options(search, k, filter);
  if (common.explain) {
    print_plan(common, plan_knn(runtime.ctx, rows.view, queries.empty() ? nullptr : &asked.view, options));
    return;
  }
  const NeighborGraph graph =
      queries.empty() ? knn(runtime.ctx, rows.view, options) : knn(runtime.ctx, rows.view, asked.view, options);
  runtime.ctx.check_cancelled();
  if (!output.empty()) write_graph(output, graph);
  runtime.progress->clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (common.json) {
    Json json = {{"command", "knn"}};
    describe_graph(graph, output, seconds, json);
    print_json(json);
    return;
  }
  if (output.empty()) write_stdout(first_rows(graph));
  tell(runtime, common, graph_sentence(graph, output, seconds));
}

}  // namespace

Command add_knn(const Parser& root) {
  auto command = std::make_shared<KnnCommand>();
  const Parser app = root.add_subcommand("knn", "Find the k nearest rows, exactly");
  app.add_option("TABLE", command->table, "Rows to search: .npy, .npz, .csv, .tsv or idx; plain, gzip or xz")
      .type_name("FILE")
      .required();
  app.add_option("QUERIES", command->queries, "Rows to find neighbors for; without it, each table row among the others")
      .type_name("FILE");
  app.add_option("-k", command->k, "Neighbors a row").type_name("K").capture_default_str().group("Search");
  app.add_option("-o,--output", command->output, "Where to write all of them: .npz (ids, distances) or .csv")
      .type_name("FILE");
  add_search_options(app, command->search);
  add_input_options(app, command->input);
  add_common_options(app, command->common);
  app.add_examples({"vicinal knn train.npy -k 10 -o graph.npz", "vicinal knn train.npy test.npy -k 5 --metric cosine",
                    "vicinal knn train.csv --drop class -k 3 -o graph.csv",
                    "vicinal knn train.npy test.npy --explain"});
  return {app, [command] { naming_files(command->table, command->queries, [&] { command->run(); }); },
          &command->common.json};
}

}  // namespace vicinal::cli
