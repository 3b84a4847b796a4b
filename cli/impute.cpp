// `vicinal impute`: a table with its missing values filled, and how many of which column were.
#include "vicinal/impute.hpp"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/common_options.hpp"
#include "base/input.hpp"
#include "base/missing.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"
#include "base/planned_inputs.hpp"
#include "base/row_names.hpp"
#include "base/table_writing.hpp"
#include "commands.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

struct ImputeCommand {
  CommonOptions common;
  InputOptions input;
  MissingArguments filling{.missing = "knn"};
  std::string from;
  std::string output;
  std::string label;
  std::string id;
  bool lossy = false;

  [[nodiscard]] ReadOptions reading(const PlannedInputs& inputs) const;
  [[nodiscard]] std::string how() const;
  void tell_all(const Runtime& runtime, const Table& table, const std::vector<std::int64_t>& missing, const Plan& plan,
                double seconds) const;
  void run() const;
};

/// Texts stay what they are.
ReadOptions ImputeCommand::reading(const PlannedInputs& inputs) const {
  ReadOptions reading = read_options(input);
  reading.label = label;
  reading.id = id;
  reading.missing = true;
  reading.find_text = inputs.info(from, reading).format == FileFormat::csv;
  return reading;
}

std::string ImputeCommand::how() const {
  return filling.missing == "knn" ? fmt::format("knn (k = {})", filling.k) : filling.missing;
}

void ImputeCommand::tell_all(const Runtime& runtime, const Table& table, const std::vector<std::int64_t>& missing,
                             const Plan& plan, double seconds) const {
  const std::int64_t filled = std::accumulate(missing.begin(), missing.end(), std::int64_t{0});
  Json columns = Json::array();
  std::vector<std::vector<std::string>> lines = {{"column", "filled", "share"}};
  for (std::size_t j = 0; j < missing.size(); ++j) {
    if (missing[j] == 0) continue;
    const std::string name = j < table.columns.size() ? table.columns[j] : fmt::format("{}", j);
    columns.push_back({{"column", j}, {"name", name}, {"filled", missing[j]}});
    const double share = static_cast<double>(missing[j]) / static_cast<double>(table.view.rows());
    lines.push_back({name, format_count(missing[j]), fmt::format("{:.1f} %", 100 * share)});
  }
  if (common.json) {
    return print_result({{"command", "impute"},
                         {"input", from},
                         {"output", output},
                         {"method", filling.missing},
                         {"k", filling.missing == "knn" ? Json(filling.k) : Json(nullptr)},
                         {"rows", table.view.rows()},
                         {"cols", table.view.cols()},
                         {"filled", filled},
                         {"columns", columns},
                         {"plan", to_json(plan)},
                         {"seconds", seconds}});
  }
  if (filled > 0) print_text(format_table(lines));
  const std::string where = plan.device == "cpu" ? "" : " on " + plan.device;
  tell(runtime, common,
       fmt::format("{} values of {} columns in {} rows filled by {}{} in {}", format_count(filled), columns.size(),
                   format_count(table.view.rows()), how(), where, format_duration(seconds)));
}

void ImputeCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common, filling.computes());
  check_output("-o", output);
  if (output != "-" && !format_of_suffix(output)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("-o: '{}' has no suffix that says what to write, such as .csv or .npy", output));
  }
  WriteOptions writing{.lossy = lossy};
  if (output == "-") writing.format = FileFormat::csv;
  PlannedInputs inputs(runtime, common);
  const ReadOptions reading = this->reading(inputs);
  const TableView shape = inputs.add_table(from, reading);
  inputs.add(filling.fill_bytes(runtime.ctx, shape));
  const auto needs = [&](const Context& ctx) {
    return shape.rows() == 0 ? 0 : table_write_bytes(ctx, shape, output, writing);
  };
  const Context rest = inputs.fit("impute", needs);
  if (common.explain) {
    Plan plan;
    plan.method = Method::direct;
    plan.reason = "how many rows there are is known when they are read";
    if (shape.rows() > 0) plan = plan_impute(runtime.ctx, shape, shape, filling.options());
    plan.memory = inputs.total(needs(rest));
    return print_plan(common, plan);
  }
  Table table = load_table(runtime, common, from, reading);
  require_ids_fit(runtime.ctx, output, from, table);
  const std::vector<std::int64_t> missing = count_missing(runtime.ctx, table.view);
  const Imputer imputer = Imputer::fit(runtime.ctx, table, filling.options());
  const Plan plan = plan_impute(runtime.ctx, table.view, table.view, filling.options());
  table = imputer.apply(runtime.ctx, std::move(table));
  OutputFiles together;
  write_table(rest, output, table, writing);
  together.commit();
  runtime.progress->clear();
  tell_all(runtime, table, missing, plan,
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

Command add_impute(const Parser& root) {
  auto command = std::make_shared<ImputeCommand>();
  const Parser app = root.add_subcommand("impute", "Fill the missing values of a table");
  app.add_option("FILE", command->from, "Table with missing values: NaN; in CSV also empty, NA, null or ?")
      .type_name("FILE")
      .required();
  const std::string group = "Filling";
  app.add_choice(
         "--method", command->filling.missing, {"mean", "median", "knn"},
         "Fill by the mean or median of the column, or by its mean over the nearest rows that have a value there")
      .group(group);
  app.add_option("-k", command->filling.k, "Number of nearest rows whose mean --method knn uses")
      .type_name("K")
      .capture_default_str()
      .group(group);
  app.add_option("-o,--output", command->output,
                 "Output file: .npy .npz .csv .tsv .idx .fvecs .bvecs .ivecs .libsvm .h5, optionally followed by .gz "
                 "or .xz; -: CSV on standard output")
      .type_name("FILE")
      .required();
  app.add_flag("--lossy", command->lossy, "Round numbers that the output cannot hold, instead of refusing them");
  app.add_option("--label", command->label, "CSV column with labels, by name or position; copied unchanged")
      .type_name("COLUMN");
  add_input_options(app, command->input);
  add_id_option(app, command->id);
  add_common_options(app, command->common);
  app.add_examples({"vicinal impute train.csv --label class -o filled.csv",
                    "vicinal impute train.npy --method knn -k 3 -o filled.npy",
                    "vicinal impute train.csv --drop class --method median --json -o filled.npy"});
  return {app, [command] { naming_files(command->from, "", [&] { command->run(); }); }, &command->common.json};
}

}  // namespace vicinal::cli
