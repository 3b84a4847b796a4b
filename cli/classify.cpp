// `vicinal classify`: each row of TEST gets the class that its k nearest rows of TRAIN vote for, exactly.
#include "vicinal/classify.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "common_options.hpp"
#include "input.hpp"
#include "output.hpp"
#include "report/classification.hpp"
#include "scores.hpp"
#include "vicinal/io.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::cli {
namespace {

struct ClassifyCommand {
  CommonOptions common;
  SearchOptions search;
  InputOptions input;
  std::string train;
  std::string test;
  std::string labels_file;
  std::string test_labels_file;
  std::string weights = "uniform";
  std::string output;
  std::string report;
  std::string image_shape;
  std::string class_names_file;
  std::int64_t k = 5;
  bool probabilities = false;

  void check() const;
  void run() const;
};

/// A table and the labels of each output; no labels when the file has none.
struct Labelled {
  Table table;
  std::vector<Labels> outputs;
};

/// What became of one output.
struct Outcome {
  std::string name;
  const Labels* labels = nullptr;
  Vote vote;
  std::vector<std::int32_t> truth;  ///< empty when not known
  std::optional<Scores> scores;
};

void require_rows(const std::string& option, const std::string& file, const Labels& labels, const Table& table) {
  if (static_cast<std::int64_t>(labels.codes.size()) == table.view.rows()) return;
  throw Error(ErrorCode::bad_data, fmt::format("{}: {} has {} labels for a table of {} rows", option, file,
                                               labels.codes.size(), table.view.rows()));
}

/// Label columns of `file`: one is read with the table, further ones each by themselves.
Labelled read_labelled(const Context& ctx, const std::string& file, ReadOptions reading,
                       const std::vector<std::string>& columns) {
  Labelled result;
  if (columns.size() == 1) {
    reading.label = columns[0];
    result.table = read_table(ctx, file, reading);
    if (result.table.labels) result.outputs.push_back(*std::move(result.table.labels));
    return result;
  }
  reading.drop.insert(reading.drop.end(), columns.begin(), columns.end());
  result.table = read_table(ctx, file, reading);
  for (const std::string& column : columns) {
    result.outputs.push_back(read_labels(ctx, file, column));
    require_rows("--label " + column, file, result.outputs.back(), result.table);
  }
  return result;
}

/// Whether TEST holds the label columns too: by name, or, for positions, when it has as many columns as TRAIN.
bool holds_labels(const Context& ctx, const std::string& train, const std::string& test,
                  const std::vector<std::string>& columns) {
  const FileInfo trained = describe_file(ctx, train);
  const FileInfo asked = describe_file(ctx, test);
  if (asked.format != FileFormat::csv) return false;
  const auto has = [&](const std::string& column) {
    return std::find(asked.columns.begin(), asked.columns.end(), column) != asked.columns.end();
  };
  if (std::all_of(columns.begin(), columns.end(), has)) return true;
  const bool named = std::any_of(columns.begin(), columns.end(), [&](const std::string& column) {
    return std::find(trained.columns.begin(), trained.columns.end(), column) != trained.columns.end();
  });
  if (named || trained.arrays.empty() || asked.arrays.empty()) return false;
  return trained.arrays[0].shape.size() == 2 && asked.arrays[0].shape.size() == 2 &&
         trained.arrays[0].shape[1] == asked.arrays[0].shape[1];
}

struct ImageShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// From --image-shape HxW, or from a table that was stored as [n, height, width].
ImageShape image_shape_of(const std::string& option, const Table& table) {
  ImageShape shape;
  if (option.empty()) {
    if (table.shape.size() == 3) shape = {table.shape[1], table.shape[2]};
    return shape;
  }
  long long height = 0;
  long long width = 0;
  int used = 0;
  if (std::sscanf(option.c_str(), "%lldx%lld%n", &height, &width, &used) != 2 ||
      used != static_cast<int>(option.size()) || height < 1 || width < 1 || height > 65535 || width > 65535) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--image-shape: '{}' is not of the form 28x28", option));
  }
  if (height * width != table.view.cols()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--image-shape: {} has {} pixels, the table has {} columns",
                                                         option, height * width, table.view.cols()));
  }
  return {height, width};
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

void write_predictions(const Context& ctx, const std::string& path, const std::vector<Outcome>& outcomes,
                       bool probabilities) {
  const bool several = outcomes.size() > 1;
  std::string text = "row";
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
    text += fmt::format("{}", i);
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

std::string scores_text(const Outcome& outcome, bool several) {
  const Scores& scores = *outcome.scores;
  std::vector<std::vector<std::string>> lines = {{"class", "rows", "precision", "recall", "F1"}};
  for (const ClassScore& one : scores.classes) {
    lines.push_back({one.name, fmt::format("{}", one.support), fmt::format("{:.4f}", one.precision),
                     fmt::format("{:.4f}", one.recall), fmt::format("{:.4f}", one.f1)});
  }
  return fmt::format("{}accuracy {:.4f} ({} of {})\n\n", several ? outcome.name + ": " : "", scores.accuracy,
                     scores.right, scores.rows) +
         format_table(lines);
}

std::string predictions_text(const std::vector<Outcome>& outcomes) {
  std::vector<std::vector<std::string>> lines = {{"row"}};
  for (const Outcome& one : outcomes) lines[0].push_back(outcomes.size() > 1 ? "label_" + one.name : "label");
  for (std::size_t i = 0; i < std::min<std::size_t>(10, outcomes[0].vote.codes.size()); ++i) {
    lines.push_back({fmt::format("{}", i)});
    for (const Outcome& one : outcomes) lines.back().push_back(one.labels->name_of(one.vote.codes[i]));
  }
  return format_table(lines);
}

Json to_json(const Outcome& outcome) {
  Json json = {{"name", outcome.name.empty() ? Json(nullptr) : Json(outcome.name)},
               {"classes", outcome.labels->class_count()}};
  if (!outcome.scores) return json;
  const Scores& scores = *outcome.scores;
  json["accuracy"] = scores.accuracy;
  json["right"] = scores.right;
  json["rows"] = scores.rows;
  json["macro_f1"] = scores.macro_f1;
  json["per_class"] = Json::array();
  for (std::size_t j = 0; j < scores.classes.size(); ++j) {
    const ClassScore& one = scores.classes[j];
    json["per_class"].push_back({{"label", outcome.labels->name_of(static_cast<std::int64_t>(j))},
                                 {"name", one.name},
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
  check_output("-o", output, {".csv"});
  check_output("--report", report, {".html", ".htm"});
  if (input.labels.empty() == labels_file.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "the labels of TRAIN are needed: give either --label COLUMN or --labels FILE");
  }
  if (!class_names_file.empty() && input.labels.size() > 1) {
    throw Error(ErrorCode::invalid_argument, "--class-names: several --label columns cannot share one file of names");
  }
  if (!labels_file.empty() || test_labels_file.empty()) return;
  if (input.labels.size() > 1) {
    throw Error(ErrorCode::invalid_argument, "--test-labels: a single file cannot score several --label columns");
  }
}

void ClassifyCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  check();
  const Runtime runtime = make_runtime(common);
  const Context& ctx = runtime.ctx;
  const ReadOptions reading = read_options(input);

  Labelled training;
  if (labels_file.empty()) {
    training = read_labelled(ctx, train, reading, input.labels);
    if (training.outputs.empty()) {
      throw Error(ErrorCode::bad_data, fmt::format("--label: {} has no columns of labels", train));
    }
  } else {
    training.table = read_table(ctx, train, reading);
    training.outputs.push_back(read_labels(ctx, labels_file));
    require_rows("--labels", labels_file, training.outputs[0], training.table);
  }
  Labelled asked;
  if (!input.labels.empty() && holds_labels(ctx, train, test, input.labels)) {
    asked = read_labelled(ctx, test, reading, input.labels);
  } else {
    asked.table = read_table(ctx, test, reading);
  }
  if (!test_labels_file.empty()) {
    asked.outputs = {read_labels(ctx, test_labels_file)};
    require_rows("--test-labels", test_labels_file, asked.outputs[0], asked.table);
  }
  std::vector<Outcome> outcomes(training.outputs.size());
  for (std::size_t o = 0; o < outcomes.size(); ++o) {
    outcomes[o].labels = &training.outputs[o];
    if (!input.labels.empty()) outcomes[o].name = input.labels[o];
    if (o >= asked.outputs.size()) continue;
    outcomes[o].truth =
        codes_among(training.outputs[o], asked.outputs[o], test_labels_file.empty() ? test : test_labels_file);
  }
  const bool scored = !asked.outputs.empty();
  if (!report.empty() && !scored) {
    throw Error(ErrorCode::invalid_argument,
                "--report: the true labels of TEST are needed, as a column or by --test-labels");
  }
  const std::vector<std::string> class_names = read_class_names(ctx, class_names_file, training.outputs[0]);
  const ImageShape image = image_shape_of(image_shape, asked.table);

  const auto filter = read_filter(ctx, search.filter, training.table.view.rows());
  const KnnOptions options = knn_options(search, k, filter);
  if (common.explain) return print_plan(common, plan_knn(ctx, training.table.view, &asked.table.view, options));
  VoteOptions voting;
  voting.weights = weights == "distance" ? Weighting::distance : Weighting::uniform;
  voting.probabilities = probabilities || !report.empty();
  const std::span<const Labels> outputs(training.outputs);
  NeighborGraph graph;  // only a report shows neighbors
  Classification found;
  if (report.empty()) {
    found = vicinal::classify(ctx, training.table.view, asked.table.view, outputs, options, voting);
  } else {
    graph = knn(ctx, training.table.view, asked.table.view, options);
    found = {vote(ctx, graph, outputs, voting), graph.rows, graph.table_rows, graph.plan, graph.stats};
  }
  for (std::size_t o = 0; o < outcomes.size(); ++o) {
    outcomes[o].vote = std::move(found.votes[o]);
    if (!scored) continue;
    outcomes[o].scores = score(training.outputs[o], outcomes[o].truth, outcomes[o].vote.codes);
    for (std::size_t c = 0; c < class_names.size(); ++c) outcomes[o].scores->classes[c].name = class_names[c];
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  std::string page;
  if (!report.empty()) {
    std::vector<report::Classification> shown;
    shown.reserve(outcomes.size());
    for (const Outcome& one : outcomes) {
      shown.push_back({one.name, one.labels, &one.vote, one.truth, &*one.scores});
    }
    report::ClassificationReport content;
    content.train_file = train;
    content.test_file = test;
    content.weights = weights;
    content.image_height = image.height;
    content.image_width = image.width;
    content.seconds = seconds;
    content.graph = &graph;
    content.train = &training.table.view;
    content.test = &asked.table.view;
    content.outputs = shown;
    page = render(content);
  }
  ctx.check_cancelled();
  if (!output.empty()) write_predictions(ctx, output, outcomes, probabilities);
  if (!report.empty()) write_text(report, page);
  runtime.progress->clear();
  if (common.json) {
    Json json = {{"command", "classify"},   {"rows", found.rows}, {"train_rows", found.table_rows}, {"k", k},
                 {"metric", search.metric}, {"weights", weights}};
    json["outputs"] = Json::array();
    for (const Outcome& one : outcomes) json["outputs"].push_back(to_json(one));
    json["output"] = output.empty() ? Json(nullptr) : Json(output);
    json["report"] = report.empty() ? Json(nullptr) : Json(report);
    json["seconds"] = seconds;
    json["plan"] = cli::to_json(found.plan);
    json["stats"] = cli::to_json(found.stats);
    return print_json(json);
  }
  std::string text;
  for (const Outcome& one : outcomes) {
    if (one.scores) text += (text.empty() ? "" : "\n") + scores_text(one, outcomes.size() > 1);
  }
  if (!scored && output.empty()) text += predictions_text(outcomes);
  write_stdout(text);
  std::string places = output.empty() ? "" : ", labels in " + output;
  if (!report.empty()) places += ", report in " + report;
  tell(runtime, common,
       fmt::format("{} rows classified in {} ({}){}", format_count(found.rows), format_duration(seconds),
                   ran_as(found.plan), places));
}

}  // namespace

Command add_classify(const Parser& root) {
  auto command = std::make_shared<ClassifyCommand>();
  const Parser app = root.add_subcommand("classify", "Give each row the class of its nearest labelled rows, exactly");
  app.add_option("TRAIN", command->train, "Labelled rows: .npy, .npz, .csv, .tsv or idx; plain, gzip or xz")
      .type_name("FILE")
      .required();
  app.add_option("TEST", command->test, "Rows to classify; scored when their labels are known")
      .type_name("FILE")
      .required();
  const std::string labels = "Labels";
  app.add_option("--label", command->input.labels, "CSV column with the class; may be repeated for several outputs")
      .type_name("COLUMN")
      .repeatable()
      .group(labels);
  app.add_option("--labels", command->labels_file, "Labels of TRAIN in a file of their own: .npy, idx or text")
      .type_name("FILE")
      .group(labels);
  app.add_option("--test-labels", command->test_labels_file, "True labels of TEST, to score the answer")
      .type_name("FILE")
      .group(labels);
  app.add_option("--class-names", command->class_names_file,
                 "What to call the classes in scores and report: one name a line, in order of the labels")
      .type_name("FILE")
      .group(labels);
  app.add_option("-k", command->k, "Neighbors that vote").type_name("K").capture_default_str().group("Search");
  app.add_choice("--weights", command->weights, {"uniform", "distance"}, "Weight of a neighbor's vote").group("Search");
  app.add_option("-o,--output", command->output, "Where to write row,label (.csv)").type_name("FILE");
  app.add_flag("--proba", command->probabilities, "Also write the share of the vote of each class, as p_CLASS");
  app.add_option("--report", command->report, "Where to write a page with scores and the hardest rows (.html)")
      .type_name("FILE");
  app.add_option("--image-shape", command->image_shape, "Rows are grey images of this size, for the report")
      .type_name("HxW");
  add_search_options(app, command->search);
  add_input_options(app, command->input);
  add_common_options(app, command->common);
  app.add_examples({"vicinal classify train.csv test.csv --label class -k 5 -o labels.csv",
                    "vicinal classify train.npy test.npy --labels train_labels.npy --test-labels test_labels.npy "
                    "--report report.html",
                    "vicinal classify train.csv test.csv --label class --weights distance --proba -o shares.csv",
                    "vicinal classify train.csv test.csv --label class --json"});
  return {app, [command] { naming_files(command->train, command->test, [&] { command->run(); }); },
          &command->common.json};
}

}  // namespace vicinal::cli
