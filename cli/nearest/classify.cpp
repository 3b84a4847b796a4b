// `vicinal classify`: each row of TEST gets the class that its k nearest rows of TRAIN vote for, exactly.
#include "vicinal/classify.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/image_shape.hpp"
#include "base/input.hpp"
#include "base/output.hpp"
#include "commands.hpp"
#include "io/held_pipe.hpp"
#include "io/id_array.hpp"
#include "io/member.hpp"
#include "nearest/scores.hpp"
#include "nearest/supervised_run.hpp"
#include "report/classification.hpp"
#include "vicinal/io.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::cli {
namespace {

struct ClassifyCommand : SupervisedCommand {
  std::string labels_file;
  std::string test_labels_file;
  std::string image_shape;
  std::string class_names_file;
  bool probabilities = false;

  void check() const override;
  [[nodiscard]] RowBytes row_bytes() const override;
  [[nodiscard]] Context plan(PlannedInputs& inputs) const override;
  [[nodiscard]] Fitted fit_rows(const Context& ctx, const Context& rest) const override;
  void run() const;
};

/// What became of one output.
struct Outcome {
  std::string name;
  const Labels* labels = nullptr;
  Vote vote;
  std::vector<std::int32_t> truth;  ///< empty when not known
  std::optional<Scores> scores;
};

/// TRAIN without its label columns, of which one is read with the table and further ones each by themselves.
Table read_labelled(const Context& ctx, const SupervisedOptions& options, std::vector<Labels>& outputs) {
  ReadOptions reading = training_options(ctx, options);
  const std::vector<std::string>& columns = options.input.labels;
  if (columns.size() == 1) {
    reading.label = columns[0];
    Table table = read_training(ctx, options, reading);
    if (table.labels) outputs.push_back(*std::exchange(table.labels, std::nullopt));
    return table;
  }
  reading.drop.insert(reading.drop.end(), columns.begin(), columns.end());
  const io::HeldPipe held(io::place_of(options.first).file);
  Table table = read_training(ctx, options, reading);
  for (const std::string& column : columns) {
    outputs.push_back(read_labels(ctx, options.first, column));
    require_labels("--label " + column, options.first, outputs.back(), table.view.rows());
  }
  return table;
}

/// The true labels of TEST: a file of their own, or columns of it.
std::vector<Labels> read_truth(const Context& ctx, const std::string& file, const std::string& labels_file,
                               AskedTable& asked) {
  std::vector<Labels> truth;
  if (!labels_file.empty()) {
    truth.push_back(read_labels(ctx, labels_file));
    require_labels("--test-labels", labels_file, truth[0], asked.table.view.rows());
  } else if (asked.table.labels) {
    truth.push_back(*std::move(asked.table.labels));
  } else {
    for (const std::string& column : asked.columns) {
      truth.push_back(read_labels(ctx, file, column));
      require_labels("--label " + column, file, truth.back(), asked.table.view.rows());
    }
  }
  return truth;
}

/// What to call the classes in scores and report, in ascending order of their labels; empty without a file.
std::vector<std::string> read_class_names(const Context& ctx, const std::string& file, const Labels& labels) {
  if (file.empty()) return {};
  const Labels read = read_labels(ctx, file);
  const auto size = static_cast<std::int64_t>(read.codes.size());
  if (size != labels.class_count()) {
    throw Error(ErrorCode::bad_data,
                fmt::format("--class-names: {} has {} names for {} classes", file, size, labels.class_count()));
  }
  std::vector<std::string> names;
  for (const std::int32_t code : read.codes) names.push_back(read.name_of(code));
  return names;
}

/// The labels as an array: whole numbers, or texts of a fixed width.
void write_label_array(const Context& ctx, const std::string& path, const std::vector<Outcome>& outcomes) {
  if (outcomes.size() > 1) {  // of a model
    throw Error(ErrorCode::invalid_argument,
                fmt::format("-o: '{}' would hold the labels of {} outputs; write a .csv", path, outcomes.size()));
  }
  RowIds labels;
  for (std::size_t i = 0; i < outcomes[0].vote.codes.size(); ++i) {
    if (i % 4096 == 0) ctx.check_cancelled();
    labels.add(outcomes[0].labels->name_of(outcomes[0].vote.codes[i]));
  }
  write_npy(path, io::IdArray(ctx, path, labels).view());
}

void write_predictions(const Context& ctx, const std::string& path, const RowNames& names,
                       const std::vector<Outcome>& outcomes, bool probabilities) {
  if (path.ends_with(".npy")) return write_label_array(ctx, path, outcomes);
  const bool several = outcomes.size() > 1;
  std::string text = csv_field(names.header());
  for (const Outcome& one : outcomes) text += "," + csv_field(several ? "label_" + one.name : std::string("label"));
  for (const Outcome& one : outcomes) {
    for (std::int64_t c = 0; probabilities && c < one.vote.class_count; ++c) {
      const std::string name = one.labels->name_of(c);
      text += "," + csv_field(several ? "p_" + one.name + "_" + name : "p_" + name);
    }
  }
  text += '\n';
  const std::size_t rows = outcomes[0].vote.codes.size();
  for (std::size_t i = 0; i < rows; ++i) {
    if (i % 4096 == 0) ctx.check_cancelled();
    text += names.field(static_cast<std::int64_t>(i));
    for (const Outcome& one : outcomes) {
      text += ',';
      if (one.vote.codes[i] >= 0) text += csv_field(one.labels->name_of(one.vote.codes[i]));
    }
    for (const Outcome& one : outcomes) {
      for (std::int64_t c = 0; probabilities && c < one.vote.class_count; ++c) {
        text += "," + format_number(one.vote.probabilities[i * static_cast<std::size_t>(one.vote.class_count) +
                                                           static_cast<std::size_t>(c)]);
      }
    }
    text += '\n';
  }
  write_text(path, text);
}

std::string outcome_text(const Outcome& outcome, bool several) {
  const Scores& scores = *outcome.scores;
  std::vector<std::vector<std::string>> lines = {{"class", "rows", "precision", "recall", "F1"}};
  for (std::size_t j = 0; j < scores.classes.size(); ++j) {
    const ClassScore& one = scores.classes[j];
    lines.push_back({scores.names[j], fmt::format("{}", one.support), fmt::format("{:.4f}", one.precision),
                     fmt::format("{:.4f}", one.recall), fmt::format("{:.4f}", one.f1)});
  }
  const auto mean = [&](const char* name, const PrecisionRecall& of) {
    lines.push_back({name, fmt::format("{}", scores.rows), fmt::format("{:.4f}", of.precision),
                     fmt::format("{:.4f}", of.recall), fmt::format("{:.4f}", of.f1)});
  };
  mean("macro mean", scores.macro);
  mean("weighted mean", scores.weighted);
  return fmt::format("{}accuracy {:.4f} ({} of {}), kappa {}, Matthews {:.4f}\n\n", several ? outcome.name + ": " : "",
                     scores.accuracy, scores.correct, scores.rows,
                     scores.kappa ? fmt::format("{:.4f}", *scores.kappa) : "-", scores.matthews) +
         format_table(lines);
}

std::string predictions_text(const RowNames& names, const std::vector<Outcome>& outcomes) {
  std::vector<std::vector<std::string>> lines = {{names.header()}};
  for (const Outcome& one : outcomes) lines[0].push_back(outcomes.size() > 1 ? "label_" + one.name : "label");
  for (std::size_t i = 0; i < std::min<std::size_t>(10, outcomes[0].vote.codes.size()); ++i) {
    lines.push_back({names.text(static_cast<std::int64_t>(i))});
    for (const Outcome& one : outcomes) lines.back().push_back(one.labels->name_of(one.vote.codes[i]));
  }
  return format_table(lines);
}

Json outcome_json(const Outcome& outcome) {
  Json json = {{"name", outcome.name.empty() ? Json(nullptr) : Json(outcome.name)},
               {"classes", outcome.labels->class_count()}};
  if (!outcome.scores) return json;
  const Scores& scores = *outcome.scores;
  json["accuracy"] = scores.accuracy;
  json["right"] = scores.correct;
  json["rows"] = scores.rows;
  json["macro_f1"] = scores.macro.f1;
  const auto mean = [](const PrecisionRecall& of) {
    return Json({{"precision", of.precision}, {"recall", of.recall}, {"f1", of.f1}});
  };
  json["macro"] = mean(scores.macro);
  json["weighted"] = mean(scores.weighted);
  json["balanced_accuracy"] = scores.macro.recall;
  json["kappa"] = scores.kappa ? Json(*scores.kappa) : Json(nullptr);
  json["matthews"] = scores.matthews;
  json["per_class"] = Json::array();
  for (std::size_t j = 0; j < scores.classes.size(); ++j) {
    const ClassScore& one = scores.classes[j];
    json["per_class"].push_back({{"label", outcome.labels->name_of(static_cast<std::int64_t>(j))},
                                 {"name", scores.names[j]},
                                 {"rows", one.support},
                                 {"predicted", one.predicted},
                                 {"precision", one.precision},
                                 {"recall", one.recall},
                                 {"f1", one.f1}});
  }
  const auto c = static_cast<std::ptrdiff_t>(scores.classes.size());
  json["confusion"] = Json::array();
  for (auto at = scores.confusion.begin(); at != scores.confusion.end(); at += c) {
    json["confusion"].push_back(std::vector<std::int64_t>(at, at + c));
  }
  return json;
}

void ClassifyCommand::check() const {
  check_output("-o", output, {".csv", ".npy"});
  const bool is_array = output.ends_with(".npy");
  if (is_array && (probabilities || input.labels.size() > 1)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("-o: an .npy holds the labels of one output alone, without {}; write a .csv",
                            probabilities ? "--proba" : "others"));
  }
  check_supervised(*this);
  if (!class_names_file.empty() && input.labels.size() > 1) {
    throw Error(ErrorCode::invalid_argument, "--class-names: several --label columns cannot share one file of names");
  }
  if (!model.empty()) return;
  if (input.labels.empty() == labels_file.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "the labels of TRAIN are needed: give either --label COLUMN or --labels FILE");
  }
  if (input.labels.size() > 1 && folds != 0) {
    throw Error(ErrorCode::invalid_argument, "--cv: chooses k for one --label, not for several");
  }
  if (!labels_file.empty() || test_labels_file.empty()) return;
  if (input.labels.size() > 1) {
    throw Error(ErrorCode::invalid_argument, "--test-labels: a single file cannot score several --label columns");
  }
}

/// Codes of labels and votes, and a line of text. How many classes there are, and so what --probabilities takes, is not
/// known before the labels are.
RowBytes ClassifyCommand::row_bytes() const {
  constexpr std::uint64_t kCode = sizeof(std::int32_t);
  constexpr std::uint64_t kLine = 32;
  const std::uint64_t outputs = std::max<std::size_t>(1, input.labels.size());
  return {0, 0, outputs * (3 * kCode + kLine), {report.empty() ? 0 : report::kNeighborsDrawn}};
}

Context ClassifyCommand::plan(PlannedInputs& inputs) const {
  ReadOptions reading = training_options(inputs.to_look(), *this);
  if (input.labels.size() == 1) {
    reading.label = input.labels[0];
  } else {
    reading.drop.insert(reading.drop.end(), input.labels.begin(), input.labels.end());
    for (const std::string& column : input.labels) inputs.add_labels(first, column);
  }
  if (!labels_file.empty()) inputs.add_labels(labels_file);
  if (!test_labels_file.empty()) inputs.add_labels(test_labels_file);
  return plan_supervised(*this, inputs, reading, row_bytes());
}

Fitted ClassifyCommand::fit_rows(const Context& ctx, const Context& rest) const {
  KnownColumns known = known_columns(ctx, *this, input.labels);
  std::vector<Labels> outputs;
  Table table;
  if (labels_file.empty()) {
    table = read_labelled(ctx, *this, outputs);
    if (outputs.empty()) throw Error(ErrorCode::bad_data, fmt::format("--label: {} has no columns of labels", first));
  } else {
    table = read_training(ctx, *this, training_options(ctx, *this));
    outputs.push_back(read_labels(ctx, labels_file));
    require_labels("--labels", labels_file, outputs[0], table.view.rows());
  }
  const std::vector<std::int64_t> kept = prepared.missing.drop_rows(ctx, table, first, rows_needed(*this));
  for (Labels& labels : outputs) keep_rows(kept, 1, labels.codes);
  Fitted fitted = fit(ctx, rest, *this, std::move(table), std::move(known));
  if (!outlier.empty()) {
    for (Labels& labels : outputs) labels = with_class(labels, outlier);
  }
  fitted.model->outputs = std::move(outputs);
  return fitted;
}

/// A row without neighbors is what --outlier says, with all of the probability.
void call_outliers(const Fitted& fitted, std::vector<Vote>& votes) {
  for (std::size_t o = 0; o < votes.size(); ++o) {
    Vote& vote = votes[o];
    std::int32_t code = -1;
    for (std::size_t i = 0; i < vote.codes.size(); ++i) {
      if (vote.codes[i] >= 0) continue;
      require_neighbors(fitted, static_cast<std::int64_t>(i));
      if (code < 0) code = code_of(fitted.model->outputs[o], fitted.outlier);
      vote.codes[i] = code;
      if (!vote.probabilities.empty()) {
        vote.probabilities[i * static_cast<std::size_t>(vote.class_count) + static_cast<std::size_t>(code)] = 1;
      }
    }
  }
}

class ClassifyRun : public SupervisedRun {
 public:
  explicit ClassifyRun(const ClassifyCommand& command)
      : SupervisedRun(command, {"classify", "accuracy"}), command_(command) {}

 protected:
  void check_model() const override;
  void read_test(const Context& ctx) override;
  [[nodiscard]] CrossValidation cross_validated(const Context& ctx) const override {
    return cross_validate(ctx, index(), fitted_.model->outputs[0], cross_validation_of(command_));
  }

  void answer(const Context& ctx, const KnnOptions& search) override {
    found_ = vicinal::classify(ctx, index(), asked_.table.view, fitted_.model->outputs, search, voting());
  }
  void answer(const Context& ctx, const RadiusOptions& search, const TakeLists& watch) override {
    found_ = classify_radius(ctx, index(), asked_.table.view, fitted_.model->outputs, search, voting(), watch);
  }
  void answer(const Context& ctx, const NeighborGraph& graph) override {
    found_ = {vote(ctx, graph, fitted_.model->outputs, voting()), graph.rows, graph.table_rows, graph.plan,
              graph.stats};
  }
  Answered answered() override { return {found_.rows, found_.plan, found_.stats}; }
  void score(const Context& ctx) override;

  [[nodiscard]] bool is_scored() const override { return is_scored_; }
  [[nodiscard]] std::string page(const report::NeighborProfile& profile, double seconds) const override;
  void write(const Context& ctx) const override {
    write_predictions(ctx, command_.output, RowNames(asked_.table), outcomes_, command_.probabilities);
  }
  void add_to(Json& json) const override {
    json["outputs"] = Json::array();
    for (const Outcome& one : outcomes_) json["outputs"].push_back(outcome_json(one));
  }
  [[nodiscard]] std::vector<std::string> scores_texts() const override {
    std::vector<std::string> texts;
    for (const Outcome& one : outcomes_) {
      if (one.scores) texts.push_back(outcome_text(one, outcomes_.size() > 1));
    }
    return texts;
  }
  [[nodiscard]] std::string answers_text() const override {
    return predictions_text(RowNames(asked_.table), outcomes_);
  }
  [[nodiscard]] std::string done_text(double seconds) const override {
    return "classified in " + format_duration(seconds);
  }

 private:
  [[nodiscard]] VoteOptions voting() const {
    VoteOptions voting;
    voting.weights = fitted_.model->weights;
    voting.probabilities = command_.probabilities || !command_.report.empty();
    return voting;
  }

  const ClassifyCommand& command_;
  std::vector<Outcome> outcomes_;
  std::vector<std::string> class_names_;
  report::ImageShape image_;
  bool is_scored_ = false;
  Classification found_;
};

void ClassifyRun::check_model() const {
  if (!fitted_.model->outputs.empty()) return;
  throw Error(ErrorCode::bad_data, fmt::format("--model: {} was made by vicinal regress", command_.model));
}

void ClassifyRun::read_test(const Context& ctx) {
  const std::string& labels_file = command_.test_labels_file;
  const std::vector<Labels>& trained = fitted_.model->outputs;
  std::vector<Labels> truth;
  if (has_test()) {
    std::optional<io::HeldPipe> held;  // of several columns of labels each is read by itself
    if (labels_file.empty() && trained.size() > 1) held.emplace(io::place_of(command_.test()).file);
    asked_ = read_asked(ctx, command_, fitted_, labels_file.empty());
    truth = read_truth(ctx, command_.test(), labels_file, asked_);
    outcomes_.resize(trained.size());
  }
  for (std::size_t o = 0; o < outcomes_.size(); ++o) {
    outcomes_[o].labels = &trained[o];
    if (o < fitted_.columns.size()) outcomes_[o].name = fitted_.columns[o];
    if (o >= truth.size()) continue;
    outcomes_[o].truth = codes_among(trained[o], truth[o], labels_file.empty() ? command_.test() : labels_file);
  }
  is_scored_ = !truth.empty();
  if (!command_.report.empty() && !is_scored_) {
    throw Error(ErrorCode::invalid_argument,
                "--report: the true labels of TEST are needed, as a column or by --test-labels");
  }
  class_names_ = read_class_names(ctx, command_.class_names_file, trained[0]);
  if (has_test()) image_ = image_shape_of(command_.image_shape, asked_.table);
}

void ClassifyRun::score(const Context& ctx) {
  call_outliers(fitted_, found_.votes);
  for (std::size_t o = 0; o < outcomes_.size(); ++o) {
    outcomes_[o].vote = std::move(found_.votes[o]);
    if (!is_scored_) continue;
    outcomes_[o].scores = cli::score(ctx, *outcomes_[o].labels, outcomes_[o].truth, outcomes_[o].vote.codes);
    if (!class_names_.empty()) outcomes_[o].scores->names = class_names_;
  }
}

std::string ClassifyRun::page(const report::NeighborProfile& profile, double seconds) const {
  std::vector<report::Classification> shown;
  shown.reserve(outcomes_.size());
  for (const Outcome& one : outcomes_) {
    shown.push_back({one.name, one.labels, &one.vote, one.truth, &*one.scores});
  }
  auto content = report_of<report::ClassificationReport>(profile, seconds);
  content.weights = weighting_text(fitted_);
  content.radius = fitted_.model->radius;
  content.image = image_;
  content.outputs = shown;
  return render(content);
}

void ClassifyCommand::run() const {
  ClassifyRun(*this).run();
}

}  // namespace

Command add_classify(const Parser& root) {
  auto command = std::make_shared<ClassifyCommand>();
  const Parser app = root.add_subcommand("classify", "Classify rows by the labels of their nearest rows");
  const std::string labels = "Labels";
  command->of_fitting.push_back(
      app.add_option("--label", command->input.labels, "CSV column with the class; repeat for several outputs")
          .type_name("COLUMN")
          .repeatable()
          .group(labels));
  command->of_fitting.push_back(
      app.add_option("--labels", command->labels_file, "Separate file with the labels of TRAIN: .npy, idx or text")
          .type_name("FILE")
          .group(labels));
  app.add_option("--test-labels", command->test_labels_file, "True labels of TEST, for scoring")
      .type_name("FILE")
      .group(labels);
  app.add_option("--class-names", command->class_names_file,
                 "Names of the classes, one per line, in the order of the labels")
      .type_name("FILE")
      .group(labels);
  app.add_option("-o,--output", command->output, "Output file: row,label (.csv), or the labels alone (.npy)")
      .type_name("FILE");
  app.add_flag("--proba", command->probabilities, "Also write each class's share of the vote, as column p_CLASS");
  app.add_option("--report", command->report, "HTML report with scores and the hardest rows").type_name("FILE");
  app.add_option("--image-shape", command->image_shape, "Show each row as a gray image of this size in the report")
      .type_name("HxW");
  add_supervised_options(app, *command, "classify");
  app.add_examples(
      {"vicinal classify train.csv test.csv --label class -k 5 -o labels.csv",
       "vicinal classify train.npy test.npy --labels train_labels.npy --test-labels test_labels.npy "
       "--report report.html",
       "vicinal classify train.csv test.csv --label class -r 1.5 --outlier unknown",
       "vicinal classify train.csv --label class --k 1..25 --cv 5 --scale standard --save-model model.vnm"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli
