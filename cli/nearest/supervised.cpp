// See supervised.hpp.
#include "nearest/supervised.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/input.hpp"
#include "base/progress.hpp"
#include "io/format.hpp"
#include "vicinal/error.hpp"
#include "vicinal/radius_batches.hpp"

namespace vicinal::cli {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

/// Of TRAIN, and of TEST where there is one: views that may stand for shapes.
Plan search_plan(const Context& ctx, const SupervisedOptions& options, const TableView& rows, const TableView& asked) {
  if (options.folds != 0) {
    Plan plan = plan_cross_validate(ctx, rows, cross_validation_of(options));
    if (asked.rows() == 0) return plan;
    const std::int64_t k = parse_k(options.k).last;
    const std::uint64_t answering = plan_knn(ctx, rows, &asked, knn_options(options.search, k, {})).memory;
    plan.memory = std::max(plan.memory, answering);
    return plan;
  }
  const TableView* const queries = asked.rows() > 0 ? &asked : nullptr;
  if (options.by_radius()) {
    const RadiusOptions within = radius_options(options.search, options.radius, {});
    return plan_radius_batches(ctx, rows, queries, within);
  }
  return plan_knn(ctx, rows, queries, knn_options(options.search, parse_k(options.k).first, {}));
}

}  // namespace

std::uint64_t bytes_beside(const RowBytes& bytes, std::int64_t rows, std::int64_t asked) {
  return bytes.copied * static_cast<std::uint64_t>(rows) + bytes.answered * static_cast<std::uint64_t>(asked) +
         report::NeighborProfile::page_bytes(bytes.page, asked, rows);
}

void add_supervised_options(const Parser& app, SupervisedOptions& options, const std::string& asked) {
  app.add_option("TRAIN", options.first,
                 fmt::format("Training rows: .npy, .npz, .csv, .tsv or idx; with --model the rows to {}", asked))
      .type_name("FILE")
      .required();
  app.add_option(
         "TEST", options.second,
         fmt::format("Rows to {}; scored if their true values are given. Optional with --cv or --save-model", asked))
      .type_name("FILE");
  const std::string search = "Search";
  const auto settled = [&](const Option& option) { options.of_fitting.push_back(option); };
  settled(app.add_option("-k,--k", options.k, "Number of neighbors; with --cv a range A..B to choose from")
              .type_name("K")
              .capture_default_str()
              .group(search));
  options.radius_option =
      app.add_option("-r,--radius", options.radius, "Use all rows within this distance instead of k")
          .type_name("R")
          .group(search);
  settled(*options.radius_option);
  settled(app.add_option("--outlier", options.outlier, "Prediction for a row without neighbors within -r [an error]")
              .type_name("VALUE")
              .group(search));
  settled(app.add_choice("--weights", options.weights, {"uniform", "distance"},
                         "Weights of the neighbors; distance: 1 / distance")
              .group(search));
  settled(app.add_option("--cv", options.folds, "Choose k by cross-validation with this many folds")
              .type_name("FOLDS")
              .group(search));
  app.add_option("--seed", options.seed, "Random seed of the folds")
      .type_name("SEED")
      .capture_default_str()
      .group(search);
  app.add_option("--model", options.model, "Model file written by --save-model; replaces TRAIN").type_name("FILE");
  settled(app.add_option("--save-model", options.save_model, "Write a model file for later use with --model")
              .type_name("FILE"));
  add_search_options(app, options.search);
  add_preparation_options(app, options.prepared);
  add_input_options(app, options.input);
  add_id_option(app, options.id);
  add_common_options(app, options.common);
  for (const Option& option : app.options()) {
    const std::string name = option.name();
    for (const char* const one :
         {"--metric", "--p", "--filter", "--categories", "--text", "--scale", "--missing", "--missing-k"}) {
      if (name == one) settled(option);
    }
  }
}

void check_supervised(const SupervisedOptions& options) {
  check_output("--save-model", options.save_model);
  check_output("--report", options.report, {".html", ".htm"});
  if (!options.model.empty()) {
    for (const Option& option : options.of_fitting) {
      if (!option.given()) continue;
      refuse(fmt::format("{}: cannot be combined with --model; the model file fixes it", option.name()));
    }
    if (!options.second.empty()) {
      refuse("TEST: the model of --model replaces TRAIN; give one file of rows only");
    }
    return;
  }
  if (options.second.empty() && options.folds == 0 && options.save_model.empty()) {
    refuse("TEST: rows to predict are required, unless --cv or --save-model is given");
  }
  if (options.second.empty() && !options.output.empty()) refuse("-o: without TEST there is nothing to write");
  if (options.second.empty() && !options.report.empty()) refuse("--report: without TEST there is nothing to show");
  if (!options.outlier.empty() && !options.by_radius()) {
    refuse("--outlier: needs -r; with -k every row has neighbors");
  }
  if (options.prepared.missing.drops() && !options.search.filter.empty()) {
    refuse("--filter: has a value for every row of TRAIN, so it cannot be combined with --missing drop");
  }
  if (!options.report.empty()) options.prepared.missing.refuse_drop("--report numbers the rows of TRAIN");
  const KRange range = parse_k(options.k);
  if (range.last > range.first && options.folds == 0) {
    refuse(fmt::format("-k: {} is a range, from which --cv FOLDS chooses", options.k));
  }
  if (options.folds != 0 && options.by_radius()) refuse("--cv: chooses a number of neighbors, which -r does not have");
  if (options.folds != 0 && !options.search.filter.empty()) {
    refuse("--cv: cannot be combined with --filter");
  }
}

KRange parse_k(const std::string& text) {
  const auto number = [&](std::string_view digits) {
    std::int64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [rest, status] = std::from_chars(digits.data(), end, value);
    if (digits.empty() || status != std::errc() || rest != end) {
      refuse(fmt::format("-k: '{}' is neither a number nor of the form 1..25", text));
    }
    return value;
  };
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    const std::int64_t k = number(text);
    return {k, k};
  }
  const KRange range = {number(std::string_view(text).substr(0, dots)),
                        number(std::string_view(text).substr(dots + 2))};
  if (range.last < range.first) refuse(fmt::format("-k: '{}' ends before it begins", text));
  return range;
}

RowsNeeded rows_needed(const SupervisedOptions& options) {
  if (options.by_radius()) return {};
  const std::int64_t k = parse_k(options.k).last;
  if (options.folds != 0)
    return {std::max(options.folds, k + 1), fmt::format("--cv {} -k {}", options.folds, options.k)};
  return {k, "-k " + options.k};
}

/// The column of ids in TRAIN, whose rows are not told of where there is a TEST.
std::string id_of_training(const Context& ctx, const SupervisedOptions& options, const ReadOptions& reading) {
  if (!options.model.empty()) return {};
  const std::string& asked = options.test().empty() ? options.first : options.test();
  return id_in_table(ctx, options.first, asked, reading, options.id);
}

ReadOptions training_options(const Context& ctx, const SupervisedOptions& options) {
  ReadOptions reading = read_options(options.input);
  if (const std::string ids = id_of_training(ctx, options, reading); !ids.empty()) reading.drop.push_back(ids);
  reading.missing = options.prepared.missing.any();
  options.prepared.ask_for_texts(reading);
  return reading;
}

Table read_training(const Context& ctx, const SupervisedOptions& options, const ReadOptions& reading) try {
  return naming_missing([&] { return read_rows(ctx, options.first, reading); });
} catch (const Error& error) {
  const std::string sentence = error.what();
  const bool text = error.code() == ErrorCode::bad_data && sentence.find(", not a number") != std::string::npos;
  if (!text || options.prepared.categories != "none") throw;
  throw Error(error.code(), sentence + "; --categories ordinal or onehot reads columns of text");
}

KnownColumns known_columns(const Context& ctx, const SupervisedOptions& options,
                           const std::vector<std::string>& columns) {
  const ReadOptions reading = read_options(options.input);
  return by_names(ctx, options.first, reading, {columns, options.input.drop, id_of_training(ctx, options, reading)});
}

Fitted fit(const Context& ctx, const Context& rest, const SupervisedOptions& options, Table table, KnownColumns known) {
  Fitted fitted;
  static_cast<KnownColumns&>(fitted) = std::move(known);
  fitted.outlier = options.outlier;
  fitted.preparation = Preparation::fit(ctx, table, options.prepared.options());
  fitted.rows = fitted.preparation.apply(ctx, std::move(table), options.first);
  const auto start = std::chrono::steady_clock::now();
  // One search follows, unless numbers of neighbors are tried or a report is drawn; a saved model is searched again.
  const bool once = options.folds == 0 && options.save_model.empty() && options.report.empty();
  const IndexOptions kept = {.packed = once ? Packing::never : Packing::automatic};
  fitted.model = NeighborModel{.index = Index(rest, fitted.rows.view, kept)};
  fitted.prepare_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  NeighborModel& model = *fitted.model;
  model.k = options.by_radius() ? 0 : parse_k(options.k).first;
  model.radius = options.by_radius() ? options.radius : 0;
  model.metric = metric_from(options.search.metric);
  model.p = options.search.p;
  model.weights = options.weights == "distance" ? Weighting::distance : Weighting::uniform;
  return fitted;
}

Context plan_supervised(const SupervisedOptions& options, PlannedInputs& inputs, const ReadOptions& training,
                        const RowBytes& bytes) {
  if (!options.model.empty()) inputs.add_unknown();
  if (options.prepared.categories == "onehot") inputs.add_unknown();  // as many columns as there are texts
  TableView rows = options.model.empty() ? inputs.add_table(options.first, training) : TableView{};
  TableView asked;
  if (!options.test().empty()) {
    ReadOptions reading = read_options(options.input);
    reading.id = options.id;
    asked = inputs.add_table(options.test(), reading);
  }
  const auto count = [](const TableView& table) { return static_cast<std::uint64_t>(table.rows()); };
  if (rows.rows() > 0 && options.prepared.any()) {
    rows = TableView(rows.data(), DType::float64, rows.rows(), rows.cols(), 0, 0);
    inputs.add((count(rows) + count(asked)) * static_cast<std::uint64_t>(rows.cols()) * sizeof(double));
  }
  inputs.add(options.prepared.missing.fill_bytes(inputs.context(), rows));
  inputs.add(count(rows) * bytes.known);
  return inputs.fit(options.test().empty() ? "fitting" : "answering", [&](const Context& rest) {
    // TEST may have columns that TRAIN was read without.
    const TableView like(asked.data(), asked.dtype(), asked.rows(), asked.rows() > 0 ? rows.cols() : 0, 0, 0);
    return bytes_beside(bytes, rows.rows(), like.rows()) + search_plan(rest, options, rows, like).memory;
  });
}

Fitted load_fitted(const Context& ctx, const std::string& file) {
  Fitted fitted;
  fitted.model = NeighborModel::load(ctx, file);
  fitted.preparation = fitted.model->preparation;
  static_cast<KnownColumns&>(fitted) = KnownColumns::of(fitted.model->notes, file);
  const Json notes = Json::parse(fitted.model->notes, nullptr, false);
  if (!notes.is_object()) return fitted;  // made by a program, with notes of its own
  try {
    fitted.outlier = notes.at("outlier").get<std::string>();
  } catch (const Json::exception&) {
    throw Error(ErrorCode::bad_data, fmt::format("model file '{}': its notes are not those of this command", file));
  }
  return fitted;
}

void save_fitted(const Context& ctx, const std::string& file, const Fitted& fitted) {
  NeighborModel model = *fitted.model;
  Json notes = {{"outlier", fitted.outlier}};
  fitted.add_to(notes);
  model.notes = notes.dump(-1, ' ', false, Json::error_handler_t::replace);
  model.preparation = fitted.preparation;
  model.save(ctx, file);
}

AskedTable read_asked(const Context& ctx, const SupervisedOptions& options, const Fitted& fitted, bool of_labels) {
  const std::string& file = options.test();
  ReadOptions given = read_options(options.input);
  if (options.model.empty()) given.drop.clear();  // of TRAIN, and known by their names
  given.id = options.id;
  AskedReading reading =
      asked_reading(ctx, file, std::move(given), fitted, fitted.preparation, fitted.model->index.cols(), of_labels);
  return {fitted.preparation.apply(ctx, read_rows(ctx, file, reading.options), file), std::move(reading.labels)};
}

std::vector<std::string> all_columns_but(const Context& ctx, const std::string& file, const ReadOptions& how,
                                         const std::string& column) {
  const FileInfo& info = look(ctx, file, how);
  if (!io::has_named_columns(info.format)) {
    throw Error(ErrorCode::bad_data,
                fmt::format("{} has no columns with names or positions, which '{}' would be", file, column));
  }
  std::vector<std::string> references = references_of(info);
  const auto at = std::find(info.columns.begin(), info.columns.end(), column);
  std::size_t position = references.size();
  if (at != info.columns.end()) {
    position = static_cast<std::size_t>(at - info.columns.begin());
  } else if (is_position(column) && column.size() < 10) {
    position = static_cast<std::size_t>(std::stoll(column));
  }
  if (position >= references.size())
    throw Error(ErrorCode::bad_data, fmt::format("{} has no column '{}'", file, column));
  references.erase(references.begin() + static_cast<std::ptrdiff_t>(position));
  return references;
}

KnnOptions knn_of(const SupervisedOptions& options, const Fitted& fitted, const std::vector<std::uint64_t>& filter) {
  KnnOptions search = knn_options(options.search, fitted.model->k, filter);
  search.metric = fitted.model->metric;
  search.p = fitted.model->p;
  return search;
}

RadiusOptions radius_of(const SupervisedOptions& options, const Fitted& fitted,
                        const std::vector<std::uint64_t>& filter) {
  RadiusOptions search = radius_options(options.search, fitted.model->radius, filter);
  search.metric = fitted.model->metric;
  search.p = fitted.model->p;
  return search;
}

void require_neighbors(const Fitted& fitted, std::int64_t row) {
  if (!fitted.outlier.empty()) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("queries: row {} has no neighbor within {}; --outlier VALUE sets the prediction of such rows",
                          row, fitted.model->radius));
}

std::string weighting_text(const Fitted& fitted) {
  return fitted.model->weights == Weighting::distance ? "distance" : "uniform";
}

std::string neighborhood_text(const Fitted& fitted) {
  const NeighborModel& model = *fitted.model;
  return model.k > 0 ? fmt::format("k = {}", model.k) : fmt::format("within {}", model.radius);
}

CrossValidateOptions cross_validation_of(const SupervisedOptions& options) {
  const KRange range = parse_k(options.k);
  CrossValidateOptions asked;
  asked.k = range.first;
  asked.k_to = range.last;
  asked.folds = options.folds;
  asked.seed = options.seed;
  asked.weights = options.weights == "distance" ? Weighting::distance : Weighting::uniform;
  const KnnOptions search = knn_options(options.search, range.last, {});
  asked.metric = search.metric;
  asked.p = search.p;
  asked.method = search.method;
  asked.screen = search.screen;
  return asked;
}

void explain_supervised(const Context& ctx, const SupervisedOptions& options, const PlannedInputs& inputs,
                        const Fitted& fitted, const RowBytes& bytes) {
  const TableView& rows = fitted.model->index.table();
  const Table asked = options.test().empty() ? Table{} : read_asked(ctx, options, fitted, true).table;
  Plan plan;
  if (options.model.empty()) {
    plan = search_plan(ctx, options, rows, asked.view);
  } else {
    const auto filter = read_filter(ctx, options.search.filter, rows.rows());
    plan = fitted.model->k > 0 ? plan_knn(ctx, rows, &asked.view, knn_of(options, fitted, filter))
                               : plan_radius_batches(ctx, rows, &asked.view, radius_of(options, fitted, filter));
  }
  plan.memory = inputs.total(plan.memory + bytes_beside(bytes, rows.rows(), asked.view.rows()));
  print_plan(options.common, plan);
}

Json answer_json(const std::string& command, std::int64_t rows, const SupervisedOptions& options,
                 const Fitted& fitted) {
  const NeighborModel& by = *fitted.model;
  Json json = {{"command", command}, {"rows", rows}, {"train_rows", by.index.rows()}};
  json["k"] = by.k > 0 ? Json(by.k) : Json(nullptr);
  if (by.k == 0) json["radius"] = by.radius;
  json["metric"] = name_of(by.metric);
  json["weights"] = weighting_text(fitted);
  if (fitted.chosen) {
    const bool classes = !by.outputs.empty();
    json["cross_validation"] =
        to_json(*fitted.chosen, cross_validation_of(options), classes ? "accuracy" : "mean squared error");
  }
  return json;
}

void finish_json(Json& json, const SupervisedOptions& options, const Plan& plan, const SearchStats& stats,
                 double seconds) {
  const auto place = [](const std::string& path) { return path.empty() ? Json(nullptr) : Json(path); };
  json["output"] = place(options.output);
  json["model"] = place(options.save_model);
  json["report"] = place(options.report);
  json["seconds"] = seconds;
  json["plan"] = to_json(plan);
  json["stats"] = to_json(stats);
}

std::string validation_table(const CrossValidation& found, const CrossValidateOptions& asked,
                             const std::string& score) {
  std::vector<std::vector<std::string>> lines = {{"k", score, "lowest fold", "highest fold", ""}};
  for (std::size_t i = 0; i < found.scores.size(); ++i) {
    const auto first = found.fold_scores.begin() + static_cast<std::ptrdiff_t>(i) * asked.folds;
    const auto [least, most] = std::minmax_element(first, first + asked.folds);
    const std::int64_t k = asked.k + static_cast<std::int64_t>(i);
    lines.push_back({fmt::format("{}", k), fmt::format("{:.6g}", found.scores[i]), fmt::format("{:.6g}", *least),
                     fmt::format("{:.6g}", *most), k == found.k ? "<" : ""});
  }
  return format_table(lines);
}

Json to_json(const CrossValidation& found, const CrossValidateOptions& asked, const std::string& score) {
  return {{"folds", asked.folds},
          {"seed", asked.seed},
          {"score", score},
          {"k", found.k},
          {"best", found.score},
          {"from", asked.k},
          {"to", asked.k_to},
          {"scores", found.scores},
          {"fold_scores", found.fold_scores},
          {"neighbors_searched", found.searched},
          {"topped_up", found.topped_up},
          {"prepare_seconds", found.stats.prepare_seconds},
          {"search_seconds", found.stats.search_seconds},
          {"score_seconds", found.score_seconds}};
}

std::string validation_sentence(const CrossValidation& found, const CrossValidateOptions& asked) {
  return fmt::format("k = {} chosen from {}..{} by {} folds in {} of search and {} of votes", found.k, asked.k,
                     asked.k_to, asked.folds, format_duration(found.stats.search_seconds),
                     format_duration(found.score_seconds));
}

}  // namespace vicinal::cli
