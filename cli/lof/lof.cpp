// `vicinal lof`: how outlying the rows of a table are, or other rows among those, from files or as they come.
#include "vicinal/lof.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
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
#include "base/row_names.hpp"
#include "commands.hpp"
#include "io/format.hpp"
#include "lof/detection.hpp"
#include "lof/graph_input.hpp"
#include "lof/outlying.hpp"
#include "lof/output.hpp"
#include "lof/stream.hpp"
#include "report/outliers.hpp"
#include "report/projection.hpp"
#include "vicinal/io.hpp"
#include "vicinal/knn.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kNeighbors = 20;
constexpr std::size_t kColumnsTold = 3;

/// What rows are compared with.
struct Fit : KnownColumns {
  Table rows;                  ///< prepared; none where only a graph or a model was given
  std::optional<Index> index;  ///< none where only a graph was given
  std::optional<NeighborGraph> graph;
  Preparation preparation;
  Lof lof;
};

struct LofCommand {
  /// Rows that are fitted, or the model; rows that are asked.
  [[nodiscard]] const std::string& train() const { return model.empty() ? table : model; }
  [[nodiscard]] const std::string& test() const { return model.empty() ? queries : table; }

  CommonOptions common;
  SearchOptions search;
  InputOptions input;
  PreparationArguments prepared;
  std::string table;
  std::string queries;
  std::string across = "max";
  std::string score = "lof";
  std::string duplicates = "sklearn";
  std::string ties = "cut";
  std::string graph;
  std::string label;
  std::string labels_file;  ///< of the rows that are scored
  std::string id;
  std::string normal;
  std::string model;
  std::string save_model;
  std::string report;
  std::string output;
  std::int64_t k = kNeighbors;
  std::int64_t k_to = 0;
  std::int64_t top = 50;
  double top_share = 0.01;
  double contamination = 0;
  double lambda = 3;
  bool novelty = false;
  std::vector<Option> of_fitting;    ///< options that a model has settled
  std::vector<Option> of_answers;    ///< options that standard input has no use for
  std::vector<Option> of_neighbors;  ///< -k

  void run() const;

 private:
  [[nodiscard]] bool asks_others() const { return !queries.empty() || !model.empty(); }
  /// The rows that are scored among others.
  [[nodiscard]] const std::string& asked() const { return model.empty() ? queries : table; }
  void check() const;
  [[nodiscard]] LofOptions options() const;
  [[nodiscard]] bool has_labels() const { return !label.empty() || !labels_file.empty(); }
  [[nodiscard]] ReadOptions reading(const Context& ctx) const;
  [[nodiscard]] std::string id_of_train(const Context& ctx, const ReadOptions& reading) const;
  [[nodiscard]] KnownColumns known_columns(const Context& ctx) const;
  [[nodiscard]] std::optional<Labels> read_label_file(const Context& ctx, std::size_t rows) const;
  [[nodiscard]] Table read_train(const Context& ctx) const;
  [[nodiscard]] Context plan(PlannedInputs& inputs) const;
  [[nodiscard]] std::uint64_t output_bytes(std::int64_t rows) const;
  [[nodiscard]] Fit fit(const Context& ctx, const Context& rest, std::optional<Table> rows, KnownColumns known) const;
  [[nodiscard]] Fit loaded(const Context& ctx) const;
  [[nodiscard]] Table read_asked(const Context& ctx, const Fit& fitted) const;
  void explain(const Context& ctx, const PlannedInputs& inputs, const std::optional<Table>& rows) const;
  [[nodiscard]] std::vector<OutlyingRow> most_outlying(const Context& ctx, const Fit& fitted,
                                                       const ScoredRows& scored) const;
  [[nodiscard]] std::string page(const Context& ctx, const Fit& fitted, const ScoredRows& scored, double seconds) const;
  void tell_all(const Runtime& runtime, const Fit& fitted, const ScoredRows& scored, double seconds) const;
};

[[noreturn]] void refuse_option(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

void LofCommand::check() const {
  check_output("-o", output, {".csv", ".npy", ".npz"});
  check_output("--save-model", save_model);
  check_output("--report", report, {".html", ".htm"});
  if (!graph.empty()) prepared.missing.refuse_drop("--graph numbers the rows of TRAIN");
  if (!asks_others()) prepared.missing.refuse_drop_into(output);
  if (top < 0) refuse_option(fmt::format("--top: {} is not a number of rows", top));
  if (!(top_share > 0) || !(top_share <= 1)) refuse_option(fmt::format("--top-share: {} is not in (0, 1]", top_share));
  refuse_labels_twice(label, labels_file);
  if (!normal.empty() && !has_labels()) {
    refuse_option("--normal: the labels are needed, by --label COLUMN or --labels FILE");
  }
  if (!id.empty() && table.empty()) refuse_option("--id: a --graph has no columns; the ids are those of TRAIN");
  if (!model.empty()) {
    for (const Option& option : of_fitting) {
      if (!option.given()) continue;
      refuse_option(fmt::format("{}: cannot be combined with --model; the model file fixes it", option.name()));
    }
    if (table.empty()) refuse_option("--model: the rows to score are needed, a file or - for standard input");
    if (!queries.empty()) refuse_option("QUERIES: the model of --model replaces TRAIN; give one file of rows only");
  } else if (table.empty() && graph.empty()) {
    refuse_option("TRAIN: a table, a --graph or a --model is needed");
  }
  if (table == "-" && model.empty())
    refuse_option("TRAIN: cannot be standard input; only rows to score can, as QUERIES or with --model");
  if (asked() == "-") {
    for (const Option& option : of_answers) {
      if (option.given())
        refuse_option(fmt::format("{}: cannot be used for rows from standard input, which are answered one by one",
                                  option.name()));
    }
  }
  if (table.empty() && !save_model.empty()) refuse_option("--save-model: needs TRAIN in addition to --graph");
  if (novelty && queries.empty() && save_model.empty()) {
    refuse_option("--novelty: needs QUERIES to score, or --save-model to score rows later");
  }
  if (common.explain && !graph.empty())
    refuse_option("--explain: with --graph nothing is searched, so that there is no plan");
}

LofOptions LofCommand::options() const {
  LofOptions options;
  options.k = k;
  options.k_to = k_to;
  options.across = across_k_from(across);
  options.score = outlier_score_from(score);
  options.duplicates = duplicates_from(duplicates);
  options.ties = ties_from(ties);
  options.lambda = lambda;
  options.contamination = contamination;
  options.novelty = novelty || !queries.empty() || !save_model.empty();
  options.metric = metric_from(search.metric);
  options.p = search.p;
  options.method = method_from(search.method);
  return options;
}

/// Where other rows are scored: the column of TRAIN that holds what --id means there; empty where it has none.
std::string LofCommand::id_of_train(const Context& ctx, const ReadOptions& reading) const {
  return id_in_table(ctx, table, asked() == "-" ? std::string() : asked(), reading, id);
}

/// How TRAIN is read; its ids are of use where it is scored itself.
ReadOptions LofCommand::reading(const Context& ctx) const {
  ReadOptions reading = read_options(input);
  reading.label = label;
  if (!asks_others()) {
    reading.id = id;
  } else if (const std::string ids = id_of_train(ctx, reading); !ids.empty()) {
    reading.drop.push_back(ids);
  }
  reading.missing = prepared.missing.any();
  prepared.ask_for_texts(reading);
  return reading;
}

/// What TRAIN has besides the columns that are compared.
KnownColumns LofCommand::known_columns(const Context& ctx) const {
  const std::vector<std::string> labels = label.empty() ? std::vector<std::string>() : std::vector{label};
  const ReadOptions reading = this->reading(ctx);
  const std::string ids = asks_others() ? id_of_train(ctx, reading) : id;
  return by_names(ctx, table, reading, {labels, input.drop, ids});
}

/// Those of --labels, of the rows that are scored.
std::optional<Labels> LofCommand::read_label_file(const Context& ctx, std::size_t rows) const {
  if (labels_file.empty()) return std::nullopt;
  Labels labels = read_labels(ctx, labels_file);
  if (labels.codes.size() == rows) return labels;
  throw Error(ErrorCode::bad_data, fmt::format("--labels: {} has {} labels for {} rows that are scored", labels_file,
                                               labels.codes.size(), rows));
}

Table LofCommand::read_train(const Context& ctx) const try {
  return naming_missing([&] { return read_rows(ctx, table, reading(ctx)); });
} catch (const Error& error) {
  const std::string sentence = error.what();
  const bool text = error.code() == ErrorCode::bad_data && sentence.find(", not a number") != std::string::npos;
  if (!text || prepared.categories != "none") throw;
  throw Error(error.code(), sentence + "; --categories ordinal reads columns of text as codes");
}

/// Scores once more, their order, ranks, flags, and with labels what the curve is made of; as .csv a text that grows as
/// it is written.
std::uint64_t LofCommand::output_bytes(std::int64_t rows) const {
  const std::uint64_t bytes_per_row = 8 + 8 + 8 + 1 + (has_labels() ? 4 + 40 : 0);
  constexpr std::uint64_t kLine = std::uint64_t{2} * 48;
  return static_cast<std::uint64_t>(rows) * (bytes_per_row + (is_csv_output(output) ? kLine : 0));
}

/// One plan for the inputs and what is made of them, before they are read.
Context LofCommand::plan(PlannedInputs& inputs) const {
  const bool by_shape = model.empty() && graph.empty() && prepared.categories != "onehot";
  if (!by_shape) inputs.add_unknown();
  TableView rows = by_shape ? inputs.add_table(table, reading(inputs.to_look())) : TableView{};
  TableView others;
  if (asks_others() && asked() != "-") {
    ReadOptions reading = read_options(input);
    reading.id = id;
    others = inputs.add_table(asked(), reading);
  }
  if (!labels_file.empty()) inputs.add_labels(labels_file);
  if (rows.rows() > 0 && (prepared.any() || prepared.missing.drops())) {
    rows = TableView(rows.data(), DType::float64, rows.rows(), rows.cols(), 0, 0);
    if (prepared.any()) {
      inputs.add(static_cast<std::uint64_t>((rows.rows() + others.rows()) * rows.cols()) * sizeof(double));
    }
    inputs.add(prepared.missing.fill_bytes(inputs.context(), rows));
  }
  return inputs.fit("lof", [&](const Context& rest) {
    const std::uint64_t fitting = plan_lof(rest, rows, options()).memory + output_bytes(rows.rows()) +
                                  (report.empty() ? 0 : report::projection_bytes(rows));
    if (others.rows() == 0) return fitting;
    // Novelty is scored beside the scores of the table, by a search of at most as many neighbors.
    const TableView like(others.data(), others.dtype(), others.rows(), rows.cols(), 0, 0);
    const LofOptions made = options();
    const Plan placing =
        plan_knn(rest, rows, &like,
                 {.k = std::max(made.k, made.k_to), .metric = made.metric, .p = made.p, .method = made.method});
    return fitting + placing.memory + output_bytes(others.rows());
  });
}

/// Memory of preparing is planned with the inputs; `rest` is what they leave.
Fit LofCommand::fit(const Context& ctx, const Context& rest, std::optional<Table> rows, KnownColumns known) const {
  Fit fitted;
  static_cast<KnownColumns&>(fitted) = std::move(known);
  LofOptions asked_for = options();
  const bool has_table = rows.has_value();
  if (has_table) {
    fitted.preparation = Preparation::fit(ctx, *rows, prepared.options());
    fitted.rows = fitted.preparation.apply(ctx, *std::move(rows), table);
  }
  if (graph.empty()) {
    fitted.index.emplace(rest, fitted.rows.view);
    fitted.lof = vicinal::lof(rest, *fitted.index, asked_for);
    return fitted;
  }
  fitted.graph = read_graph(rest, graph);
  if (fitted.graph->k > 0 && !of_neighbors[0].given()) asked_for.k = std::min(asked_for.k, fitted.graph->k);
  fitted.graph->metric = asked_for.metric;
  fitted.graph->p = asked_for.p;
  if (has_table) fitted.index.emplace(rest, fitted.rows.view);
  fitted.lof = has_table ? vicinal::lof(rest, *fitted.graph, fitted.rows.view, asked_for)
                         : vicinal::lof(rest, *fitted.graph, asked_for);
  return fitted;
}

Fit LofCommand::loaded(const Context& ctx) const {
  LofModel read = LofModel::load(ctx, model);
  Fit fitted;
  static_cast<KnownColumns&>(fitted) = KnownColumns::of(read.notes, model);
  fitted.preparation = std::move(read.preparation);
  fitted.index = std::move(read.index);
  fitted.lof = std::move(read.fitted);
  return fitted;
}

/// The rows to be scored, prepared like those that they are compared with. They need not have the columns that were
/// left out there, and may have their columns in another order; labels are read where there are any.
Table LofCommand::read_asked(const Context& ctx, const Fit& fitted) const {
  ReadOptions given = read_options(input);
  if (model.empty()) {
    given.drop.clear();  // of TRAIN, and known by their names
  } else {
    given.label = label;
  }
  given.id = id;
  const bool of_train = model.empty() && labels_file.empty();
  const AskedReading reading =
      asked_reading(ctx, asked(), std::move(given), fitted, fitted.preparation, fitted.index->cols(), of_train);
  return fitted.preparation.apply(ctx, read_rows(ctx, asked(), reading.options), asked());
}

void LofCommand::explain(const Context& ctx, const PlannedInputs& inputs, const std::optional<Table>& rows) const {
  if (rows) {
    const Table table_of = Preparation::fit(ctx, *rows, prepared.options()).apply(ctx, *rows, table);
    Plan plan = plan_lof(ctx, table_of.view, options());
    plan.memory = inputs.total(plan.memory + output_bytes(rows->view.rows()));
    return print_plan(common, plan);
  }
  const Fit fitted = loaded(ctx);
  const Table others = read_asked(ctx, fitted);
  const LofOptions& made = fitted.lof.options;
  print_plan(common,
             plan_knn(ctx, fitted.index->table(), &others.view,
                      {.k = std::max(made.k, made.k_to), .metric = made.metric, .p = made.p, .method = made.method}));
}

std::vector<OutlyingRow> LofCommand::most_outlying(const Context& ctx, const Fit& fitted,
                                                   const ScoredRows& scored) const {
  const std::size_t shown = std::min(static_cast<std::size_t>(top), scored.ranked.size());
  const std::span<const std::int64_t> rows(scored.ranked.data(), shown);
  std::vector<OutlyingRow> found;
  for (const std::int64_t row : rows) found.push_back({row, scored.scores[static_cast<std::size_t>(row)], {}});
  if (rows.empty() || !fitted.index) return found;
  const TableView& compared = fitted.index->table();
  const TableView& view = asks_others() ? scored.table->view : compared;
  const auto d = static_cast<std::size_t>(compared.cols());
  NeighborGraph neighbors;
  if (fitted.graph && !asks_others()) {
    neighbors.rows = static_cast<std::int64_t>(shown);
    neighbors.offsets = {0};
    for (const std::int64_t row : rows) {
      const auto ids = fitted.graph->ids_of(row);
      neighbors.ids.insert(neighbors.ids.end(), ids.begin(), ids.end());
      neighbors.offsets.push_back(static_cast<std::int64_t>(neighbors.ids.size()));
    }
  } else {
    std::vector<double> values;
    for (const std::int64_t row : rows) {
      for (std::size_t j = 0; j < d; ++j) values.push_back(value_at(view, row, static_cast<std::int64_t>(j)));
    }
    const LofOptions& made = fitted.lof.options;
    KnnOptions asking{.k = made.k, .metric = made.metric, .p = made.p};
    if (!asks_others()) asking.exclude = rows;
    const TableView those(values.data(), static_cast<std::int64_t>(shown), static_cast<std::int64_t>(d));
    neighbors = knn(ctx, *fitted.index, those, asking);
  }
  auto shares = column_shares(view, rows, compared, neighbors, kColumnsTold);
  for (std::size_t i = 0; i < shown; ++i) found[i].columns = std::move(shares[i]);
  return found;
}

std::string LofCommand::page(const Context& ctx, const Fit& fitted, const ScoredRows& scored, double seconds) const {
  report::OutliersReport content;
  content.file = asks_others() ? asked() : table.empty() ? graph : table;
  if (asks_others()) content.how.emplace_back("Compared with", model.empty() ? table : model);
  const LofOptions& made = fitted.lof.options;
  content.how.emplace_back("Neighbors", made.k_to > made.k
                                            ? fmt::format("{} to {}, the {}", made.k, made.k_to, name_of(made.across))
                                            : fmt::format("{}", made.k));
  content.how.emplace_back("Metric", std::string(name_of(made.metric)));
  if (fitted.lof.copied > 0) {
    content.how.emplace_back("Copies", fmt::format("{} rows have {} or more; policy {}",
                                                   format_count(fitted.lof.copied), made.k, name_of(made.duplicates)));
  }
  if (fitted.preparation.has_texts()) content.how.emplace_back("Columns of text", texts_as(fitted.preparation));
  if (fitted.preparation.scaling() != Scaling::none) {
    content.how.emplace_back("Scaled", std::string(name_of(fitted.preparation.scaling())));
  }
  content.lof = &fitted.lof;
  content.scored = &scored;
  content.preparation = &fitted.preparation;
  content.seconds = seconds;
  return render(ctx, content);
}

void LofCommand::tell_all(const Runtime& runtime, const Fit& fitted, const ScoredRows& scored, double seconds) const {
  const Lof& lof = fitted.lof;
  const auto rows = static_cast<std::int64_t>(scored.scores.size());
  runtime.progress->clear();
  if (common.json) {
    Json json = {
        {"command", "lof"}, {"rows", rows}, {"train_rows", lof.scores.size()}, {"dropped_rows", scored.dropped}};
    add_scores(json, lof, scored, fitted.preparation);
    json["output"] = output.empty() ? Json(nullptr) : Json(output);
    json["model"] = save_model.empty() ? Json(nullptr) : Json(save_model);
    json["report"] = report.empty() ? Json(nullptr) : Json(report);
    json["seconds"] = seconds;
    json["score_seconds"] = lof.score_seconds;
    json["plan"] = cli::to_json(lof.plan);
    json["stats"] = cli::to_json(lof.stats);
    print_result(std::move(json));
  } else {
    print_text(scores_text(lof, scored, fitted.preparation));
  }
  const bool by_density = lof.options.score == OutlierScore::lof || lof.options.score == OutlierScore::simplified_lof ||
                          lof.options.score == OutlierScore::inflo;
  if (by_density && lof.copied > 0 && model.empty()) {
    tell(runtime, common,
         fmt::format("warning: {} rows have {} duplicates or more, so their density is unbounded; --duplicates {} was "
                     "applied; the choices are sklearn, inf, one, distinct and cap",
                     format_count(lof.copied), lof.options.k, name_of(lof.options.duplicates)));
  }
  if (common.json) return;
  tell(runtime, common,
       fmt::format("{} rows scored by {} in {}, {} of them above the threshold of {:.6g}", format_count(rows),
                   name_of(lof.options.score), format_duration(seconds), format_count(scored.outliers), lof.threshold));
}

void LofCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  check();
  const Runtime runtime = make_runtime(common);
  const Context& ctx = runtime.ctx;
  PlannedInputs inputs(runtime, common);
  const Context rest = plan(inputs);
  std::optional<Table> rows;
  std::vector<std::int64_t> kept;
  std::int64_t dropped = 0;
  KnownColumns known;
  if (model.empty() && !table.empty()) {
    known = known_columns(ctx);  // a pipe can be looked at before it is read, and never after that
    rows = read_train(ctx);
    dropped = rows->view.rows();
    const RowsNeeded needed =
        k_to > k ? RowsNeeded{k_to + 1, fmt::format("--k-to {}", k_to)} : RowsNeeded{k + 1, fmt::format("-k {}", k)};
    kept = prepared.missing.drop_rows(ctx, *rows, table, needed);
    dropped -= rows->view.rows();
  }
  if (rows && !asks_others()) require_ids_fit(ctx, output, table, *rows);
  if (common.explain) return explain(rest, inputs, rows);
  std::optional<Labels> labels;
  if (rows) labels = std::move(rows->labels);
  Fit fitted = model.empty() ? fit(ctx, rest, std::move(rows), std::move(known)) : loaded(ctx);
  const auto save = [&] {
    if (save_model.empty()) return;
    LofModel{.index = *fitted.index, .fitted = fitted.lof, .notes = fitted.notes(), .preparation = fitted.preparation}
        .save(ctx, save_model);
  };
  if (asked() == "-") {
    OutputFiles together;
    save();
    together.commit();
    InputOptions of_rows = input;
    if (model.empty()) of_rows.drop.clear();  // of TRAIN, and known
    const std::string id_there = model.empty() ? fitted.id : std::string();
    return score_stream(runtime, common, of_rows, {*fitted.index, fitted.lof, {}, fitted.preparation}, fitted,
                        {id, id_there});
  }
  Table others;
  ScoredRows scored;
  scored.table = fitted.rows.view.rows() > 0 ? &fitted.rows : nullptr;
  if (asks_others()) {
    others = read_asked(ctx, fitted);
    require_ids_fit(ctx, output, asked(), others);
    scored.table = &others;
    scored.scores = vicinal::novelty(rest, *fitted.index, fitted.lof, others.view);
    labels = std::move(others.labels);
  } else {
    scored.scores = fitted.lof.scores;
  }
  if (auto read = read_label_file(ctx, scored.scores.size() + static_cast<std::size_t>(asks_others() ? 0 : dropped))) {
    labels = std::move(read);
    if (!asks_others()) keep_rows(kept, 1, labels->codes);
  }
  scored.names = asks_others() ? RowNames(others) : RowNames(fitted.rows, std::move(kept));
  scored.dropped = dropped;
  scored.ranked = ranking(scored.scores);
  scored.outliers = std::count_if(scored.scores.begin(), scored.scores.end(),
                                  [&](double score_of_row) { return score_of_row > fitted.lof.threshold; });
  scored.top = most_outlying(ctx, fitted, scored);
  if (labels) {
    scored.detection = detect(ctx, *labels, scored.scores, scored.ranked, top_share, normal);
    scored.labels = &*labels;
  } else if (!normal.empty()) {
    throw Error(ErrorCode::bad_data, fmt::format("--normal: {} has no labels", asked()));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string text = report.empty() ? std::string() : page(ctx, fitted, scored, seconds);
  ctx.check_cancelled();
  OutputFiles together;
  write_scores(ctx, output, fitted.lof, scored);
  save();
  if (!report.empty()) write_text(report, text);
  together.commit();
  tell_all(runtime, fitted, scored, seconds);
}

}  // namespace

Command add_lof(const Parser& root) {
  auto command = std::make_shared<LofCommand>();
  LofCommand& lof = *command;
  const Parser app =
      root.add_subcommand("lof", "Score outliers with the local outlier factor and eight related scores");
  app.add_option("TRAIN", lof.table,
                 "Training rows, scored among themselves; with --model the rows to score; - reads standard input")
      .type_name("FILE");
  app.add_option("QUERIES", lof.queries, "Rows to score against TRAIN; - reads standard input").type_name("FILE");
  const std::string scoring = "Scores";
  const auto fitting = [&](Option option, const std::string& group) {
    if (!group.empty()) option.group(group);
    lof.of_fitting.push_back(option);
    return option;
  };
  const auto answer = [&](Option option) { lof.of_answers.push_back(option); };
  lof.of_neighbors.push_back(
      fitting(app.add_option("-k", lof.k, "Neighbors per row; with --graph at most the number of neighbors in it")
                  .type_name("K")
                  .capture_default_str(),
              scoring));
  fitting(app.add_option("--k-to", lof.k_to, "Compute lof for every k from -k to this value").type_name("K"), scoring);
  fitting(app.add_choice("--across", lof.across, {"max", "mean", "min"}, "How --k-to combines the scores of all k"),
          scoring);
  fitting(app.add_choice("--score", lof.score,
                         {"lof", "simplified_lof", "knn", "knn_weighted", "loop", "ldof", "inflo", "cof", "cof_pyod"},
                         "Score to compute; larger is more outlying"),
          scoring);
  fitting(app.add_choice("--duplicates", lof.duplicates, {"sklearn", "inf", "one", "distinct", "cap"},
                         "Policy for rows with K or more duplicates"),
          scoring);
  fitting(app.add_choice("--ties", lof.ties, {"cut", "all"},
                         "Neighbors as far away as the K-th; cut: keep K in total; all: keep every one"),
          scoring);
  fitting(app.add_option("--lambda", lof.lambda, "Number of standard deviations that loop treats as far")
              .type_name("X")
              .capture_default_str(),
          scoring);
  fitting(app.add_option("--contamination", lof.contamination,
                         "Fraction of outliers in TRAIN, at most 0.5; 0: use the score's default threshold")
              .type_name("X")
              .capture_default_str(),
          scoring);
  fitting(app.add_flag("--novelty", lof.novelty, "Also compute what scoring new rows needs"), scoring);
  fitting(app.add_option("--graph", lof.graph,
                         "Use the neighbors of TRAIN in this .npz file of vicinal knn or radius instead of searching")
              .type_name("FILE"),
          "Search");
  app.add_option("--model", lof.model, "Model file written by --save-model; replaces TRAIN").type_name("FILE");
  fitting(
      app.add_option("--save-model", lof.save_model, "Write a model file for later use with --model").type_name("FILE"),
      "");
  const std::string labels = "Labels";
  answer(app.add_option("--label", lof.label, "CSV column with labels, to evaluate the scores")
             .type_name("COLUMN")
             .group(labels));
  answer(app.add_option("--labels", lof.labels_file,
                        "Separate file with the labels of the rows that are scored: .npy, idx or text")
             .type_name("FILE")
             .group(labels));
  answer(app.add_option("--normal", lof.normal, "Label of the rows that are not outliers [the larger of two classes]")
             .type_name("NAME")
             .group(labels));
  answer(app.add_option("--top-share", lof.top_share, "Fraction of the most outlying rows in which labels are counted")
             .type_name("X")
             .capture_default_str()
             .group(labels));
  answer(app.add_option("--top", lof.top, "Number of rows to show, with the columns that contribute most")
             .type_name("N")
             .capture_default_str());
  answer(app.add_option(
                "-o,--output", lof.output,
                "Output file with all scores: .csv (row,lof,rank,outlier), .npy or .npz (scores, threshold, outliers)")
             .type_name("FILE"));
  answer(app.add_option("--report", lof.report, "HTML report with the scores and the most outlying rows")
             .type_name("FILE"));
  add_metric_options(app, lof.search);
  add_preparation_options(app, lof.prepared);
  add_input_options(app, lof.input);
  add_id_option(app, lof.id);
  add_common_options(app, lof.common);
  for (const Option& option : app.options()) {
    const std::string name = option.name();
    if (name == "--metric" || name == "--p" || name == "--method" || name == "--categories" || name == "--text" ||
        name == "--scale" || is_missing_option(name))
      lof.of_fitting.push_back(option);
    if (name == "--explain") lof.of_answers.push_back(option);
  }
  app.add_examples(
      {"vicinal lof train.csv --drop class -k 20 --top 10 -o scores.csv",
       "vicinal lof train.csv test.csv --label class --scale standard --report report.html",
       "vicinal lof train.npy --save-model model.vlof --top 0 && vicinal lof --model model.vlof test.npy --json",
       "tail -n +2 test.csv | cut -d, -f1-4 | vicinal lof train.csv - --drop class --quiet"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli
