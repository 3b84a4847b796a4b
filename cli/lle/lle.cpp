// `vicinal lle`: embeds the rows of a table in few dimensions, and other rows among them.
#include "vicinal/lle.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/common_options.hpp"
#include "base/input.hpp"
#include "base/known_columns.hpp"
#include "base/missing.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"
#include "base/planned_inputs.hpp"
#include "base/row_names.hpp"
#include "commands.hpp"
#include "lle/output.hpp"
#include "report/embedding.hpp"
#include "vicinal/io.hpp"
#include "vicinal/lle_model.hpp"

namespace vicinal::cli {
namespace {

struct LleCommand {
  /// Rows that are fitted, or the model; rows that are asked.
  [[nodiscard]] const std::string& train() const { return model.empty() ? table : model; }
  [[nodiscard]] const std::string& test() const { return model.empty() ? queries : table; }

  CommonOptions common;
  SearchOptions search;
  InputOptions input;
  MissingArguments missing;
  std::string table;
  std::string queries;
  std::string variant = "standard";
  std::string solver = "automatic";
  std::string pieces = "apart";
  std::string label;
  std::string labels_file;  ///< of TABLE
  std::string id;
  std::string parameters;
  std::string model;
  std::string save_model;
  std::string output;
  std::string report;
  std::int64_t k = 12;
  std::int64_t dim = 2;
  std::int64_t judge = 1000;
  std::int64_t max_steps = LleOptions().max_steps;
  double reg = 1e-3;
  bool no_count = false;
  bool quality = false;
  std::vector<Option> of_fitting;  ///< options that a model has settled

  void run() const;

 private:
  void check() const;
  [[nodiscard]] LleOptions options() const;
  [[nodiscard]] ReadOptions reading_of_table(const Context& ctx) const;
  [[nodiscard]] KnownColumns known_columns(const Context& ctx) const;
  [[nodiscard]] Table read_asked(const Context& ctx, const std::string& file, const KnownColumns& known,
                                 const Preparation& preparation, std::int64_t width) const;
  [[nodiscard]] std::optional<Labels> read_label_file(const Context& ctx, std::int64_t rows,
                                                      const std::vector<std::int64_t>& kept) const;
  [[nodiscard]] Table read_parameters(const Context& ctx, std::int64_t rows,
                                      const std::vector<std::int64_t>& kept) const;
  [[nodiscard]] LlePlan plan_if_needed(const Context& ctx, const TableView& rows) const;
  void place(const Runtime& runtime) const;
  void tell_all(const Runtime& runtime, const EmbeddedRows& rows, double seconds) const;
};

void LleCommand::check() const {
  check_output("-o", output, {".csv", ".npy", ".npz"});
  check_output("--save-model", save_model);
  check_output("--report", report, {".html", ".htm"});
  if (queries.empty()) missing.refuse_drop_into(output);
  if (judge < 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("--quality-rows: {} is not a number of rows", judge));
  refuse_labels_twice(label, labels_file);
  if (model.empty()) return;
  for (const Option& option : of_fitting) {
    if (!option.given()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: cannot be combined with --model; the model file fixes it", option.name()));
  }
  if (!queries.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "QUERIES: the model of --model replaces the table; give one file of rows only");
  }
}

LleOptions LleCommand::options() const {
  LleOptions options;
  options.k = k;
  options.dim = dim;
  options.variant = lle_variant_from(variant);
  options.reg = reg;
  options.solver = lle_solver_from(solver);
  options.pieces = lle_pieces_from(pieces);
  options.max_steps = max_steps;
  options.certify = !no_count;
  options.metric = metric_from(search.metric);
  options.p = search.p;
  options.method = method_from(search.method);
  return options;
}

/// How TABLE is read to be embedded; its ids are of use where no other rows are written.
ReadOptions LleCommand::reading_of_table(const Context& ctx) const {
  ReadOptions reading = read_options(input);
  reading.missing = missing.any();
  reading.label = label;
  if (queries.empty()) {
    reading.id = id;
  } else if (const std::string ids = id_in_table(ctx, table, queries, reading, id); !ids.empty()) {
    reading.drop.push_back(ids);
  }
  return reading;
}

/// What TABLE has besides the columns that are compared.
KnownColumns LleCommand::known_columns(const Context& ctx) const {
  const std::vector<std::string> labels = label.empty() ? std::vector<std::string>() : std::vector{label};
  const ReadOptions reading = reading_of_table(ctx);
  const std::string ids = queries.empty() ? id : id_in_table(ctx, table, queries, reading, id);
  return by_names(ctx, table, reading, {labels, input.drop, ids});
}

/// Rows to place, prepared like those of the embedding; they need not have the columns that were left out there.
Table LleCommand::read_asked(const Context& ctx, const std::string& file, const KnownColumns& known,
                             const Preparation& preparation, std::int64_t width) const {
  ReadOptions given = read_options(input);
  if (model.empty()) {
    given.drop.clear();  // of TABLE, and known by their names
  } else {
    given.label = label;
  }
  given.id = id;
  const AskedReading reading = asked_reading(ctx, file, std::move(given), known, preparation, width, model.empty());
  return preparation.apply(ctx, read_rows(ctx, file, reading.options), file);
}

/// Those of --labels, one for each row of the file; without those of rows that were left out.
std::optional<Labels> LleCommand::read_label_file(const Context& ctx, std::int64_t rows,
                                                  const std::vector<std::int64_t>& kept) const {
  if (labels_file.empty()) return std::nullopt;
  Labels labels = read_labels(ctx, labels_file);
  require_labels("--labels", labels_file, labels, rows);
  keep_rows(kept, 1, labels.codes);
  return labels;
}

Table LleCommand::read_parameters(const Context& ctx, std::int64_t rows, const std::vector<std::int64_t>& kept) const {
  if (parameters.empty()) return {};
  Table known = read_rows(ctx, parameters, {});
  if (known.view.rows() != rows) {
    throw Error(ErrorCode::bad_data,
                fmt::format("--parameters: {} has {} rows, but the table has {}", parameters, known.view.rows(), rows));
  }
  keep_rows(ctx, kept, known);
  return known;
}

void LleCommand::tell_all(const Runtime& runtime, const EmbeddedRows& rows, double seconds) const {
  const Lle& found = rows.found;
  runtime.progress->clear();
  const auto count = static_cast<std::int64_t>(found.piece.size());
  const auto placed = rows.placed ? static_cast<std::int64_t>(rows.placed->size()) / found.options.dim : 0;
  if (common.json) {
    const auto path = [](const std::string& name) { return name.empty() ? Json(nullptr) : Json(name); };
    Json json = {{"command", "lle"}, {"rows", count}, {"queries", rows.placed ? Json(placed) : Json(nullptr)}};
    if (model.empty()) json["dropped_rows"] = rows.dropped;
    add_embedding(json, rows);
    json["output"] = path(output);
    json["model"] = path(save_model);
    json["report"] = path(report);
    json["seconds"] = seconds;
    if (model.empty()) {
      json["weight_seconds"] = found.weight_seconds;
      json["order_seconds"] = found.order_seconds;
      json["factor_seconds"] = found.factor_seconds;
      json["solve_seconds"] = found.solve_seconds;
      json["plan"] = cli::to_json(found.plan);
      json["stats"] = cli::to_json(found.stats);
    }
    return print_result(std::move(json));
  }
  if (!model.empty()) {
    return tell(runtime, common,
                fmt::format("{} rows placed among the {} of {} in {}", format_count(placed), format_count(count), model,
                            format_duration(seconds)));
  }
  print_text(embedding_text(rows));
  for (const std::string& warning : embedding_warnings(found)) tell(runtime, common, "warning: " + warning);
  tell(runtime, common,
       fmt::format("{} rows embedded in {} dimension{} by {} in {}", format_count(count), dim, dim == 1 ? "" : "s",
                   variant, format_duration(seconds)));
}

/// Plans where the plan is shown, or where the memory limit may force a slower solver: the user is warned before it
/// runs.
LlePlan LleCommand::plan_if_needed(const Context& ctx, const TableView& rows) const {
  // A factor of n rows has at most n^2 / 2 numbers; with what is kept while it is made, 16 n^2 bytes hold it.
  const auto n = static_cast<double>(rows.rows());
  if (!common.explain && 16 * n * n <= static_cast<double>(ctx.memory_limit())) return {};
  return plan_lle(ctx, rows, options());
}

/// Rows of TABLE among those of a model.
void LleCommand::place(const Runtime& runtime) const {
  const auto start = std::chrono::steady_clock::now();
  const Context& ctx = runtime.ctx;
  LleModel loaded = LleModel::load(ctx, model);
  const Table asked =
      read_asked(ctx, table, KnownColumns::of(loaded.notes, model), loaded.preparation, loaded.index.cols());
  if (common.explain) {
    const LleOptions& made = loaded.fitted.options;
    return print_plan(common, plan_knn(ctx, loaded.index.table(), &asked.view,
                                       {.k = made.k, .metric = made.metric, .p = made.p, .method = made.method}));
  }
  EmbeddedRows rows;
  rows.placed = transform(ctx, loaded.index, loaded.fitted, asked.view);
  rows.found = std::move(loaded.fitted);
  rows.names = RowNames(asked);
  rows.labels = asked.labels ? &*asked.labels : nullptr;
  rows.label_name = asked.label_name;
  ctx.check_cancelled();
  OutputFiles together;
  write_embedding(ctx, output, rows);
  together.commit();
  tell_all(runtime, rows, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void LleCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  check();
  const Runtime runtime = make_runtime(common);
  if (!model.empty()) return place(runtime);
  PlannedInputs inputs(runtime, common);
  TableView shape = inputs.add_table(table, reading_of_table(inputs.to_look()));
  inputs.add(missing.fill_bytes(runtime.ctx, shape));
  if (shape.rows() > 0 && missing.any()) {
    shape = TableView(shape.data(), DType::float64, shape.rows(), shape.cols(), 0, 0);
  }
  if (!labels_file.empty()) inputs.add_labels(labels_file);
  if (!queries.empty()) {
    ReadOptions of_queries = read_options(input);
    of_queries.id = id;
    inputs.add_table(queries, of_queries);
  }
  if (!parameters.empty()) {
    const TableView known = inputs.add_table(parameters, {});
    if (missing.drops()) inputs.add(static_cast<std::uint64_t>(known.rows() * known.cols()) * sizeof(double));
  }
  const Context reading = inputs.to_plan_from("lle", [&](const Context& rest) {
    LleOptions slowest = options();
    if (slowest.solver == LleSolver::automatic) slowest.solver = LleSolver::lanczos;  // needs no factor
    return plan_lle(rest, shape, slowest).memory;
  });
  const Context ctx = inputs.rest();
  // A pipe can be looked at before it is read, and never after that.
  const bool keeps_columns = !queries.empty() || !save_model.empty();
  const KnownColumns columns = keeps_columns ? known_columns(reading) : KnownColumns{};
  Table given = naming_missing([&] { return read_rows(reading, table, reading_of_table(reading)); });
  const std::int64_t rows_read = given.view.rows();
  std::vector<std::int64_t> kept = missing.drop_rows(runtime.ctx, given, table, {k + 1, fmt::format("-k {}", k)});
  Preparation preparation;
  if (missing.fills() || !given.columns.empty()) {
    preparation = Preparation::fit(runtime.ctx, given, {.missing = missing.options()});
    given = preparation.apply(runtime.ctx, std::move(given), table);
  }
  if (queries.empty()) require_ids_fit(ctx, output, table, given);
  LlePlan plan = plan_if_needed(ctx, given.view);
  if (common.explain) {
    plan.memory = inputs.total(plan.memory);
    return print_plan(common, plan);
  }
  if (!plan.warning.empty()) tell(runtime, common, "warning: " + plan.warning);
  const Table known = read_parameters(reading, rows_read, kept);
  if (auto labels = read_label_file(reading, rows_read, kept)) given.labels = std::move(labels);
  Table asked;
  if (!queries.empty()) {
    asked = read_asked(reading, queries, columns, preparation, given.view.cols());
    require_ids_fit(ctx, output, queries, asked);
  }
  EmbeddedRows rows;
  rows.dropped = rows_read - given.view.rows();
  rows.numbers = std::move(kept);
  try {
    rows.found = lle(ctx, given.view, options());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::over_memory) inputs.require("lle", plan.memory);
    throw;
  }
  if (!parameters.empty()) {
    try {
      rows.fit = compare_parameters(ctx, rows.found, known.view);
      rows.parameters = known.columns;
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("--parameters: {}: {}", parameters, error.what()));
    }
  }
  if (!queries.empty()) {
    rows.placed = transform(ctx, Index(ctx, given.view, {.packed = Packing::never}), rows.found, asked.view);
  }
  if (quality || !report.empty()) rows.quality = lle_quality(ctx, given.view, rows.found, {.rows = judge});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::string text;
  if (!report.empty()) {
    text = cli::report::render({table, &given.view, parameters.empty() ? nullptr : &known.view,
                                given.labels ? &*given.labels : nullptr, &rows, seconds});
  }
  const Table& written = queries.empty() ? given : asked;
  rows.names = queries.empty() ? RowNames(given, rows.numbers) : RowNames(asked);
  rows.labels = written.labels ? &*written.labels : nullptr;
  rows.label_name = written.label_name;
  ctx.check_cancelled();
  OutputFiles together;
  if (!save_model.empty()) {
    LleModel{Index(ctx, given.view), rows.found, columns.notes(), preparation}.save(ctx, save_model);
  }
  write_embedding(ctx, output, rows);
  if (!report.empty()) write_text(report, text);
  together.commit();
  tell_all(runtime, rows, seconds);
}

}  // namespace

Command add_lle(const Parser& root) {
  auto command = std::make_shared<LleCommand>();
  LleCommand& lle = *command;
  const Parser app = root.add_subcommand("lle", "Embed rows in few dimensions with locally linear embedding");
  app.add_option("TABLE", lle.table, "Rows to embed; with --model the rows to place in the embedding")
      .type_name("FILE")
      .required();
  app.add_option("QUERIES", lle.queries, "Rows to place in the embedding of TABLE; only these are written")
      .type_name("FILE");
  const auto fitting = [&](Option option, const std::string& under = "Embedding") {
    if (!under.empty()) option.group(under);
    lle.of_fitting.push_back(option);
  };
  fitting(app.add_option("-k", lle.k, "Neighbors per row").type_name("K").capture_default_str());
  fitting(app.add_option("--dim", lle.dim, "Dimensions of the embedding").type_name("N").capture_default_str());
  fitting(app.add_choice("--variant", lle.variant, {"standard", "modified", "hessian", "hessian_sklearn", "ltsa"},
                         "Variant of the method"));
  fitting(
      app.add_option("--reg", lle.reg, "Regularization: fraction of a local Gram matrix's trace added to its diagonal")
          .type_name("X")
          .capture_default_str());
  fitting(app.add_choice("--solver", lle.solver, {"automatic", "dense", "direct", "cpu", "lanczos", "arnoldi"},
                         "Eigensolver; cpu: direct, computed on the host"));
  fitting(app.add_option("--max-steps", lle.max_steps, "Maximum number of matrix products of lanczos and arnoldi")
              .type_name("N")
              .capture_default_str());
  fitting(app.add_choice("--pieces", lle.pieces, {"apart", "refuse"},
                         "If the neighbor graph has several components: embed each separately, or refuse"));
  fitting(app.add_flag("--no-count", lle.no_count,
                       "Skip the count that proves that no eigenvalue was missed; saves a second factorization"));
  const std::string quality = "Quality";
  fitting(app.add_flag("--quality", lle.quality,
                       "Print trustworthiness, continuity and the condition of the weights, as --report does"),
          quality);
  fitting(app.add_option("--quality-rows", lle.judge, "Number of rows that --quality evaluates, evenly spread; 0: all")
              .type_name("N")
              .capture_default_str(),
          quality);
  fitting(app.add_option("--parameters", lle.parameters,
                         "File with the true parameters of the rows (lengths along the surface), to color the report "
                         "and to measure how well the embedding recovers them")
              .type_name("FILE"),
          quality);
  const std::string labels = "Labels";
  app.add_option("--label", lle.label, "CSV column with labels that color the report and go into the output")
      .type_name("COLUMN")
      .group(labels);
  fitting(app.add_option("--labels", lle.labels_file, "Separate file with the labels of TABLE: .npy, idx or text")
              .type_name("FILE"),
          labels);
  app.add_option("--model", lle.model,
                 "Model file written by --save-model: place the rows of TABLE instead of embedding")
      .type_name("FILE");
  fitting(
      app.add_option("--save-model", lle.save_model, "Write a model file for later use with --model").type_name("FILE"),
      "");
  app.add_option("-o,--output", lle.output,
                 "Output file: .csv (row,y0,..), .npy or .npz (embedding, piece, placed, singular_values)")
      .type_name("FILE");
  fitting(app.add_option("--report", lle.report, "HTML report with the embedding").type_name("FILE"), "");
  add_metric_options(app, lle.search);
  add_missing_options(app, lle.missing);
  add_input_options(app, lle.input);
  add_id_option(app, lle.id);
  add_common_options(app, lle.common);
  for (const Option& option : app.options()) {
    const std::string name = option.name();
    if (name == "--metric" || name == "--p" || name == "--method" || is_missing_option(name))
      lle.of_fitting.push_back(option);
  }
  app.add_examples(
      {"vicinal generate swiss-roll -n 600 -o swiss.npy && vicinal lle swiss.npy -k 12 --dim 2 --variant "
       "modified -o points.npy --report report.html",
       "vicinal generate s-curve -n 300 -o s.npy && vicinal lle s.npy --variant ltsa --quality --json",
       "vicinal lle train.npy -k 10 --save-model model.vlle && vicinal lle test.npy --model model.vlle -o placed.csv"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli
