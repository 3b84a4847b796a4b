// `vicinal kmeans`: clusters the rows of a table, or gives them the clusters of a model made before.
#include "vicinal/kmeans.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "base/common_options.hpp"
#include "base/input.hpp"
#include "base/known_columns.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"
#include "base/planned_inputs.hpp"
#include "base/preparation.hpp"
#include "base/resume_folder.hpp"
#include "base/row_names.hpp"
#include "commands.hpp"
#include "io/id_array.hpp"
#include "kmeans/agreement.hpp"
#include "kmeans/classical.hpp"
#include "kmeans/resume.hpp"
#include "kmeans/scan.hpp"
#include "kmeans/silhouette.hpp"
#include "report/clusters.hpp"
#include "report/html.hpp"
#include "report/projection.hpp"
#include "vicinal/io.hpp"
#include "vicinal/kmeans_model.hpp"

namespace vicinal::cli {
namespace {

// What the classical tools stop at.
constexpr double kClassicalShare = 0.001;
constexpr std::int64_t kClassicalIterations = 501;
constexpr std::size_t kLongestColumnName = 20;

/// Rows to cluster: prepared, and without those that --missing drop leaves out.
struct ClusteredRows {
  Table table;
  std::int64_t read = 0;           ///< rows of the file
  std::vector<std::int64_t> kept;  ///< their numbers in the file, where some were left out; else empty
  [[nodiscard]] std::int64_t dropped() const { return read - table.view.rows(); }
};

struct KMeansCommand {
  CommonOptions common;
  InputOptions input;
  PreparationArguments prepared;
  ResumeArguments resume;
  std::vector<Option> of_fitting;  ///< options that a model has settled
  std::string table;
  std::string init = "k-means++";
  std::string metric = "euclidean";
  std::string rule = "settled";
  std::string empty = "auto";
  std::string weights;
  std::string label;
  std::string labels_file;
  std::string id;
  std::string model;
  std::string save_model;
  std::string scan;
  std::string report;
  std::string output;
  std::int64_t clusters = 8;
  std::int64_t runs = 1;
  std::int64_t batch_size = 0;
  std::int64_t max_iterations = 0;  ///< 0: the rule's own
  std::uint64_t seed = 0;
  double tolerance = 1e-4;
  double changed_share = -1;  ///< negative: the rule's own

  void run() const;

 private:
  [[nodiscard]] KMeansOptions options(const Table& first_centres, const std::vector<double>& weights_of_rows) const;
  void check() const;
  void predict_rows(const Context& ctx, const TableView& rows, KMeans& found) const;
  [[nodiscard]] Context plan(PlannedInputs& inputs) const;
  [[nodiscard]] std::uint64_t output_bytes(std::int64_t rows) const;
  [[nodiscard]] bool writes_distances() const;
  [[nodiscard]] ReadOptions reading() const;
  [[nodiscard]] std::string notes_of_model(const Context& ctx) const;
  [[nodiscard]] ClusteredRows read_prepared(const Context& ctx, const KMeans& found, const KnownColumns& known,
                                            Preparation& preparation) const;
  [[nodiscard]] std::vector<double> read_weights(const Context& ctx, const ClusteredRows& rows) const;
  [[nodiscard]] std::optional<Labels> known_labels(const Context& ctx, const ClusteredRows& rows) const;
  void run_scan(const Runtime& runtime, const ClusteredRows& clustered, const Labels* known,
                const std::vector<std::string>& names, KMeansOptions options) const;
  [[nodiscard]] std::string page(const Context& ctx, const Table& rows, const KMeans& found, const TableSample& sample,
                                 const SampleFit& fit, const Scan* scanned,
                                 const std::optional<ClusteringScores>& scores, const std::vector<std::string>& names,
                                 double seconds) const;
  void write(const Context& ctx, const ClusteredRows& rows, const KMeans& found, const std::vector<double>& distances,
             const std::vector<std::string>& names) const;
  void tell_all(const Runtime& runtime, const ClusteredRows& clustered, const KMeans& found,
                const std::vector<std::string>& names, const SampleFit& fit,
                const std::optional<ClusteringScores>& scores, double seconds) const;
};

bool is_init_name(const std::string& init) {
  return init == "k-means++" || init == "k-means||" || init == "random" || init == "first-k";
}

/// One number a row.
std::vector<double> KMeansCommand::read_weights(const Context& ctx, const ClusteredRows& rows) const {
  if (weights.empty()) return {};
  const Table table_of_weights = read_rows(ctx, weights, {});
  const TableView& view = table_of_weights.view;
  if (view.cols() != 1) {
    throw Error(ErrorCode::bad_data, fmt::format("--weights: {} has {} columns, not one", weights, view.cols()));
  }
  if (view.rows() != rows.read) {
    throw Error(ErrorCode::bad_data,
                fmt::format("--weights: {} has {} weights for a table of {} rows", weights, view.rows(), rows.read));
  }
  std::vector<double> of_rows;
  for (std::int64_t i = 0; i < view.rows(); ++i) of_rows.push_back(value_at(view, i, 0));
  keep_rows(rows.kept, 1, of_rows);
  return of_rows;
}

KMeansOptions KMeansCommand::options(const Table& first_centres, const std::vector<double>& weights_of_rows) const {
  KMeansOptions options;
  const bool classical = rule == "classical";
  options.clusters = clusters;
  options.init = is_init_name(init) ? kmeans_init_from(init) : KMeansInit::given;
  options.centres = first_centres.view;
  options.metric = metric_from(metric);
  options.weights = weights_of_rows;
  options.runs = runs;
  options.seed = seed;
  options.batch_size = batch_size;
  options.max_iterations = max_iterations != 0 ? max_iterations : (classical ? kClassicalIterations : 300);
  options.tolerance = tolerance;
  options.changed_share = changed_share >= 0 ? changed_share : (classical ? kClassicalShare : 0);
  options.rule = classical ? KMeansRule::classical : KMeansRule::settled;
  options.empty = empty == "keep" || (empty == "auto" && classical) ? EmptyClusters::keep : EmptyClusters::farthest;
  options.history = !report.empty();
  return options;
}

/// What TABLE has besides the columns that are compared.
std::string KMeansCommand::notes_of_model(const Context& ctx) const {
  const std::vector<std::string> labels = label.empty() ? std::vector<std::string>() : std::vector{label};
  return by_names(ctx, table, reading(), {labels, input.drop, id}).notes();
}

ReadOptions KMeansCommand::reading() const {
  ReadOptions reading = read_options(input);
  reading.label = label;
  reading.id = id;
  return reading;
}

/// The rows as they are to be clustered: prepared as asked for, or as those of the model were. `preparation` becomes
/// what was done, and stays without columns where nothing was and none has a name.
ClusteredRows KMeansCommand::read_prepared(const Context& ctx, const KMeans& found, const KnownColumns& known,
                                           Preparation& preparation) const {
  ReadOptions reading = this->reading();
  ClusteredRows rows;
  if (!model.empty()) {
    const AskedReading asked = asked_reading(ctx, table, std::move(reading), known, preparation, found.cols, false);
    rows.table = preparation.apply(ctx, read_rows(ctx, table, asked.options), table);
    rows.read = rows.table.view.rows();
    return rows;
  }
  prepared.ask_for_texts(reading);
  reading.missing = prepared.missing.any();
  rows.table = naming_missing([&] { return read_rows(ctx, table, reading); });
  rows.read = rows.table.view.rows();
  const RowsNeeded needed{scan.empty() ? clusters : 1, fmt::format("-c {}", clusters)};
  rows.kept = prepared.missing.drop_rows(ctx, rows.table, table, needed);
  if (!prepared.any() && rows.table.columns.empty()) return rows;
  preparation = Preparation::fit(ctx, rows.table, prepared.options());
  rows.table = preparation.apply(ctx, std::move(rows.table), table);
  return rows;
}

/// Labels that are known of the rows; none where there are none.
std::optional<Labels> KMeansCommand::known_labels(const Context& ctx, const ClusteredRows& rows) const {
  if (labels_file.empty()) return rows.table.labels;
  Labels known = read_labels(ctx, labels_file);
  require_labels("--labels", labels_file, known, rows.read);
  keep_rows(rows.kept, 1, known.codes);
  return known;
}

bool KMeansCommand::writes_distances() const {
  return is_csv_output(output) || output.ends_with(".npz");
}

/// Distances to the centers, with what computes them; as .csv a text that grows as it is written; and where labels are
/// known, pairs of them and clusters.
std::uint64_t KMeansCommand::output_bytes(std::int64_t rows) const {
  constexpr std::uint64_t kLine = std::uint64_t{2} * 40;
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;
  std::uint64_t bytes_per_row = is_csv_output(output) ? kLine : 0;
  if (writes_distances()) bytes_per_row += 8;
  if (!label.empty() || !labels_file.empty()) bytes_per_row += 8 + 8;
  if (resume.any() && runs > 1) bytes_per_row += 4 + 8;  // labels of the best run, as they were read and are written
  return static_cast<std::uint64_t>(rows) * bytes_per_row + (writes_distances() ? kBlock : 0);
}

/// One plan for the inputs and the clustering, before they are read.
Context KMeansCommand::plan(PlannedInputs& inputs) const {
  if (!model.empty() || !is_init_name(init) || prepared.categories == "onehot") inputs.add_unknown();
  ReadOptions reading = this->reading();
  prepared.ask_for_texts(reading);
  TableView rows = inputs.add_table(table, reading);
  if (!labels_file.empty()) inputs.add_labels(labels_file);
  if (rows.rows() > 0 && (prepared.any() || prepared.missing.drops())) {
    rows = TableView(rows.data(), DType::float64, rows.rows(), rows.cols(), 0, 0);
    if (prepared.any()) inputs.add(static_cast<std::uint64_t>(rows.rows() * rows.cols()) * sizeof(double));
    inputs.add(prepared.missing.fill_bytes(inputs.context(), rows));
  }
  if (!weights.empty()) {
    inputs.add_table(weights, {});
    inputs.add(static_cast<std::uint64_t>(rows.rows()) * sizeof(double));
  }
  return inputs.fit("kmeans", [&](const Context& rest) {
    return plan_kmeans(rest, rows, options({}, {})).memory + output_bytes(rows.rows());
  });
}

/// The rows' clusters by the centers of --model.
void KMeansCommand::predict_rows(const Context& ctx, const TableView& rows, KMeans& found) const {
  found.labels = predict(ctx, found, rows);
  found.inertia = -score(ctx, found, rows);
  found.sizes.assign(static_cast<std::size_t>(found.clusters), 0);
  for (const std::int32_t of_row : found.labels) ++found.sizes[static_cast<std::size_t>(of_row)];
  found.plan = plan_kmeans(ctx, rows, {.clusters = 1, .metric = found.metric});
}

/// Names of the columns of the centers; none where the table has none.
std::vector<std::string> names_of_columns(const Preparation& preparation, std::int64_t cols) {
  const auto named = [](const Preparation::Column& column) { return !column.name.empty(); };
  std::vector<std::string> names;
  if (std::none_of(preparation.columns().begin(), preparation.columns().end(), named)) return names;
  for (std::int64_t j = 0; j < cols; ++j) names.push_back(preparation.name_of(j));
  return names;
}

void KMeansCommand::write(const Context& ctx, const ClusteredRows& rows, const KMeans& found,
                          const std::vector<double>& distances, const std::vector<std::string>& names) const {
  if (output.empty()) return;
  if (output.ends_with(".npz")) {
    const auto n = static_cast<std::int64_t>(found.labels.size());
    std::vector<NamedArray> arrays = {{"labels", {found.labels.data(), "<i4", {n}}},
                                      {"distances", {distances.data(), "<f8", {n}}},
                                      {"centres", {found.centres.data(), "<f8", {found.clusters, found.cols}}},
                                      {"inertia", {&found.inertia, "<f8", {1}}},
                                      {"iterations", {&found.iterations, "<i8", {1}}}};
    if (!rows.kept.empty()) arrays.push_back({"rows", {rows.kept.data(), "<i8", {n}}});
    RowIds columns;
    for (const std::string& name : names) columns.add(name);
    std::optional<io::IdArray> column_names;
    if (!names.empty()) arrays.push_back({"columns", column_names.emplace(ctx, output, columns).view()});
    std::optional<io::IdArray> row_ids;
    if (rows.table.ids) arrays.push_back({"row_ids", row_ids.emplace(ctx, output, *rows.table.ids).view()});
    return write_npz(output, arrays);
  }
  if (output.ends_with(".npy")) {
    return write_npy(output, {found.labels.data(), "<i4", {static_cast<std::int64_t>(found.labels.size())}});
  }
  if (!is_csv_output(output)) return write_classical(ctx, output, found, rows.kept);
  const RowNames row_names(rows.table, rows.kept);
  std::string text = csv_field(row_names.header()) + ",label,distance\n";
  for (std::size_t i = 0; i < found.labels.size(); ++i) {
    if (i % 65536 == 0) ctx.check_cancelled();
    text += fmt::format("{},{},{}\n", row_names.field(static_cast<std::int64_t>(i)), found.labels[i],
                        format_number(distances[i]));
  }
  write_text(output, text);
}

void KMeansCommand::tell_all(const Runtime& runtime, const ClusteredRows& clustered, const KMeans& found,
                             const std::vector<std::string>& names, const SampleFit& fit,
                             const std::optional<ClusteringScores>& scores, double seconds) const {
  const auto rows = static_cast<std::int64_t>(found.labels.size());
  if (common.json) {
    Json json = {{"command", "kmeans"},
                 {"rows", rows},
                 {"clusters", found.clusters},
                 {"metric", name_of(found.metric)},
                 {"inertia", found.inertia},
                 {"sizes", found.sizes},
                 {"dropped_rows", clustered.dropped()}};
    if (model.empty()) {
      json["iterations"] = found.iterations;
      json["stopped"] = name_of(found.stopped);
      json["stats"] = {{"assigned", found.stats.assigned},
                       {"skipped", found.stats.skipped},
                       {"rechecked", found.stats.rechecked},
                       {"seed_seconds", found.stats.seed_seconds},
                       {"iterate_seconds", found.stats.iterate_seconds}};
    }
    if (!report.empty()) {
      json["silhouette"] = fit.scores.mean ? Json(*fit.scores.mean) : Json(nullptr);
      json["silhouette_rows"] = fit.labels.size();
    }
    json["scores"] = scores ? cli::to_json(*scores) : Json(nullptr);
    json["report"] = report.empty() ? Json(nullptr) : Json(report);
    json["output"] = output.empty() ? Json(nullptr) : Json(output);
    json["model"] = save_model.empty() ? Json(nullptr) : Json(save_model);
    json["seconds"] = seconds;
    json["plan"] = cli::to_json(found.plan);
    return print_result(std::move(json));
  }
  if (output.empty()) {
    std::vector<std::vector<std::string>> lines = {{"cluster", "rows"}};
    const std::int64_t shown = std::min<std::int64_t>(found.cols, 6);
    for (std::int64_t j = 0; j < shown; ++j) {
      const auto at = static_cast<std::size_t>(j);
      lines[0].push_back(at < names.size() ? report::shortened(names[at], kLongestColumnName) : fmt::format("c{}", j));
    }
    for (std::int64_t c = 0; c < found.clusters; ++c) {
      lines.push_back({fmt::format("{}", c), fmt::format("{}", found.sizes[static_cast<std::size_t>(c)])});
      for (std::int64_t j = 0; j < shown; ++j) {
        lines.back().push_back(fmt::format("{:.5g}", found.centres[static_cast<std::size_t>(c * found.cols + j)]));
      }
    }
    print_text(format_table(lines) + (scores ? "\n" : ""));
  }
  if (scores) print_text(agreement_text(*scores));
  std::string silhouette;
  if (!report.empty()) {
    silhouette = fmt::format(", silhouette {} of {} rows", silhouette_text(fit.scores.mean),
                             format_count(static_cast<std::int64_t>(fit.labels.size())));
  }
  const std::string how = model.empty()
                              ? fmt::format("{} iterations, stopped by {}", found.iterations, name_of(found.stopped))
                              : "by the centers of " + model;
  tell(runtime, common,
       fmt::format("{} rows in {} clusters, inertia {:.6g}, {}, {} ({}){}", format_count(rows), found.clusters,
                   found.inertia, how, format_duration(seconds), ran_as(found.plan), silhouette));
}

/// --scan FIRST..LAST: inertia and silhouette of each number of clusters; the report shows the best.
void KMeansCommand::run_scan(const Runtime& runtime, const ClusteredRows& clustered, const Labels* known,
                             const std::vector<std::string>& names, KMeansOptions options) const {
  const auto start = std::chrono::steady_clock::now();
  const Table& rows = clustered.table;
  const ScanRange range = parse_scan(scan, rows.view.rows());
  const Context& ctx = runtime.ctx;
  require_silhouettes(ctx, rows.view, range.last - range.first + 1, range.last);
  const TableSample sample = sample_rows(ctx, rows.view, report::kSampleRows, seed);
  const Scan found = scan_clusters(ctx, rows.view, options, range, sample, !report.empty(), known);
  if (!report.empty()) {
    const KMeans& best = found.clustering;
    const SampleFit fit = fit_of(ctx, sample, best.labels, best.clusters);
    std::optional<ClusteringScores> scores;
    if (known != nullptr) scores = agreement(ctx, *known, best.labels, best.clusters);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::string text = page(ctx, rows, best, sample, fit, &found, scores, names, seconds);
    ctx.check_cancelled();
    OutputFiles together;
    write_text(report, text);
    together.commit();
  }
  runtime.progress->clear();
  if (common.json) {
    return print_result({{"command", "kmeans"},
                         {"rows", rows.view.rows()},
                         {"dropped_rows", clustered.dropped()},
                         {"scan", cli::to_json(found)},
                         {"best_clusters", found.best ? Json(found.points[*found.best].clusters) : Json(nullptr)},
                         {"silhouette_rows", sample.size()},
                         {"report", report.empty() ? Json(nullptr) : Json(report)}});
  }
  print_text(scan_table(found));
  tell(runtime, common, scan_sentence(found, sample));
}

/// The report, as text.
std::string KMeansCommand::page(const Context& ctx, const Table& rows, const KMeans& found, const TableSample& sample,
                                const SampleFit& fit, const Scan* scanned,
                                const std::optional<ClusteringScores>& scores, const std::vector<std::string>& names,
                                double seconds) const {
  report::ClustersReport content;
  content.file = table;
  if (model.empty()) {
    content.how = {{"Start", runs > 1 ? fmt::format("{}, best of {} runs", init, runs) : init},
                   {"Seed", fmt::format("{}", seed)},
                   {"Stopped by", std::string(name_of(found.stopped))}};
    if (!scan.empty()) content.how.emplace_back("Numbers of clusters", scan);
  } else {
    content.how = {{"Centers of", model}};
  }
  if (!weights.empty()) content.how.emplace_back("Weights", weights);
  content.columns = names;
  content.seconds = seconds;
  content.table = &rows.view;
  content.found = &found;
  content.sample = &sample;
  content.fit = &fit;
  content.scan = scanned;
  content.scores = scores;
  return render(ctx, content);
}

void KMeansCommand::check() const {
  check_output("-o", output);
  check_output("--save-model", save_model);
  check_output("--report", report, {".html", ".htm"});
  refuse_labels_twice(label, labels_file);
  resume.check();
  if (resume.any() && (!scan.empty() || !model.empty())) {
    throw Error(ErrorCode::invalid_argument,
                "--resume: keeps one clustering, and cannot be combined with --scan or --model");
  }
  const bool is_array = output.ends_with(".npz") || output.ends_with(".npy");
  const bool is_classical = !output.empty() && !is_array && !is_csv_output(output);
  if (!id.empty() && is_classical) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--id: the classical files {0}.membership and {0}.cluster_centres number the rows; write "
                            ".csv or .npz",
                            output));
  }
  prepared.missing.refuse_drop_into(output);
  const bool writes = !output.empty() || !save_model.empty();
  if (!scan.empty() && (writes || !model.empty() || !is_init_name(init))) {
    throw Error(ErrorCode::invalid_argument,
                "--scan: prints a table, and cannot be combined with -o, --save-model, --model or --init FILE");
  }
  if (model.empty()) return;
  for (const Option& option : of_fitting) {
    if (!option.given()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: cannot be combined with --model; the model file fixes it", option.name()));
  }
}

void KMeansCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common);
  const Context& ctx = runtime.ctx;
  check();
  KMeans found;
  KnownColumns known_columns;
  Preparation preparation;
  if (!model.empty()) {
    KMeansModel loaded = KMeansModel::load(ctx, model);
    known_columns = KnownColumns::of(loaded.notes, model);
    found = std::move(loaded.fitted);
    preparation = std::move(loaded.preparation);
  }
  PlannedInputs inputs(runtime, common);
  const Context rest = plan(inputs);
  // A pipe can be looked at before it is read, and never after that.
  const std::string notes = save_model.empty() ? std::string() : notes_of_model(ctx);
  const ClusteredRows clustered = read_prepared(ctx, found, known_columns, preparation);
  const Table& rows = clustered.table;
  require_ids_fit(ctx, output, table, rows);
  const std::vector<double> weights_of_rows = read_weights(ctx, clustered);
  const std::optional<Labels> known = known_labels(ctx, clustered);
  const bool drawn = !report.empty() && scan.empty() && !common.explain;
  std::optional<ResumedClustering> resumed;
  if (drawn) require_silhouettes(ctx, rows.view, 1, model.empty() ? clusters : found.clusters);
  if (!model.empty()) {
    predict_rows(ctx, rows.view, found);
  } else {
    const Table first_centres = is_init_name(init) ? Table{} : read_rows(ctx, init, {});
    const KMeansOptions chosen = options(first_centres, weights_of_rows);
    if (common.explain) {
      Plan made = plan_kmeans(rest, rows.view, chosen);
      made.memory = inputs.total(made.memory + output_bytes(rows.view.rows()));
      return print_plan(common, made);
    }
    const std::vector<std::string> names = names_of_columns(preparation, rows.view.cols());
    if (!scan.empty()) return run_scan(runtime, clustered, known ? &*known : nullptr, names, chosen);
    if (resume.any())
      resumed.emplace(runtime, common, resume, rows.view, chosen, ClusteringFiles{table, weights, init});
    found = kmeans(rest, rows.view, resumed ? resumed->options(chosen) : chosen);
  }
  const std::vector<std::string> names = names_of_columns(preparation, found.cols);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::optional<ClusteringScores> scores;
  if (known) scores = agreement(ctx, *known, found.labels, found.clusters);
  std::vector<double> distances;
  if (writes_distances()) distances = centre_distances(rest, found, rows.view, found.labels);
  SampleFit fit;
  std::string text;
  if (drawn) {
    const TableSample sample = sample_rows(ctx, rows.view, report::kSampleRows, seed);
    fit = fit_of(ctx, sample, found.labels, found.clusters);
    text = page(ctx, rows, found, sample, fit, nullptr, scores, names, seconds);
  }
  ctx.check_cancelled();
  OutputFiles together;
  if (!save_model.empty()) {
    KMeansModel{.fitted = found, .notes = notes, .preparation = preparation}.save(ctx, save_model);
  }
  write(ctx, clustered, found, distances, names);
  if (!report.empty()) write_text(report, text);
  together.commit();
  runtime.progress->clear();
  tell_all(runtime, clustered, found, names, fit, scores, seconds);
  if (resumed) resumed->finish();
}

}  // namespace

Command add_kmeans(const Parser& root) {
  auto command = std::make_shared<KMeansCommand>();
  const Parser app = root.add_subcommand("kmeans", "Cluster rows with k-means; the same input gives the same bits");
  app.add_option("TABLE", command->table,
                 "Rows to cluster: .npy, .npz, .csv, .tsv, idx, or k-means text and binary files")
      .type_name("FILE")
      .required();
  const std::string group = "Clustering";
  app.add_option("-c,--clusters", command->clusters, "Number of clusters")
      .type_name("K")
      .capture_default_str()
      .group(group);
  app.add_option("--init", command->init,
                 "Initial centers: k-means++, k-means||, random, first-k, or a file of centers")
      .type_name("NAME|FILE")
      .capture_default_str()
      .group(group);
  app.add_choice("--metric", command->metric, {"euclidean", "cosine"},
                 "Distance metric; cosine: spherical k-means with unit-length rows and centers")
      .group(group);
  app.add_option("--runs", command->runs, "Number of random starts; the smallest inertia wins")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_option("--seed", command->seed, "Random seed").type_name("N").capture_default_str().group(group);
  app.add_choice("--stop", command->rule, {"settled", "classical"},
                 "Stop rule; settled: labels or centers no longer change; classical: by the share of changed labels")
      .group(group);
  app.add_option("--max-iterations", command->max_iterations,
                 "Maximum number of iterations; 0: 300, or 501 with --stop classical")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_option("--tolerance", command->tolerance,
                 "Stop if the sum of squared center shifts is at most this fraction of the variance")
      .type_name("X")
      .capture_default_str()
      .group(group);
  app.add_option("--changed-share", command->changed_share,
                 "Stop if at most this fraction of labels changed [0; 0.001 with --stop classical]")
      .type_name("X")
      .group(group);
  app.add_option("--batch-size", command->batch_size, "Mini-batch size: rows drawn per iteration; 0: use all rows")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_choice(
         "--empty", command->empty, {"auto", "farthest", "keep"},
         "Empty clusters take the farthest rows, or keep their centers; auto: farthest, or keep with --stop classical")
      .group(group);
  app.add_option("--weights", command->weights,
                 "File with one weight per row; rows of weight 0 are labeled but do not count")
      .type_name("FILE")
      .group(group);
  const std::string labels = "Labels";
  app.add_option("--label", command->label, "CSV column with known labels, to compare the clusters with")
      .type_name("COLUMN")
      .group(labels);
  app.add_option("--labels", command->labels_file, "Separate file with the known labels: .npy, idx or text")
      .type_name("FILE")
      .group(labels);
  app.add_option("--model", command->model,
                 "Model file written by --save-model: label the rows of TABLE instead of clustering")
      .type_name("FILE");
  app.add_option("--save-model", command->save_model, "Write a model file for later use with --model")
      .type_name("FILE");
  app.add_option("--scan", command->scan,
                 "Print inertia and silhouette for each number of clusters in a range, such as 2..20")
      .type_name("A..B");
  app.add_option("--report", command->report, "HTML report with the clusters and their silhouettes").type_name("FILE");
  app.add_option(
         "-o,--output", command->output,
         "Output: NAME.npz (labels, distances, centres, columns), NAME.csv (row,label,distance), NAME.npy (labels), or "
         "NAME.cluster_centres and "
         "NAME.membership")
      .type_name("NAME");
  command->resume.add_to(app);
  add_preparation_options(app, command->prepared);
  for (const Option& option : app.options()) {
    const std::string name = option.name();
    if (name == "--categories" || name == "--text" || name == "--scale" || name == "--save-model" ||
        is_missing_option(name))
      command->of_fitting.push_back(option);
  }
  add_input_options(app, command->input);
  add_id_option(app, command->id);
  add_common_options(app, command->common);
  app.add_examples({"vicinal kmeans train.npy -c 3 --seed 42 -o clusters.npz",
                    "vicinal kmeans train.npy -c 3 --init first-k --stop classical -o train",
                    "vicinal kmeans train.npy -c 3 --save-model model.vkm && vicinal kmeans test.npy --model model.vkm",
                    "vicinal kmeans train.npy --scan 2..6 --batch-size 64 --report report.html"});
  return {app, [command] { naming_files(command->table, "", [&] { command->run(); }); }, &command->common.json};
}

}  // namespace vicinal::cli
