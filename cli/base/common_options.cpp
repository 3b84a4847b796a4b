// See common_options.hpp. Clause 9 of the contract: what is asked for and not there is an error, never a fallback.
#include "base/common_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "vicinal/device.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(Metric::hamming); ++i) names.emplace_back(name_of(static_cast<Metric>(i)));
  return names;
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(Method::block_heap); ++i) names.emplace_back(name_of(static_cast<Method>(i)));
  return names;
}

std::vector<std::string> screen_names() {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(ScreenType::int8); ++i) names.emplace_back(name_of(static_cast<ScreenType>(i)));
  return names;
}

Isa isa_from(const std::string& name) {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (name == name_of(isa)) return isa;
  }
  return Isa::automatic;
}

/// The numbers in "cuda", "cuda:I" and "cuda:I,J"; none for auto and the CPU.
std::vector<int> device_numbers(const std::string& device) {
  if (device == "auto" || device == "cpu") return {};
  std::vector<int> numbers = cuda_devices_from(device);
  if (!numbers.empty()) return numbers;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--device: '{}' is not one of auto, cpu, cuda, cuda:I, cuda:I,J", device));
}

}  // namespace

void add_common_options(const Parser& command, CommonOptions& options) {
  const std::string group = "Running";
  command.add_option("--threads", options.threads, "Number of threads; 0: all cores")
      .type_name("N")
      .capture_default_str()
      .group(group);
  command.add_option("--memory-limit", options.memory_limit, "Maximum memory, such as 4G or 512M [80 % of free memory]")
      .type_name("SIZE")
      .group(group);
  command
      .add_option("--device", options.device,
                  "Where to compute; cuda:0,1 divides the work among devices; auto: a CUDA device if there is one, "
                  "unless VICINAL_DEVICE is set")
      .type_name("{auto,cpu,cuda[:I[,J...]]}")
      .capture_default_str()
      .group(group);
  command
      .add_option("--device-memory-limit", options.device_memory_limit,
                  "Maximum memory of each device; larger tables are streamed [80 % of free memory]")
      .type_name("SIZE")
      .group(group);
  command
      .add_choice("--isa", options.isa, {"auto", "baseline", "avx2", "avx512"},
                  "Instruction set; all give the same bits, except in embeddings")
      .group(group);
  command.add_flag("--explain", options.explain, "Print the plan (method, memory, expected time) and exit")
      .group(group);
  const std::string output = "Reporting";
  command.add_flag("--json", options.json, "Print one JSON object on stdout, also for errors").group(output);
  command
      .add_choice("--progress", options.progress, {"auto", "always", "never"},
                  "Progress on stderr; auto: only on a terminal")
      .group(output);
  command.add_flag("--quiet,-q", options.quiet, "Print only errors on stderr").group(output);
}

void add_rank_options(const Parser& command, CommonOptions& options) {
  command
      .add_option("--stall-limit", options.stall_limit,
                  "With mpirun, the longest time that ranks wait for one that does not answer; then the job ends")
      .type_name("SECONDS")
      .between(1, 1'000'000'000)
      .capture_default_str()
      .group("Running");
}

void add_metric_options(const Parser& command, SearchOptions& options) {
  const std::string group = "Search";
  command.add_choice("--metric", options.metric, metric_names(), "Distance metric").group(group);
  command.add_option("--p", options.p, "Exponent of the Minkowski metric, at least 1")
      .type_name("P")
      .capture_default_str()
      .group(group);
  command.add_choice("--method", options.method, method_names(), "Search method; every method gives the same bits")
      .group(group);
}

void add_search_options(const Parser& command, SearchOptions& options) {
  add_metric_options(command, options);
  const std::string group = "Search";
  command.add_choice("--screen", options.screen, screen_names(), "Number format of the screen in --method fused")
      .group(group);
  command
      .add_option("--filter", options.filter,
                  "Array of bools, one per table row: true if the row may be a neighbor (.npy)")
      .type_name("FILE")
      .group(group);
}

void add_input_options(const Parser& command, InputOptions& options) {
  const std::string group = "Reading tables";
  command
      .add_choice("--format", options.format,
                  {"auto", "npy", "npz", "csv", "idx", "fvecs", "bvecs", "ivecs", "libsvm", "hdf5", "kmeans-text",
                   "kmeans-binary", "jsonl"},
                  "File format, if the content is ambiguous")
      .group(group);
  command
      .add_choice("--dtype", options.dtype, {"as-stored", "bfloat16"},
                  "bfloat16: read untyped two-byte elements (<V2) of .npy and .npz as bfloat16")
      .group(group);
  command.add_option("--drop", options.drop, "CSV or JSON column to ignore, by name or position; may be repeated")
      .type_name("COLUMN")
      .repeatable()
      .group(group);
  command.add_flag("--keep-index", options.keep_index, "Keep an unnamed CSV column that counts the rows").group(group);
  command
      .add_option("--member", options.member,
                  "Array to read from an .npz or HDF5 file that holds several, as FILE:NAME does")
      .type_name("NAME")
      .group(group);
  const Option header =
      command.add_flag("--header", options.header, "The first line of a CSV file names the columns [detected]")
          .group(group);
  command.add_flag("--no-header", options.no_header, "The first line of a CSV file is data")
      .excludes(header)
      .group(group);
  command.add_option("--delimiter", options.delimiter, "Character between CSV columns, or tab [detected]")
      .type_name("CHAR")
      .group(group);
  command.add_option("--decimal", options.decimal, "Decimal mark in CSV numbers: . or , [detected between semicolons]")
      .type_name("CHAR")
      .group(group);
  command.add_option("--comment", options.comment, "Skip CSV lines that begin with this character [#, at the top only]")
      .type_name("CHAR")
      .group(group);
  command
      .add_option("--sparse-columns", options.sparse_columns, "Number of columns of a libsvm file [its largest index]")
      .type_name("D")
      .group(group);
}

std::uint64_t parse_size(std::string_view text, std::string_view option) {
  const Error bad(ErrorCode::invalid_argument,
                  fmt::format("{}: '{}' is not a size such as 4G, 512M or 1000000", option, text));
  double value = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || !std::isfinite(value) || !(value > 0)) throw bad;
  std::string unit(rest, text.data() + text.size());
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (unit.size() > 1 && unit.back() == 'b') unit.pop_back();
  if (unit.size() > 1 && unit.back() == 'i') unit.pop_back();
  const std::string units = "bkmgt";
  const std::size_t power = unit.empty() ? 0 : unit.size() == 1 ? units.find(unit[0]) : std::string::npos;
  if (power == std::string::npos) throw bad;
  const double bytes = std::floor(std::ldexp(value, 10 * static_cast<int>(power)));
  if (!(bytes >= 1) || !(bytes < 0x1p63)) throw bad;
  return static_cast<std::uint64_t>(bytes);
}

Runtime make_runtime(const CommonOptions& options, Computes computes) {
  if (options.quiet) silence_notes();
  const std::vector<int> numbers = device_numbers(options.device);
  auto line = std::make_shared<ProgressLine>(options.quiet ? "never" : options.progress);
  CpuOptions cpu;
  cpu.threads = options.threads;
  if (!options.memory_limit.empty()) cpu.memory_limit = parse_size(options.memory_limit, "--memory-limit");
  cpu.cancel = interrupt_token();
  cpu.isa = isa_from(options.isa);
  cpu.map_files = true;
  if (line->active()) {
    cpu.progress = [line](std::string_view stage, double fraction) { line->show(stage, fraction); };
  }
  CudaOptions cuda;
  if (!options.device_memory_limit.empty()) {
    cuda.device_memory_limit = parse_size(options.device_memory_limit, "--device-memory-limit");
  }
  const bool is_open = options.device == "auto";
  if (is_open && computes == Computes::on_host) return {line, Context::cpu(cpu)};
  if (options.device == "cpu") return {line, Context::cpu(cpu)};
  if (is_open && options.device_memory_limit.empty()) return {line, Context::automatic(cpu)};
  if (!is_open) cuda.devices = numbers;
  cuda.memory_limit = cpu.memory_limit;
  cuda.threads = cpu.threads;
  cuda.progress = cpu.progress;
  cuda.cancel = cpu.cancel;
  cuda.isa = cpu.isa;
  cuda.map_files = cpu.map_files;
  return {line, Context::cuda(cuda)};
}

std::vector<Context> cpu_and_device(const CommonOptions& options, const Runtime& runtime) {
  CommonOptions on_host = options;
  on_host.device = "cpu";
  std::vector<Context> contexts = {make_runtime(on_host).ctx};
  if (runtime.ctx.device() != contexts[0].device()) contexts.push_back(runtime.ctx);
  return contexts;
}

}  // namespace vicinal::cli
