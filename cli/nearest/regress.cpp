// `vicinal regress`: each row of TEST gets the mean of its nearest rows' targets, exactly.
#include "vicinal/regress.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/input.hpp"
#include "base/output.hpp"
#include "commands.hpp"
#include "io/held_pipe.hpp"
#include "io/member.hpp"
#include "nearest/supervised_run.hpp"
#include "report/regression.hpp"
#include "vicinal/metrics.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kRowsPrinted = 10;

struct RegressCommand : SupervisedCommand {
  std::vector<std::string> targets;
  std::string targets_file;
  std::string test_targets_file;

  void check() const override;
  [[nodiscard]] RowBytes row_bytes() const override;
  [[nodiscard]] Context plan(PlannedInputs& inputs) const override;
  [[nodiscard]] Fitted fit_rows(const Context& ctx, const Context& rest) const override;
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
    reading.missing = false;  // targets are known
    reading.text.clear();
    reading.drop = all_columns_but(ctx, file, how, columns[c]);
    const Numbers one = numbers_of(ctx, read_rows(ctx, file, reading).view);
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

/// Those of the columns of TRAIN; of others "value", or "value_0" and so on where there are several.
std::vector<std::string> names_of(const Fitted& fitted) {
  const std::int64_t outputs = fitted.model->target_columns;
  std::vector<std::string> names;
  for (std::int64_t o = 0; o < outputs; ++o) {
    const auto at = static_cast<std::size_t>(o);
    const bool named = at < fitted.columns.size() && !is_position(fitted.columns[at]);
    names.push_back(named ? fitted.columns[at] : outputs == 1 ? std::string("value") : fmt::format("value_{}", o));
  }
  return names;
}

void write_values(const Context& ctx, const std::string& path, const RowNames& rows, const Regression& found,
                  const std::vector<std::string>& names) {
  if (path.ends_with(".npy")) return write_npy(path, {found.values.data(), "<f8", {found.rows, found.outputs}});
  std::string text = csv_field(rows.header());
  for (const std::string& name : names) text += "," + csv_field(name);
  text += '\n';
  for (std::int64_t i = 0; i < found.rows; ++i) {
    if (i % 4096 == 0) ctx.check_cancelled();
    text += rows.field(i);
    for (std::int64_t o = 0; o < found.outputs; ++o) {
      text += "," + format_number(found.values[static_cast<std::size_t>(i * found.outputs + o)]);
    }
    text += '\n';
  }
  write_text(path, text);
}

/// Scores of the rows' values; a value that is not finite, which only --outlier gives, counts as right.
std::vector<RegressionScore> score_values(const Context& ctx, std::span<const double> truth, std::vector<double> found,
                                          std::size_t outputs) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!std::isfinite(found[i])) found[i] = truth[i];
  }
  return regression_scores(ctx, truth, found, static_cast<std::int64_t>(outputs));
}

std::string errors_text(const std::vector<RegressionScore>& scores, const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> lines = {{"target", "RMSE", "MAE", "largest error", "R2"}};
  for (std::size_t o = 0; o < scores.size(); ++o) {
    const RegressionScore& one = scores[o];
    lines.push_back({names[o], fmt::format("{:.6g}", one.root_mean_squared_error),
                     fmt::format("{:.6g}", one.mean_absolute_error), fmt::format("{:.6g}", one.max_error),
                     one.r2 && std::isfinite(*one.r2) ? fmt::format("{:.4f}", *one.r2) : "-"});
  }
  return format_table(lines);
}

std::string values_text(const RowNames& rows, const Regression& found, const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> lines = {{rows.header()}};
  lines[0].insert(lines[0].end(), names.begin(), names.end());
  for (std::int64_t i = 0; i < std::min(kRowsPrinted, found.rows); ++i) {
    lines.push_back({rows.text(i)});
    for (std::int64_t o = 0; o < found.outputs; ++o) {
      lines.back().push_back(fmt::format("{:.6g}", found.values[static_cast<std::size_t>(i * found.outputs + o)]));
    }
  }
  return format_table(lines);
}

Json errors_json(const std::vector<RegressionScore>& scores, const std::vector<std::string>& names) {
  Json json = Json::array();
  for (std::size_t o = 0; o < scores.size(); ++o) {
    const RegressionScore& one = scores[o];
    json.push_back({{"name", names[o]},
                    {"root_mean_square_error", one.root_mean_squared_error},
                    {"mean_absolute_error", one.mean_absolute_error},
                    {"largest_error", one.max_error},
                    {"r2", one.r2 && std::isfinite(*one.r2) ? Json(*one.r2) : Json(nullptr)}});
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
  return {values, values, 2 * values + outputs * kText, {report.empty() ? 0 : 1}};
}

Context RegressCommand::plan(PlannedInputs& inputs) const {
  ReadOptions reading = training_options(inputs.to_look(), *this);
  reading.drop.insert(reading.drop.end(), targets.begin(), targets.end());
  for (const std::string& file : {targets_file, test_targets_file}) {
    if (!file.empty()) inputs.add_table(file, {});
  }
  return plan_supervised(*this, inputs, reading, row_bytes());
}

Fitted RegressCommand::fit_rows(const Context& ctx, const Context& rest) const {
  ReadOptions reading = training_options(ctx, *this);
  KnownColumns columns = known_columns(ctx, *this, targets);
  std::optional<io::HeldPipe> held;
  Numbers known;
  if (!targets.empty()) {
    held.emplace(io::place_of(first).file);  // each of them is read by itself
    known = read_columns(ctx, first, reading, targets);
    reading.drop.insert(reading.drop.end(), targets.begin(), targets.end());
  } else {
    known = numbers_of(ctx, read_rows(ctx, targets_file).view);
  }
  Table table = read_training(ctx, *this, reading);
  held.reset();
  require_rows(targets.empty() ? "--targets" : "--target", targets.empty() ? targets_file : first, known,
               table.view.rows());
  const std::vector<std::int64_t> kept = prepared.missing.drop_rows(ctx, table, first, rows_needed(*this));
  keep_rows(kept, static_cast<std::size_t>(known.columns), known.values);
  Fitted fitted = fit(ctx, rest, *this, std::move(table), std::move(columns));
  fitted.model->targets = std::move(known.values);
  fitted.model->target_columns = known.columns;
  return fitted;
}

TableView targets_of(const Fitted& fitted) {
  return {fitted.model->targets.data(), fitted.model->index.rows(), fitted.model->target_columns};
}

class RegressRun : public SupervisedRun {
 public:
  explicit RegressRun(const RegressCommand& command)
      : SupervisedRun(command, {"regress", "mean squared error"}), command_(command) {}

 protected:
  void check_model() const override;
  void read_test(const Context& ctx) override;
  [[nodiscard]] CrossValidation cross_validated(const Context& ctx) const override {
    return cross_validate(ctx, index(), targets_of(fitted_), cross_validation_of(command_));
  }

  void answer(const Context& ctx, const KnnOptions& search) override {
    found_ = vicinal::regress(ctx, index(), asked_.table.view, targets_of(fitted_), search, averaging_);
  }
  void answer(const Context& ctx, const RadiusOptions& search, const TakeLists& watch) override {
    found_ = regress_radius(ctx, index(), asked_.table.view, targets_of(fitted_), search, averaging_, watch);
  }
  void answer(const Context& ctx, const NeighborGraph& graph) override;
  Answered answered() override { return {found_.rows, found_.plan, found_.stats}; }
  void score(const Context& ctx) override;

  [[nodiscard]] bool is_scored() const override { return truth_.has_value(); }
  [[nodiscard]] std::string page(const report::NeighborProfile& profile, double seconds) const override;
  void write(const Context& ctx) const override {
    write_values(ctx, command_.output, RowNames(asked_.table), found_, names_);
  }
  void add_to(Json& json) const override {
    json["targets"] = fitted_.model->target_columns;
    json["outliers"] = found_.outliers;
    json["scores"] = truth_ ? errors_json(scores_, names_) : Json(nullptr);
  }
  [[nodiscard]] std::vector<std::string> scores_texts() const override {
    if (!truth_) return {};
    return {errors_text(scores_, names_)};
  }
  [[nodiscard]] std::string answers_text() const override {
    return values_text(RowNames(asked_.table), found_, names_);
  }
  [[nodiscard]] std::string done_text(double seconds) const override {
    return fmt::format("answered {} in {}", neighborhood_text(fitted_), format_duration(seconds));
  }

 private:
  const RegressCommand& command_;
  RegressOptions averaging_;
  std::optional<Numbers> truth_;
  std::vector<std::string> names_;
  std::vector<RegressionScore> scores_;
  Regression found_;
};

void RegressRun::check_model() const {
  if (!fitted_.model->targets.empty()) return;
  throw Error(ErrorCode::bad_data, fmt::format("--model: {} was made by vicinal classify", command_.model));
}

void RegressRun::read_test(const Context& ctx) {
  averaging_.weights = fitted_.model->weights;
  averaging_.outlier = outlier_value(fitted_);
  names_ = names_of(fitted_);
  if (!has_test()) return;
  const std::string& targets_file = command_.test_targets_file;
  std::optional<io::HeldPipe> held;
  if (targets_file.empty()) held.emplace(io::place_of(command_.test()).file);  // each of them is read by itself
  asked_ = read_asked(ctx, command_, fitted_, false);
  if (!targets_file.empty()) truth_ = numbers_of(ctx, read_rows(ctx, targets_file).view);
  if (!truth_ && !asked_.columns.empty()) {
    truth_ = read_columns(ctx, command_.test(), read_options(command_.input), asked_.columns);
  }
  if (!truth_) return;
  const std::string file = targets_file.empty() ? command_.test() : targets_file;
  require_rows("--test-targets", file, *truth_, asked_.table.view.rows());
  if (truth_->columns != fitted_.model->target_columns) {
    throw Error(ErrorCode::bad_data, fmt::format("--test-targets: {} has {} columns, the targets of TRAIN have {}",
                                                 file, truth_->columns, fitted_.model->target_columns));
  }
}

void RegressRun::answer(const Context& ctx, const NeighborGraph& graph) {
  found_.values = average(ctx, graph, targets_of(fitted_), averaging_);
  found_.rows = graph.rows;
  found_.outputs = fitted_.model->target_columns;
  found_.plan = graph.plan;
  found_.stats = graph.stats;
  for (std::int64_t i = 0; i < graph.rows; ++i) found_.outliers += graph.ids_of(i).empty() ? 1 : 0;
}

void RegressRun::score(const Context& ctx) {
  if (found_.outliers > 0 && fitted_.outlier.empty()) {
    const auto nan = std::find_if(found_.values.begin(), found_.values.end(), [](double x) { return std::isnan(x); });
    require_neighbors(fitted_, (nan - found_.values.begin()) / found_.outputs);
  }
  if (truth_) scores_ = score_values(ctx, truth_->values, found_.values, names_.size());
}

std::string RegressRun::page(const report::NeighborProfile& profile, double seconds) const {
  auto content = report_of<report::RegressionReport>(profile, seconds);
  content.how = {{"Neighbors", neighborhood_text(fitted_)}, {"Weights", weighting_text(fitted_)}};
  content.names = names_;
  content.found = &found_;
  if (truth_) content.truth = truth_->values;
  content.scores = scores_;
  return render(content);
}

void RegressCommand::run() const {
  RegressRun(*this).run();
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
  app.add_option("-o,--output", command->output,
                 "Output file: row and a column of each target (.csv), or the values alone (.npy)")
      .type_name("FILE");
  app.add_option("--report", command->report, "HTML report with errors and neighbors").type_name("FILE");
  add_supervised_options(app, *command, "predict");
  app.add_examples({"vicinal regress train.csv test.csv --target x0 --drop class -k 5 -o values.csv",
                    "vicinal regress train.npy test.npy --targets train_labels.npy --test-targets test_labels.npy",
                    "vicinal regress train.csv test.csv --target x0 --drop class -r 2 --outlier 0 --weights distance",
                    "vicinal regress train.csv test.csv --target x0 --drop class --k 1..15 --cv 5 --json"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli
