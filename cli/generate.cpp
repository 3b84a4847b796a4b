// `vicinal generate`: tables with known parameters, the same bits for the same seed everywhere (contract clause 8).
#include "vicinal/generate.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/common_options.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"
#include "commands.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

struct GenerateCommand {
  CommonOptions common;
  GenerateOptions options;
  std::string shape = "blobs";
  std::string output;
  std::string parameters;
  std::string labels;
  Option cols_option{nullptr};
  Option centers_option{nullptr};

  void run() const;
};

std::string csv_of(const Context& ctx, const Generated& made) {
  std::string text;
  for (std::int64_t j = 0; j < made.cols; ++j) text += fmt::format("{}x{}", j == 0 ? "" : ",", j);
  text += '\n';
  for (std::int64_t i = 0; i < made.rows; ++i) {
    if (i % 4096 == 0) ctx.check_cancelled();
    for (std::int64_t j = 0; j < made.cols; ++j) {
      if (j > 0) text += ',';
      text += format_number(made.points[static_cast<std::size_t>(i * made.cols + j)]);
    }
    text += '\n';
  }
  return text;
}

void write_points(const Context& ctx, const std::string& path, const Generated& made) {
  const ArrayView points = {made.points.data(), "<f8", {made.rows, made.cols}};
  if (path.ends_with(".npy")) return write_npy(path, points);
  if (is_csv_output(path)) return write_text(path, csv_of(ctx, made));
  std::vector<NamedArray> arrays = {{"points", points}};
  if (!made.parameters.empty()) arrays.push_back({"parameters", {made.parameters.data(), "<f8", {made.rows, 2}}});
  if (!made.labels.empty()) arrays.push_back({"labels", {made.labels.data(), "<i8", {made.rows}}});
  write_npz(path, arrays);
}

void write_parameters(const std::string& path, const Generated& made) {
  if (path.ends_with(".npy")) return write_npy(path, {made.parameters.data(), "<f8", {made.rows, 2}});
  std::string text = "t,height\n";
  for (std::size_t i = 0; i + 1 < made.parameters.size(); i += 2) {
    text += format_number(made.parameters[i]) + "," + format_number(made.parameters[i + 1]) + "\n";
  }
  write_text(path, text);
}

void write_labels(const std::string& path, const Generated& made) {
  if (path.ends_with(".npy")) return write_npy(path, {made.labels.data(), "<i8", {made.rows}});
  std::string text = is_csv_output(path) ? "label\n" : "";
  for (const std::int64_t label : made.labels) text += fmt::format("{}\n", label);
  write_text(path, text);
}

/// Of a shape other than blobs.
std::int64_t cols_of(Shape shape) {
  switch (shape) {
    case Shape::moons:
      return 2;
    case Shape::kdd:
      return 41;
    case Shape::poker:
    case Shape::covertype:
      return 10;
    default:
      return 3;
  }
}

void GenerateCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common, Computes::on_host);
  check_output("-o", output, {".npy", ".npz", ".csv"});
  check_output("--parameters", parameters, {".npy", ".csv"});
  check_output("--labels", labels, {".npy", ".csv", ".txt"});
  GenerateOptions making = options;
  std::string name = shape;
  std::replace(name.begin(), name.end(), '-', '_');
  making.shape = shape_from(name);
  const bool is_blobs = making.shape == Shape::blobs;
  for (const Option& option : {cols_option, centers_option}) {
    if (!is_blobs && option.given()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: only blobs has it, not {}", option.name(), shape));
    }
  }
  if (!is_blobs) making.cols = cols_of(making.shape);
  const bool is_surface = making.shape == Shape::swiss_roll || making.shape == Shape::s_curve;
  if (!labels.empty() && is_surface) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--labels: {} has no labels, only parameters", shape));
  }
  if (!parameters.empty() && !is_surface && making.shape != Shape::moons) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--parameters: {} has no parameters, only labels", shape));
  }
  if (common.explain) {
    Plan plan;
    plan.isa = name_of(runtime.ctx.isa());
    plan.threads = runtime.ctx.threads();
    plan.memory = static_cast<std::uint64_t>(std::max<double>(
        0, static_cast<double>(making.rows) * (static_cast<double>(making.cols) + 2) * sizeof(double)));
    plan.method = Method::direct;
    plan.reason = fmt::format("each number of {} is computed from seed {} and its position", shape, making.seed);
    print_plan(common, plan);
    return;
  }
  const Generated made = generate(runtime.ctx, making);
  runtime.ctx.check_cancelled();
  OutputFiles together;
  if (!output.empty()) write_points(runtime.ctx, output, made);
  if (!parameters.empty()) write_parameters(parameters, made);
  if (!labels.empty()) write_labels(labels, made);
  together.commit();
  runtime.progress->clear();
  if (common.json) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    Json json = {{"command", "generate"}, {"shape", shape},      {"rows", made.rows},
                 {"cols", made.cols},     {"seed", making.seed}, {"noise", making.noise}};
    json["output"] = output.empty() ? Json(nullptr) : Json(output);
    json["parameters"] = parameters.empty() ? Json(nullptr) : Json(parameters);
    json["labels"] = labels.empty() ? Json(nullptr) : Json(labels);
    json["seconds"] = seconds;
    return print_result(std::move(json));
  }
  if (output.empty()) {
    write_stdout(csv_of(runtime.ctx, made));
    return;
  }
  tell(runtime, common, fmt::format("{} rows of {} columns generated", format_count(made.rows), made.cols));
}

}  // namespace

Command add_generate(const Parser& root) {
  auto command = std::make_shared<GenerateCommand>();
  const Parser app = root.add_subcommand("generate", "Generate a synthetic table with known structure");
  app.add_choice(
         "SHAPE", command->shape, {"swiss-roll", "s-curve", "blobs", "moons", "kdd", "poker", "covertype"},
         "Shape to generate; kdd, poker and covertype are synthetic rows like those of KDD Cup 99, Poker Hand and "
         "Covertype")
      .required();
  GenerateOptions& options = command->options;
  const std::string group = "Shape";
  app.add_option("-n,--rows", options.rows, "Rows").type_name("N").capture_default_str().group(group);
  command->cols_option = app.add_option("-d,--cols", options.cols, "Number of columns (blobs)")
                             .type_name("D")
                             .capture_default_str()
                             .group(group);
  command->centers_option = app.add_option("--centers", options.centers, "Number of clusters (blobs)")
                                .type_name("C")
                                .capture_default_str()
                                .group(group);
  app.add_option("--noise", options.noise,
                 "Standard deviation of the noise added to each coordinate; blobs: of a cluster, 0 means 1")
      .type_name("S")
      .capture_default_str()
      .group(group);
  app.add_option("--seed", options.seed, "Random seed").type_name("SEED").capture_default_str().group(group);
  app.add_option("-o,--output", command->output, "Output file for the points: .npy, .npz or .csv [CSV on stdout]")
      .type_name("FILE");
  app.add_option("--parameters", command->parameters, "Output file for the true parameters: .npy or .csv")
      .type_name("FILE");
  app.add_option("--labels", command->labels, "Output file for the true labels: .npy, .csv or .txt").type_name("FILE");
  add_common_options(app, command->common);
  app.add_examples({"vicinal generate swiss-roll -n 2000 --seed 7 -o roll.npy --parameters roll_parameters.npy",
                    "vicinal generate blobs -n 500 -d 8 --centers 4 --labels blob_labels.npy -o blobs.npy",
                    "vicinal generate moons -n 6 --noise 0.1"});
  return {app, [command] { command->run(); }, &command->common.json};
}

}  // namespace vicinal::cli
