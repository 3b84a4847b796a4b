// `vicinal hdbscan`: clusters of different densities, and noise.
#include "vicinal/hdbscan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/output.hpp"
#include "base/output_files.hpp"
#include "commands.hpp"
#include "density/delivery.hpp"
#include "density/membership_output.hpp"
#include "density/scan.hpp"
#include "vicinal/hdbscan_model.hpp"

namespace vicinal::cli {
namespace {

/// What a model has settled, beside how missing values were treated.
constexpr std::array<std::string_view, 19> kSettled = {"--min-cluster-size",
                                                       "--min-samples",
                                                       "--exclude-self",
                                                       "--selection",
                                                       "--epsilon",
                                                       "--max-cluster-size",
                                                       "--allow-single-cluster",
                                                       "--alpha",
                                                       "--metric",
                                                       "--p",
                                                       "--method",
                                                       "--scale",
                                                       "--categories",
                                                       "--text",
                                                       "--labels",
                                                       "--report",
                                                       "--save-model",
                                                       "--scan",
                                                       "--validity"};

constexpr std::uint64_t kBytesPlaced = 3 * sizeof(double);  // label, probability and row of a row that is placed

/// Of a model that is loaded: the pages of its file, and what is made of them.
std::uint64_t bytes_of(const HdbscanModel& loaded, const std::string& path) {
  const TableView& table = loaded.index.table();
  const auto values = static_cast<std::uint64_t>(table.rows()) * static_cast<std::uint64_t>(table.cols());
  std::error_code unknown;
  const auto size = std::filesystem::file_size(path, unknown);
  const std::uint64_t pages = unknown ? 0 : static_cast<std::uint64_t>(size);
  const std::uint64_t rows = values * static_cast<std::uint64_t>(size_of(table.dtype()));
  // Arrays beside the rows are copied. Labels, probabilities and outlier scores of rows and clusters follow from the
  // condensed tree, in as much again twice.
  const CondensedTree& tree = loaded.fitted.tree;
  const std::uint64_t numbers = 3 * tree.row_clusters.size() + 5 * tree.parents.size();
  return pages + (pages - std::min(pages, rows)) + 2 * numbers * sizeof(double);
}

struct HdbscanCommand : DensityCommand {
  HdbscanOptions asked;
  std::string selection = "eom";
  std::string model;
  std::string save_model;
  std::string scan;
  std::string memberships;
  bool excludes_itself = false;
  std::vector<Option> of_fitting;  ///< options that a model has settled

  void run() const;

 private:
  void check_model() const;
  void place(const Runtime& runtime) const;
  void run_scan(const Runtime& runtime, const Context& rest, const DensityRows& rows,
                std::chrono::steady_clock::time_point start) const;
  /// Of the scan: those of its smallest size, whose rows the core distances of all sizes have.
  [[nodiscard]] HdbscanOptions scan_options() const;
  [[nodiscard]] ScanRange range() const { return parse_scan(scan, std::numeric_limits<std::int64_t>::max()); }
  [[nodiscard]] HdbscanOptions options() const;
};

void HdbscanCommand::check_model() const {
  check_output("--save-model", save_model);
  check_output("--memberships", memberships, {".npy", ".csv"});
  if (memberships.ends_with(".npy")) {
    prepared.missing.refuse_drop("--memberships: a .npy has no place for the numbers of rows, as .csv has");
  }
  if (!scan.empty() &&
      (!output.empty() || !report.empty() || !save_model.empty() || !memberships.empty() || rates_validity)) {
    throw Error(
        ErrorCode::invalid_argument,
        "--scan: prints a table, and cannot be combined with -o, --memberships, --report, --save-model or --validity");
  }
  if (model.empty()) return;
  for (const Option& option : of_fitting) {
    if (!option.given()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: cannot be combined with --model; the model file fixes it", option.name()));
  }
}

/// Rows of TABLE in the clusters of a model.
void HdbscanCommand::place(const Runtime& runtime) const {
  const auto start = std::chrono::steady_clock::now();
  const HdbscanModel loaded = HdbscanModel::load(runtime.ctx, model);
  const KnownColumns known = KnownColumns::of(loaded.notes, model);
  PlannedInputs inputs(runtime, common);
  inputs.add(bytes_of(loaded, model));
  const TableView shape = add_asked(inputs, known, loaded.preparation, loaded.index.cols());
  const auto plan_of = [&](const Context& left, const TableView& queries) {
    Plan plan = plan_predict(left, loaded.index, loaded.fitted, queries);
    const std::uint64_t found = static_cast<std::uint64_t>(queries.rows()) * kBytesPlaced + bytes_after(queries);
    plan.memory += bytes_after(queries);
    if (!memberships.empty()) {
      plan.memory = std::max(plan.memory, found + membership_bytes(left, loaded.index, loaded.fitted, queries));
    }
    return plan;
  };
  const Context ctx = inputs.fit("hdbscan", [&](const Context& left) { return plan_of(left, shape).memory; });
  const DensityRows rows = read_asked(runtime.ctx, known, loaded.preparation, loaded.index.cols());
  if (common.explain) {
    Plan plan = plan_of(ctx, rows.table.view);
    plan.memory = inputs.total(plan.memory);
    return print_plan(common, plan);
  }
  const HdbscanPrediction found = predict(ctx, loaded.index, loaded.fitted, rows.table.view);
  const std::int64_t clusters = loaded.fitted.clusters;
  const auto noise = std::count(found.labels.begin(), found.labels.end(), -1);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(clusters), 0);
  for (const std::int64_t cluster : found.labels) {
    if (cluster >= 0) ++sizes[static_cast<std::size_t>(cluster)];
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ctx.check_cancelled();
  OutputFiles together;
  write_clusters(ctx, output, rows, found.labels,
                 {{.name = "probability", .array = "probabilities", .numbers = found.probabilities}});
  if (!memberships.empty()) write_memberships(ctx, memberships, rows, loaded.index, loaded.fitted, true);
  together.commit();
  runtime.progress->clear();
  if (common.json) {
    return print_result({{"command", "hdbscan"},
                         {"rows", found.labels.size()},
                         {"clusters", clusters},
                         {"sizes", sizes},
                         {"noise", noise},
                         {"model", model},
                         {"output", output.empty() ? Json(nullptr) : Json(output)},
                         {"memberships", memberships.empty() ? Json(nullptr) : Json(memberships)},
                         {"seconds", seconds}});
  }
  if (output.empty()) print_text(clusters_text(sizes, noise, "", {}));
  tell(runtime, common,
       fmt::format("{} rows placed in the {} clusters of {}, {} noise, {}", format_count(std::ssize(found.labels)),
                   clusters, model, format_count(noise), format_duration(seconds)));
}

HdbscanOptions HdbscanCommand::scan_options() const {
  HdbscanOptions smallest = options();
  if (!scan.empty()) smallest.min_cluster_size = range().first;
  return smallest;
}

/// --scan FIRST..LAST: one search, and a clustering of its tree for each size.
void HdbscanCommand::run_scan(const Runtime& runtime, const Context& rest, const DensityRows& rows,
                              std::chrono::steady_clock::time_point start) const {
  const TableView& view = rows.table.view;
  if (range().last > view.rows()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--scan: sizes up to {}, but the table has {} row{}",
                                                         range().last, view.rows(), view.rows() == 1 ? "" : "s"));
  }
  const HdbscanOptions smallest = scan_options();
  const SpanningTree tree = minimum_spanning_tree(
      rest, view,
      {.min_samples = smallest.min_samples != 0 ? smallest.min_samples : smallest.min_cluster_size,
       .count_self = smallest.count_self,
       .alpha = smallest.alpha,
       .metric = smallest.metric,
       .p = smallest.p,
       .method = smallest.method});
  const std::vector<SizePoint> points = scan_sizes(runtime.ctx, tree, smallest, range(), [&](const Hdbscan& found) {
    const auto scores = agreement_of(runtime.ctx, rows, found.labels, found.clusters);
    return scores ? std::optional(scores->adjusted_rand) : std::nullopt;
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  runtime.progress->clear();
  if (common.json) {
    return print_result({{"command", "hdbscan"},
                         {"rows", view.rows()},
                         {"min_samples", tree.options.min_samples},
                         {"scan", cli::to_json(points)},
                         {"dropped_rows", rows.dropped()},
                         {"metric", search.metric},
                         {"tree_seconds", tree.tree_seconds},
                         {"seconds", seconds},
                         {"plan", cli::to_json(tree.plan)}});
  }
  print_text(sizes_text(points));
  tell(runtime, common,
       fmt::format("{} rows in clusters of {} sizes, from one search with {} samples, {} ({})",
                   format_count(view.rows()), points.size(), tree.options.min_samples, format_duration(seconds),
                   ran_as(tree.plan)));
}

HdbscanOptions HdbscanCommand::options() const {
  HdbscanOptions options = asked;
  options.count_self = !excludes_itself;
  options.selection = cluster_selection_from(selection);
  options.metric = metric_from(search.metric);
  options.p = search.p;
  options.method = method_from(search.method);
  return options;
}

void HdbscanCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common, model.empty() ? Computes::on_device : Computes::on_host);
  check_model();
  if (!model.empty()) {
    check();
    return place(runtime);
  }
  const KnownColumns columns = save_model.empty() ? KnownColumns{} : known_columns(runtime.ctx);
  const auto planned =
      read_planned(*this, runtime, {"hdbscan", [&](const Context& left, const TableView& rows) {
                                      Plan plan = plan_hdbscan(left, rows, scan.empty() ? options() : scan_options());
                                      if (!memberships.empty()) plan.memory += membership_bytes(left, rows, options());
                                      return plan;
                                    }});
  if (!planned) return;
  const DensityRows& rows = planned->rows;
  if (!scan.empty()) return run_scan(runtime, planned->rest, rows, start);
  const Index index(planned->rest, rows.table.view);
  const Hdbscan found = hdbscan(planned->rest, index, options());
  DensityOutcome outcome = {
      .command = "hdbscan",
      .labels = &found.labels,
      .sizes = &found.sizes,
      .noise = found.noise,
      .plan = &found.plan,
      .values = {{.name = "probability", .array = "probabilities", .numbers = found.probabilities},
                 {.name = "outlier_score", .array = "outlier_scores", .numbers = found.outlier_scores}}};
  outcome.page.how = {{"Min cluster size", fmt::format("{}", asked.min_cluster_size)},
                      {"Min samples", asked.min_samples > 0 ? fmt::format("{}", asked.min_samples) : "the same"},
                      {"Selection", selection},
                      {"Metric", search.metric}};
  outcome.page.persistences = found.persistences;
  outcome.page.outlier_scores = found.outlier_scores;
  outcome.page.tree = &found.tree;
  outcome.told = {{"persistences", found.persistences},
                  {"min_cluster_size", asked.min_cluster_size},
                  {"min_samples", asked.min_samples > 0 ? asked.min_samples : asked.min_cluster_size},
                  {"selection", selection},
                  {"model", save_model.empty() ? Json(nullptr) : Json(save_model)},
                  {"memberships", memberships.empty() ? Json(nullptr) : Json(memberships)},
                  {"tree_seconds", found.tree_seconds},
                  {"cluster_seconds", found.cluster_seconds},
                  {"stats", cli::to_json(found.stats)}};
  outcome.save = [&] {
    if (!save_model.empty()) {
      HdbscanModel{index, found, columns.notes(), rows.preparation}.save(runtime.ctx, save_model);
    }
    if (!memberships.empty()) write_memberships(planned->rest, memberships, rows, index, found, false);
  };
  deliver(*this, runtime, rows, std::move(outcome), start);
}

}  // namespace

Command add_hdbscan(const Parser& root) {
  auto command = std::make_shared<HdbscanCommand>();
  HdbscanOptions& asked = command->asked;
  const Parser app = root.add_subcommand("hdbscan", "Find clusters of different densities, and noise");
  app.add_option("TABLE", command->table, "Rows to cluster; with --model the rows to place in its clusters")
      .type_name("FILE")
      .required();
  const std::string group = "Clustering";
  const Option size =
      app.add_option("--min-cluster-size", asked.min_cluster_size, "Minimum number of rows of a cluster, at least 2")
          .type_name("N")
          .capture_default_str()
          .group(group);
  app.add_option(
         "--min-samples", asked.min_samples,
         "Core distance of a row: distance to its N-th nearest row, itself included; 0: N is --min-cluster-size")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_flag("--exclude-self", command->excludes_itself,
               "Count --min-samples without the row itself, as the package hdbscan does")
      .group(group);
  app.add_choice("--selection", command->selection, {"eom", "leaf"},
                 "Clusters to choose; eom: the most stable ones; leaf: those that contain no other cluster")
      .group(group);
  app.add_option("--epsilon", asked.epsilon,
                 "Replace clusters that exist only below this distance by the cluster around them")
      .type_name("X")
      .capture_default_str()
      .group(group);
  app.add_option("--max-cluster-size", asked.max_cluster_size,
                 "Maximum number of rows of a cluster that eom chooses; 0: no limit")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_flag("--allow-single-cluster", asked.allow_single_cluster, "Allow one cluster of all rows").group(group);
  app.add_option("--alpha", asked.alpha, "Divide distances by this number, but not core distances")
      .type_name("X")
      .capture_default_str()
      .group(group);
  app.add_option(
         "--scan", command->scan,
         "Print a line on the clusters of each --min-cluster-size in a range, from one search; all have the core "
         "distances of FIRST, unless --min-samples is given")
      .type_name("FIRST..LAST")
      .group(group)
      .excludes(size);
  app.add_option("--model", command->model,
                 "Model file written by --save-model: place the rows of TABLE in its clusters")
      .type_name("FILE");
  app.add_option("--save-model", command->save_model, "Write a model file for later use with --model")
      .type_name("FILE");
  app.add_option(
         "--memberships", command->memberships,
         "Output file for the membership of each row in each cluster, from 0 to 1: .npy [rows, clusters] or .csv")
      .type_name("FILE");
  app.add_option("-o,--output", command->output,
                 "Output file: .csv (row,label,probability,outlier_score; label -1 is noise), .npz (labels, "
                 "probabilities, outlier_scores) or .npy (labels)")
      .type_name("FILE");
  command->add_to(app, true);
  for (const Option& option : app.options()) {
    const std::string name = option.name();
    const bool is_settled = std::find(kSettled.begin(), kSettled.end(), name) != kSettled.end();
    if (is_settled || is_missing_option(name)) command->of_fitting.push_back(option);
  }
  app.add_examples({"vicinal hdbscan train.csv --drop class --min-cluster-size 10 -o labels.csv --memberships soft.npy",
                    "vicinal hdbscan train.npy --scan 5..20",
                    "vicinal hdbscan train.npy --save-model model.vhd && vicinal hdbscan test.npy --model model.vhd",
                    "vicinal hdbscan train.csv --label class --scale standard --report report.html --json"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli
