// `vicinal convert`: a table from any file that vicinal reads into any that it writes, every number the same or an
// error.
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/common_options.hpp"
#include "base/input.hpp"
#include "base/missing.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"
#include "base/planned_inputs.hpp"
#include "base/row_names.hpp"
#include "base/table_writing.hpp"
#include "commands.hpp"
#include "io/format.hpp"
#include "io/id_array.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

struct ConvertCommand {
  CommonOptions common;
  InputOptions input;
  MissingArguments missing;
  std::string from;
  std::string to;
  std::string label;
  std::string id;
  std::string to_format = "auto";
  std::string to_dtype = "auto";
  std::string to_delimiter;
  bool lossy = false;
  bool drop_labels = false;

  void run() const;
  [[nodiscard]] WriteOptions write_options() const;
};

WriteOptions ConvertCommand::write_options() const {
  WriteOptions options;
  if (to_format != "auto") options.format = file_format_from(to_format);
  if (to_dtype != "auto") {
    for (const DType dtype : {DType::uint8, DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
      if (name_of(dtype) == to_dtype) options.dtype = dtype;
    }
  }
  if (!options.format && to == "-") options.format = FileFormat::csv;
  if (!options.format && !format_of_suffix(to)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}': its suffix is not that of a format; name the format by --to-format", to));
  }
  InputOptions delimiter;
  delimiter.delimiter = to_delimiter;
  if (!to_delimiter.empty()) options.delimiter = read_options(delimiter).delimiter;
  options.lossy = lossy;
  options.drop_labels = drop_labels;
  return options;
}

void ConvertCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common, missing.computes());
  check_output("OUT", to);
  const WriteOptions writing = write_options();
  ReadOptions reading = read_options(input);
  reading.label = label;
  reading.id = id;
  reading.missing = missing.any();
  PlannedInputs inputs(runtime, common);
  const TableView shape = inputs.add_table(from, reading);
  inputs.add(missing.fill_bytes(runtime.ctx, shape));
  const auto writes = [&](const Context& rest) { return table_write_bytes(rest, shape, to, writing); };
  const Context rest = inputs.fit("convert", writes);
  if (common.explain) {
    const FileInfo info = describe_file(runtime.ctx, from, reading);
    Plan plan;
    plan.method = Method::direct;
    plan.isa = name_of(runtime.ctx.isa());
    plan.threads = runtime.ctx.threads();
    plan.memory = inputs.total(shape.rows() > 0 ? writes(rest) : 0);
    plan.reason = fmt::format("{} is read as {}, then written block by block", from, name_of(info.format));
    return print_plan(common, plan);
  }
  Table table = naming_missing([&] { return load_table(runtime, common, from, reading); });
  const std::int64_t rows_read = table.view.rows();
  static_cast<void>(missing.drop_rows(runtime.ctx, table, from));
  if (missing.fills()) {
    const Imputer imputer = Imputer::fit(runtime.ctx, table, missing.options());
    table = imputer.apply(runtime.ctx, std::move(table), from);
  }
  const FileFormat format = writing.format ? *writing.format : *format_of_suffix(to);
  // What writing would say of the output is said of the file that the ids come from.
  if (table.ids && format == FileFormat::npz) io::IdArray::check(rest, from, *table.ids);
  OutputFiles together;
  write_table(rest, to, table, writing);
  together.commit();
  runtime.progress->clear();
  const bool names_stay = table.columns.empty() || io::has_named_columns(format);
  if (common.json) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return print_result({{"command", "convert"},
                         {"input", from},
                         {"input_format", name_of(table.format)},
                         {"output", to},
                         {"output_format", name_of(format)},
                         {"rows", table.view.rows()},
                         {"dropped_rows", rows_read - table.view.rows()},
                         {"cols", table.view.cols()},
                         {"dtype", name_of(table.view.dtype())},
                         {"labels", table.labels.has_value()},
                         {"column_names_kept", names_stay},
                         {"seconds", seconds}});
  }
  tell(runtime, common,
       fmt::format("{} rows of {} columns converted to {}{}", format_count(table.view.rows()), table.view.cols(),
                   name_of(format), names_stay ? "" : ", which has no place for the names of columns"));
}

}  // namespace

Command add_convert(const Parser& root) {
  auto command = std::make_shared<ConvertCommand>();
  const Parser app = root.add_subcommand("convert", "Convert a table to another file format without changing a number");
  app.add_option("IN", command->from, "Any file that vicinal reads").type_name("FILE").required();
  app.add_option("OUT", command->to,
                 "Output file: .npy .npz .csv .tsv .idx .fvecs .bvecs .ivecs .libsvm .h5 .kmeans-text .kmeans-binary "
                 ".jsonl, optionally followed by .gz, .bz2 or .xz")
      .type_name("FILE")
      .required();
  const std::string group = "Writing";
  app.add_choice("--to-format", command->to_format,
                 {"auto", "npy", "npz", "csv", "idx", "fvecs", "bvecs", "ivecs", "libsvm", "hdf5", "kmeans-text",
                  "kmeans-binary", "jsonl"},
                 "Output format; auto: by the suffix of OUT")
      .group(group);
  app.add_choice("--to-dtype", command->to_dtype, {"auto", "uint8", "float16", "bfloat16", "float32", "float64"},
                 "Element type to write [the table's, or a wider one]")
      .group(group);
  app.add_option("--to-delimiter", command->to_delimiter, "Character between the columns of the CSV output, or tab")
      .type_name("CHAR")
      .group(group);
  app.add_flag("--lossy", command->lossy, "Round numbers that OUT cannot hold, instead of refusing them").group(group);
  app.add_flag("--drop-labels", command->drop_labels, "Drop labels that OUT cannot hold, instead of refusing")
      .group(group);
  app.add_option("--label", command->label, "CSV column with labels, by name or position").type_name("COLUMN");
  add_missing_options(app, command->missing);
  add_input_options(app, command->input);
  add_id_option(app, command->id);
  add_common_options(app, command->common);
  app.add_examples({"vicinal convert train.csv train.npy --drop class",
                    "vicinal convert train.npy train.fvecs.gz --lossy",
                    "vicinal convert train.csv train.csv.gz --label class"});
  return {app, [command] { command->run(); }, &command->common.json};
}

}  // namespace vicinal::cli
