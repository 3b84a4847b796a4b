// `vicinal dbscan`: clusters of rows that lie densely, and noise.
#include "vicinal/dbscan.hpp"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/output.hpp"
#include "base/output_files.hpp"
#include "commands.hpp"
#include "density/cluster_output.hpp"
#include "density/density_command.hpp"
#include "kmeans/agreement.hpp"
#include "report/density.hpp"

namespace vicinal::cli {
namespace {

struct DbscanCommand : DensityCommand {
  double eps = 0.5;
  std::int64_t min_samples = 5;
  std::string weights;

  void run() const;

 private:
  [[nodiscard]] DbscanOptions options() const;
  [[nodiscard]] std::vector<double> read_weights(const Context& ctx, const DensityRows& rows) const;
  [[nodiscard]] std::string page(const Context& ctx, const DensityRows& rows, const Dbscan& found,
                                 const std::optional<ClusteringScores>& scores, double seconds) const;
  void tell_all(const Runtime& runtime, const DensityRows& rows, const Dbscan& found,
                const std::optional<ClusteringScores>& scores, double seconds) const;
};

DbscanOptions DbscanCommand::options() const {
  DbscanOptions options;
  options.eps = eps;
  options.min_samples = min_samples;
  options.metric = metric_from(search.metric);
  options.p = search.p;
  options.method = method_from(search.method);
  return options;
}

/// One number a row.
std::vector<double> DbscanCommand::read_weights(const Context& ctx, const DensityRows& rows) const {
  if (weights.empty()) return {};
  const Table read = read_rows(ctx, weights, {});
  if (read.view.cols() != 1) {
    throw Error(ErrorCode::bad_data, fmt::format("--weights: {} has {} columns, not one", weights, read.view.cols()));
  }
  if (read.view.rows() != rows.read) {
    throw Error(ErrorCode::bad_data, fmt::format("--weights: {} has {} weights for a table of {} rows", weights,
                                                 read.view.rows(), rows.read));
  }
  std::vector<double> of_rows;
  for (std::int64_t row = 0; row < rows.read; ++row) of_rows.push_back(value_at(read.view, row, 0));
  keep_rows(rows.kept, 1, of_rows);
  return of_rows;
}

std::string DbscanCommand::page(const Context& ctx, const DensityRows& rows, const Dbscan& found,
                                const std::optional<ClusteringScores>& scores, double seconds) const {
  report::DensityReport content;
  content.file = table;
  content.how = {
      {"Eps", format_number(eps)}, {"Min samples", fmt::format("{}", min_samples)}, {"Metric", search.metric}};
  if (!weights.empty()) content.how.emplace_back("Weights", weights);
  content.table = &rows.table.view;
  content.labels = found.labels;
  content.sizes = found.sizes;
  content.noise = found.noise;
  content.core_rows = found.core_rows;
  content.plan = &found.plan;
  content.scores = scores;
  content.seconds = seconds;
  return render(ctx, content);
}

void DbscanCommand::tell_all(const Runtime& runtime, const DensityRows& rows, const Dbscan& found,
                             const std::optional<ClusteringScores>& scores, double seconds) const {
  runtime.progress->clear();
  if (common.json) {
    return print_result({{"command", "dbscan"},
                         {"rows", found.labels.size()},
                         {"clusters", found.clusters},
                         {"sizes", found.sizes},
                         {"noise", found.noise},
                         {"core_rows", found.core_rows},
                         {"dropped_rows", rows.dropped()},
                         {"eps", eps},
                         {"min_samples", min_samples},
                         {"metric", search.metric},
                         {"scores", scores ? cli::to_json(*scores) : Json(nullptr)},
                         {"output", output.empty() ? Json(nullptr) : Json(output)},
                         {"report", report.empty() ? Json(nullptr) : Json(report)},
                         {"cluster_seconds", found.cluster_seconds},
                         {"seconds", seconds},
                         {"plan", cli::to_json(found.plan)}});
  }
  if (output.empty()) print_text(clusters_text(found.sizes, found.noise, "", {}));
  if (scores) print_text(agreement_text(*scores));
  const auto n = static_cast<std::int64_t>(found.labels.size());
  tell(runtime, common,
       fmt::format("{} rows in {} clusters, {} core rows, {} noise, {} ({})", format_count(n), found.clusters,
                   format_count(found.core_rows), format_count(found.noise), format_duration(seconds),
                   ran_as(found.plan)));
}

void DbscanCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common, Computes::on_host);
  const Context& ctx = runtime.ctx;
  check();
  PlannedInputs inputs(runtime, common);
  const TableView shape = add_inputs(inputs);
  if (!weights.empty()) {
    inputs.add_table(weights, {});
    inputs.add(static_cast<std::uint64_t>(shape.rows()) * sizeof(double));
  }
  const Context rest = inputs.fit(
      "dbscan", [&](const Context& left) { return plan_dbscan(left, shape, options()).memory + bytes_after(shape); });
  const DensityRows rows = read_prepared(ctx);
  const std::vector<double> of_rows = read_weights(ctx, rows);
  DbscanOptions chosen = options();
  chosen.weights = of_rows;
  if (common.explain) {
    Plan plan = plan_dbscan(rest, rows.table.view, chosen);
    plan.memory = inputs.total(plan.memory + bytes_after(rows.table.view));
    return print_plan(common, plan);
  }
  const Dbscan found = dbscan(rest, rows.table.view, chosen);
  const auto scores = agreement_of(ctx, rows, found.labels, found.clusters);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string text = report.empty() ? std::string() : page(ctx, rows, found, scores, seconds);
  ctx.check_cancelled();
  OutputFiles together;
  write_clusters(ctx, output, rows, found.labels, {{.name = "core", .array = "core", .switches = found.core}});
  if (!report.empty()) write_text(report, text);
  together.commit();
  tell_all(runtime, rows, found, scores, seconds);
}

}  // namespace

Command add_dbscan(const Parser& root) {
  auto command = std::make_shared<DbscanCommand>();
  const Parser app = root.add_subcommand("dbscan", "Cluster rows that lie densely, with scikit-learn's labels");
  app.add_option("TABLE", command->table, "Rows to cluster: .npy, .npz, .csv, .tsv or idx; plain, gzip or xz")
      .type_name("FILE")
      .required();
  const std::string group = "Clustering";
  app.add_option("--eps", command->eps, "Distance up to which rows are neighbors, above 0")
      .type_name("X")
      .capture_default_str()
      .group(group);
  app.add_option("--min-samples", command->min_samples,
                 "Neighbors of a core row, the row itself included; with --weights the sum of their weights")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_option("--weights", command->weights, "File with one weight per row").type_name("FILE").group(group);
  app.add_option("-o,--output", command->output,
                 "Output file: .csv (row,label,core; label -1 is noise), .npz (labels, core) or .npy (labels)")
      .type_name("FILE");
  command->add_to(app, true);
  app.add_examples({"vicinal dbscan train.csv --drop class --eps 1.5 --min-samples 4 -o labels.csv",
                    "vicinal dbscan train.npy --eps 1.5 --report report.html",
                    "vicinal dbscan train.csv --label class --scale standard --eps 1 --json"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli
