// `vicinal dbscan`: clusters of one density, and noise.
#include "vicinal/dbscan.hpp"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/output.hpp"
#include "commands.hpp"
#include "density/delivery.hpp"

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

/// One number per row.
std::vector<double> DbscanCommand::read_weights(const Context& ctx, const DensityRows& rows) const {
  if (weights.empty()) return {};
  const Table read = read_rows(ctx, weights, {});
  if (read.view.cols() != 1) {
    throw Error(ErrorCode::bad_data,
                fmt::format("--weights: {} has {} columns; expected one", weights, read.view.cols()));
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

void DbscanCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common);
  const auto planned = read_planned(
      *this, runtime,
      {"dbscan", [&](const Context& left, const TableView& rows) { return plan_dbscan(left, rows, options()); },
       [&](PlannedInputs& inputs, const TableView& rows) {
         if (weights.empty()) return;
         inputs.add_table(weights, {});
         inputs.add(static_cast<std::uint64_t>(rows.rows()) * sizeof(double));
       }});
  if (!planned) return;
  const std::vector<double> of_rows = read_weights(runtime.ctx, planned->rows);
  DbscanOptions chosen = options();
  chosen.weights = of_rows;
  const Dbscan found = dbscan(planned->rest, planned->rows.table.view, chosen);
  DensityOutcome outcome = {.command = "dbscan",
                            .labels = &found.labels,
                            .sizes = &found.sizes,
                            .noise = found.noise,
                            .plan = &found.plan,
                            .values = {{.name = "core", .array = "core", .switches = found.core}}};
  outcome.page.how = {
      {"Eps", format_number(eps)}, {"Min samples", fmt::format("{}", min_samples)}, {"Metric", search.metric}};
  if (!weights.empty()) outcome.page.how.emplace_back("Weights", weights);
  outcome.page.core_rows = found.core_rows;
  outcome.told = {{"core_rows", found.core_rows},
                  {"eps", eps},
                  {"min_samples", min_samples},
                  {"cluster_seconds", found.cluster_seconds}};
  outcome.counts = format_count(found.core_rows) + " core rows";
  deliver(*this, runtime, planned->rows, std::move(outcome), start);
}

}  // namespace

Command add_dbscan(const Parser& root) {
  auto command = std::make_shared<DbscanCommand>();
  const Parser app =
      root.add_subcommand("dbscan", "Find clusters of one density, and noise, with scikit-learn's labels");
  app.add_option("TABLE", command->table, "Rows to cluster: .npy, .npz, .csv, .tsv or idx; plain, gzip or xz")
      .type_name("FILE")
      .required();
  const std::string group = "Clustering";
  app.add_option("--eps", command->eps, "Maximum distance of two neighbors, above 0")
      .type_name("X")
      .capture_default_str()
      .group(group);
  app.add_option(
         "--min-samples", command->min_samples,
         "Minimum number of neighbors of a core row, itself included; with --weights the minimum sum of their weights")
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
