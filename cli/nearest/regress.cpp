// `vicinal regress`: each row of TEST gets the mean of its nearest rows' targets, exactly.
#include "vicinal/regress.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/input.hpp"
#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "commands.hpp"
#include "io/atomic_file.hpp"
#include "nearest/supervised.hpp"
#include "nearest/value_scores.hpp"
#include "report/regression.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kRowsPrinted = 10;

struct RegressCommand : SupervisedOptions {
  std::vector<std::string> targets;
  std::string targets_file;
  std::string test_targets_file;

  void check() const;
  [[nodiscard]] RowBytes row_bytes() const;
  [[nodiscard]] Context plan(PlannedInputs& inputs) const;
  [[nodiscard]] Fitted fit_rows(const Context& ctx, const Context& rest) const;
  [[nodiscard]] CrossValidation choose(const Context& ctx, const Fitted& fitted) const;
  void run() const;
};

/// Row-major [rows, columns].
struct Numbers {
  std::vector<double> values;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

void require_rows(const std::string& option, const std::string& file, const Numbers& numbers, std::int64_t rows) {
  if (numbers.rows == rows) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("{}: {} has {} rows for a table of {}", option, file, numbers.rows, rows));
}

Numbers numbers_of(const Context& ctx, const TableView& view) {
  Numbers numbers{{}, view.rows(), view.cols()};
  numbers.values.reserve(static_cast<std::size_t>(numbers.rows * numbers.columns));
  for (std::int64_t i = 0; i < numbers.rows; ++i) {
    if (i % 4096 == 0) ctx.check_cancelled();
    for (std::int64_t j = 0; j < numbers.columns; ++j) numbers.values.push_back(value_at(view, i, j));
  }
  return numbers;
}

/// Columns of a CSV, each read by itself.
Numbers read_columns(const Context& ctx, const std::string& file, const ReadOptions& how,
                     const std::vector<std::string>& columns) {
  Numbers all{{}, 0, static_cast<std::int64_t>(columns.size())};
  for (std::size_t c = 0; c < columns.size(); ++c) {
    ReadOptions reading = how;
    reading.find_text = false;
    reading.drop = all_columns_but(ctx, file, columns[c]);
    const Numbers one = numbers_of(ctx, read_table(ctx, file, reading).view);
    if (c == 0) {
      all.rows = one.rows;
      all.values.resize(one.values.size() * columns.size());
    }
    for (std::size_t i = 0; i < one.values.size(); ++i) all.values[i * columns.size() + c] = one.values[i];
  }
  return all;
}

double outlier_value(const Fitted& fitted) {
  if (fitted.outlier.empty()) return NAN;
  double value = 0;
  const char* const end = fitted.outlier.data() + fitted.outlier.size();
  const auto [rest, status] = std::from_chars(fitted.outlier.data(), end, value);
  if (status != std::errc() || rest != end) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--outlier: '{}' is not a number", fitted.outlier));
  }
  return value;
}

/// "value", "value_NAME" where there are several.
std::vector<std::string> names_of(const Fitted& fitted) {
  const std::int64_t outputs = fitted.model->target_columns;
  std::vector<std::string> names;
  for (std::int64_t o = 0; o < outputs; ++o) {
    const auto at = static_cast<std::size_t>(o);
    const std::string name = at < fitted.columns.size() ? fitted.columns[at] : fmt::format("{}", o);
    names.push_back(outputs == 1 ? "value" : "value_" + name);
  }
  return names;
}

void write_values(const Context& ctx, const std::string& path, const Regression& found,
                  const std::vector<std::string>& names) {
  if (path.ends_with(".npy")) return write_npy(path, {found.values.data(), "<f8", {found.rows, found.outputs}});
  std::string text = "row";
  for (const std::string& name : names) text += "," + csv_field(name);
  text += '\n';
  for (std::int64_t i = 0; i < found.rows; ++i) {
    if (i % 4096 == 0) ctx.check_cancelled();
    text += fmt::format("{}", i);
    for (std::int64_t o = 0; o < found.outputs; ++o) {
      text += "," + format_number(found.values[static_cast<std::size_t>(i * found.outputs + o)]);
    }
    text += '\n';
  }
  write_text(path, text);
}

std::string errors_text(const std::vector<ValueScore>& scores) {
  std::vector<std::vector<std::string>> lines = {{"target", "root mean square", "mean error size", "largest", "R2"}};
  for (const ValueScore& one : scores) {
    lines.push_back({one.name, fmt::format("{:.6g}", one.root_mean_square), fmt::format("{:.6g}", one.mean_size),
                     fmt::format("{:.6g}", one.largest), std::isfinite(one.r2) ? fmt::format("{:.4f}", one.r2) : "-"});
  }
  return format_table(lines);
}

std::string values_text(const Regression& found, const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> lines = {{"row"}};
  lines[0].insert(lines[0].end(), names.begin(), names.end());
  for (std::int64_t i = 0; i < std::min(kRowsPrinted, found.rows); ++i) {
    lines.push_back({fmt::format("{}", i)});
    for (std::int64_t o = 0; o < found.outputs; ++o) {
      lines.back().push_back(fmt::format("{:.6g}", found.values[static_cast<std::size_t>(i * found.outputs + o)]));
    }
  }
  return format_table(lines);
}

Json to_json(const std::vector<ValueScore>& scores) {
  Json json = Json::array();
  for (const ValueScore& one : scores) {
    json.push_back({{"name", one.name},
                    {"root_mean_square_error", one.root_mean_square},
                    {"mean_absolute_error", one.mean_size},
                    {"largest_error", one.largest},
                    {"r2", std::isfinite(one.r2) ? Json(one.r2) : Json(nullptr)}});
  }
  return json;
}

void RegressCommand::check() const {
  check_output("-o", output, {".csv", ".npy"});
  check_supervised(*this);
  if (model.empty() && targets.empty() == targets_file.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "the targets of TRAIN are needed: give either --target COLUMN or --targets FILE");
  }
}

/// Values, of the command and of the library; of TEST values, what is known of them, and a text.
RowBytes RegressCommand::row_bytes() const {
  constexpr std::uint64_t kText = 32;
  const std::uint64_t outputs = std::max<std::size_t>(1, targets.size());
  const std::uint64_t values = outputs * sizeof(double);
  return {values, values, 2 * values + outputs * kText};
}

Context RegressCommand::plan(PlannedInputs& inputs) const {
  ReadOptions reading = training_options(*this);
  reading.drop.insert(reading.drop.end(), targets.begin(), targets.end());
  for (const std::string& file : {targets_file, test_targets_file}) {
    if (!file.empty()) inputs.add_table(file, {});
  }
  return plan_supervised(*this, inputs, reading, row_bytes());
}

Fitted RegressCommand::fit_rows(const Context& ctx, const Context& rest) const {
  ReadOptions reading = training_options(*this);
  Numbers known;
  if (!targets.empty()) {
    known = read_columns(ctx, first, reading, targets);
    reading.drop.insert(reading.drop.end(), targets.begin(), targets.end());
  } else {
    known = numbers_of(ctx, read_table(ctx, targets_file).view);
  }
  Table table = read_training(ctx, *this, reading);
  require_rows(targets.empty() ? "--targets" : "--target", targets.empty() ? targets_file : first, known,
               table.view.rows());
  Fitted fitted = fit(rest, *this, std::move(table), targets);
  fitted.model->targets = std::move(known.values);
  fitted.model->target_columns = known.columns;
  return fitted;
}

TableView targets_of(const Fitted& fitted) {
  return {fitted.model->targets.data(), fitted.model->index.rows(), fitted.model->target_columns};
}

CrossValidation RegressCommand::choose(const Context& ctx, const Fitted& fitted) const {
  return cross_validate(ctx, fitted.model->index, targets_of(fitted), cross_validation_of(*this));
}

void RegressCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  check();
  const Runtime runtime = make_runtime(common);
  const Context& ctx = runtime.ctx;
  PlannedInputs inputs(runtime, common);
  const Context rest = plan(inputs);
  Fitted fitted = model.empty() ? fit_rows(ctx, rest) : load_fitted(ctx, model);
  if (fitted.model->targets.empty()) {
    throw Error(ErrorCode::bad_data, fmt::format("--model: {} was made by vicinal classify", model));
  }
  if (common.explain) return explain_supervised(rest, *this, inputs, fitted, row_bytes());
  RegressOptions averaging;
  averaging.weights = fitted.model->weights;
  averaging.outlier = outlier_value(fitted);
  const bool answers = !test().empty();
  AskedTable asked;
  std::optional<Numbers> truth;
  if (answers) {
    asked = read_asked(ctx, *this, fitted, false);
    if (!test_targets_file.empty()) truth = numbers_of(ctx, read_table(ctx, test_targets_file).view);
    if (!truth && !asked.columns.empty()) truth = read_columns(ctx, test(), read_options(input), asked.columns);
  }
  if (truth) {
    const std::string file = test_targets_file.empty() ? test() : test_targets_file;
    require_rows("--test-targets", file, *truth, asked.table.view.rows());
    if (truth->columns != fitted.model->target_columns) {
      throw Error(ErrorCode::bad_data, fmt::format("--test-targets: {} has {} columns, the targets of TRAIN have {}",
                                                   file, truth->columns, fitted.model->target_columns));
    }
  }
  if (folds != 0) {
    fitted.chosen = choose(rest, fitted);
    fitted.model->k = fitted.chosen->k;
  }
  const NeighborModel& by = *fitted.model;
  const auto filter = read_filter(ctx, search.filter, by.index.rows());
  const TableView& queries = asked.table.view;
  Regression found;
  NeighborGraph graph;  // only a report shows neighbors
  if (answers && !report.empty()) {
    graph = by.k > 0 ? knn(rest, by.index, queries, knn_of(*this, fitted, filter))
                     : vicinal::radius(rest, by.index, queries, radius_of(*this, fitted, filter));
    found.values = average(rest, graph, targets_of(fitted), averaging);
    found.rows = graph.rows;
    found.outputs = by.target_columns;
    found.plan = graph.plan;
    found.stats = graph.stats;
    for (std::int64_t i = 0; i < graph.rows; ++i) found.outliers += graph.ids_of(i).empty() ? 1 : 0;
  } else if (answers) {
    found =
        by.k > 0
            ? vicinal::regress(rest, by.index, queries, targets_of(fitted), knn_of(*this, fitted, filter), averaging)
            : regress_radius(rest, by.index, queries, targets_of(fitted), radius_of(*this, fitted, filter), averaging);
  }
  found.stats.prepare_seconds = fitted.prepare_seconds;
  if (found.outliers > 0 && fitted.outlier.empty()) {
    const auto nan = std::find_if(found.values.begin(), found.values.end(), [](double x) { return std::isnan(x); });
    require_neighbors(fitted, (nan - found.values.begin()) / found.outputs);
  }
  const std::vector<std::string> names = names_of(fitted);
  std::vector<ValueScore> scores;
  if (truth) scores = score_values(truth->values, found.values, names);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::string page;
  if (!report.empty()) {
    report::RegressionReport content;
    content.train_file = train();
    content.test_file = test();
    content.how = {{"Neighbors", neighborhood_text(fitted)}, {"Weights", weighting_text(fitted)}};
    content.names = names;
    content.train = &by.index.table();
    content.test = &queries;
    content.graph = &graph;
    content.found = &found;
    if (truth) content.truth = truth->values;
    content.scores = scores;
    content.seconds = seconds;
    page = render(content);
  }
  ctx.check_cancelled();
  io::OutputGroup together(interrupt_token());
  if (!output.empty()) write_values(ctx, output, found, names);
  if (!save_model.empty()) save_fitted(ctx, save_model, fitted);
  if (!report.empty()) write_text(report, page);
  together.commit();
  runtime.progress->clear();
  if (common.json) {
    Json json = answer_json("regress", found.rows, *this, fitted);
    json["targets"] = by.target_columns;
    json["outliers"] = found.outliers;
    json["scores"] = truth ? to_json(scores) : Json(nullptr);
    finish_json(json, *this, answers || !fitted.chosen ? found.plan : fitted.chosen->plan, found.stats, seconds);
    return print_json(json);
  }
  std::string text;
  if (fitted.chosen) text = validation_table(*fitted.chosen, cross_validation_of(*this), "mean squared error");
  if (truth) text += (text.empty() ? "" : "\n") + errors_text(scores);
  if (answers && !truth && output.empty()) text += values_text(found, names);
  print_text(text);
  if (fitted.chosen) tell(runtime, common, validation_sentence(*fitted.chosen, cross_validation_of(*this)));
  const std::string places = places_text(*this, "values");
  if (!answers) return tell(runtime, common, fmt::format("{} rows fitted{}", format_count(by.index.rows()), places));
  tell(runtime, common,
       fmt::format("{} rows answered {} in {} ({}){}", format_count(found.rows), neighborhood_text(fitted),
                   format_duration(seconds), ran_as(found.plan), places));
}

}  // namespace

Command add_regress(const Parser& root) {
  auto command = std::make_shared<RegressCommand>();
  const Parser app = root.add_subcommand("regress", "Predict numbers by the mean over the nearest rows");
  const std::string targets = "Targets";
  command->of_fitting.push_back(
      app.add_option("--target", command->targets, "CSV column with the target; repeat for several outputs")
          .type_name("COLUMN")
          .repeatable()
          .group(targets));
  command->of_fitting.push_back(app.add_option("--targets", command->targets_file,
                                               "Separate file with the targets of TRAIN, one column per output")
                                    .type_name("FILE")
                                    .group(targets));
  app.add_option("--test-targets", command->test_targets_file, "True targets of TEST, for scoring")
      .type_name("FILE")
      .group(targets);
  app.add_option("-o,--output", command->output, "Output file: row,value (.csv) or the values alone (.npy)")
      .type_name("FILE");
  app.add_option("--report", command->report, "HTML report with errors and neighbors").type_name("FILE");
  add_supervised_options(app, *command, "answer for");
  app.add_examples({"vicinal regress train.csv test.csv --target x0 --drop class -k 5 -o values.csv",
                    "vicinal regress train.npy test.npy --targets train_labels.npy --test-targets test_labels.npy",
                    "vicinal regress train.csv test.csv --target x0 --drop class -r 2 --outlier 0 --weights distance",
                    "vicinal regress train.csv test.csv --target x0 --drop class --k 1..15 --cv 5 --json"});
  return {app, [command] { naming_files(command->train(), command->test(), [&] { command->run(); }); },
          &command->common.json};
}

}  // namespace vicinal::cli
