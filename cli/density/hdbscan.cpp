// `vicinal hdbscan`: clusters of different densities, and noise.
#include "vicinal/hdbscan.hpp"

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

struct HdbscanCommand : DensityCommand {
  HdbscanOptions asked;
  std::string selection = "eom";
  bool excludes_itself = false;

  void run() const;

 private:
  [[nodiscard]] HdbscanOptions options() const;
  [[nodiscard]] std::string page(const Context& ctx, const DensityRows& rows, const Hdbscan& found,
                                 const std::optional<ClusteringScores>& scores, double seconds) const;
  void tell_all(const Runtime& runtime, const DensityRows& rows, const Hdbscan& found,
                const std::optional<ClusteringScores>& scores, double seconds) const;
};

HdbscanOptions HdbscanCommand::options() const {
  HdbscanOptions options = asked;
  options.count_self = !excludes_itself;
  options.selection = cluster_selection_from(selection);
  options.metric = metric_from(search.metric);
  options.p = search.p;
  options.method = method_from(search.method);
  return options;
}

std::string HdbscanCommand::page(const Context& ctx, const DensityRows& rows, const Hdbscan& found,
                                 const std::optional<ClusteringScores>& scores, double seconds) const {
  report::DensityReport content;
  content.file = table;
  content.how = {{"Min cluster size", fmt::format("{}", asked.min_cluster_size)},
                 {"Min samples", asked.min_samples > 0 ? fmt::format("{}", asked.min_samples) : "the same"},
                 {"Selection", selection},
                 {"Metric", search.metric}};
  content.table = &rows.table.view;
  content.labels = found.labels;
  content.sizes = found.sizes;
  content.noise = found.noise;
  content.persistences = found.persistences;
  content.outlier_scores = found.outlier_scores;
  content.tree = &found.tree;
  content.plan = &found.plan;
  content.scores = scores;
  content.seconds = seconds;
  return render(ctx, content);
}

void HdbscanCommand::tell_all(const Runtime& runtime, const DensityRows& rows, const Hdbscan& found,
                              const std::optional<ClusteringScores>& scores, double seconds) const {
  runtime.progress->clear();
  if (common.json) {
    return print_result({{"command", "hdbscan"},
                         {"rows", found.labels.size()},
                         {"clusters", found.clusters},
                         {"sizes", found.sizes},
                         {"noise", found.noise},
                         {"persistences", found.persistences},
                         {"dropped_rows", rows.dropped()},
                         {"min_cluster_size", asked.min_cluster_size},
                         {"min_samples", asked.min_samples > 0 ? asked.min_samples : asked.min_cluster_size},
                         {"selection", selection},
                         {"metric", search.metric},
                         {"scores", scores ? cli::to_json(*scores) : Json(nullptr)},
                         {"output", output.empty() ? Json(nullptr) : Json(output)},
                         {"report", report.empty() ? Json(nullptr) : Json(report)},
                         {"tree_seconds", found.tree_seconds},
                         {"cluster_seconds", found.cluster_seconds},
                         {"seconds", seconds},
                         {"plan", cli::to_json(found.plan)},
                         {"stats", cli::to_json(found.stats)}});
  }
  if (output.empty()) print_text(clusters_text(found.sizes, found.noise, "persistence", found.persistences));
  if (scores) print_text(agreement_text(*scores));
  const auto n = static_cast<std::int64_t>(found.labels.size());
  tell(runtime, common,
       fmt::format("{} rows in {} clusters, {} noise, {} ({})", format_count(n), found.clusters,
                   format_count(found.noise), format_duration(seconds), ran_as(found.plan)));
}

void HdbscanCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common, Computes::on_host);
  const Context& ctx = runtime.ctx;
  check();
  PlannedInputs inputs(runtime, common);
  const TableView shape = add_inputs(inputs);
  const Context rest = inputs.fit(
      "hdbscan", [&](const Context& left) { return plan_hdbscan(left, shape, options()).memory + bytes_after(shape); });
  const DensityRows rows = read_prepared(ctx);
  if (common.explain) {
    Plan plan = plan_hdbscan(rest, rows.table.view, options());
    plan.memory = inputs.total(plan.memory + bytes_after(rows.table.view));
    return print_plan(common, plan);
  }
  const Hdbscan found = hdbscan(rest, rows.table.view, options());
  const auto scores = agreement_of(ctx, rows, found.labels, found.clusters);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string text = report.empty() ? std::string() : page(ctx, rows, found, scores, seconds);
  ctx.check_cancelled();
  OutputFiles together;
  write_clusters(ctx, output, rows, found.labels,
                 {{.name = "probability", .array = "probabilities", .numbers = found.probabilities},
                  {.name = "outlier_score", .array = "outlier_scores", .numbers = found.outlier_scores}});
  if (!report.empty()) write_text(report, text);
  together.commit();
  tell_all(runtime, rows, found, scores, seconds);
}

}  // namespace

Command add_hdbscan(const Parser& root) {
  auto command = std::make_shared<HdbscanCommand>();
  HdbscanOptions& asked = command->asked;
  const Parser app = root.add_subcommand("hdbscan", "Cluster rows of different densities, and find noise");
  app.add_option("TABLE", command->table, "Rows to cluster: .npy, .npz, .csv, .tsv or idx; plain, gzip or xz")
      .type_name("FILE")
      .required();
  const std::string group = "Clustering";
  app.add_option("--min-cluster-size", asked.min_cluster_size, "Rows of a cluster, at least 2")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_option("--min-samples", asked.min_samples,
                 "Rows within the core distance of a row, itself included; 0: --min-cluster-size")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_flag("--exclude-self", command->excludes_itself,
               "A row is none of its own --min-samples rows, as in the package hdbscan")
      .group(group);
  app.add_choice("--selection", command->selection, {"eom", "leaf"},
                 "Clusters to choose; eom: the most stable ones; leaf: the smallest ones")
      .group(group);
  app.add_option("--epsilon", asked.epsilon, "Clusters born at a smaller distance are joined to the one around them")
      .type_name("X")
      .capture_default_str()
      .group(group);
  app.add_option("--max-cluster-size", asked.max_cluster_size, "Larger clusters are not chosen by eom; 0: no limit")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_flag("--allow-single-cluster", asked.allow_single_cluster, "All rows may be one cluster").group(group);
  app.add_option("--alpha", asked.alpha, "Number by which distances are divided, but not core distances")
      .type_name("X")
      .capture_default_str()
      .group(group);
  app.add_option("-o,--output", command->output,
                 "Output file: .csv (row,label,probability,outlier_score; label -1 is noise), .npz (labels, "
                 "probabilities, outlier_scores) or .npy (labels)")
      .type_name("FILE");
  command->add_to(app, true);
  app.add_examples({"vicinal hdbscan train.csv --drop class --min-cluster-size 10 -o labels.csv",
                    "vicinal hdbscan train.npy --min-cluster-size 10 --report report.html",
                    "vicinal hdbscan train.csv --label class --scale standard --json"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli
