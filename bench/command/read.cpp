// See commands.hpp. Processor time is that of all threads: it says what wall time does not on a machine with others.
#include <fmt/core.h>
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/input.hpp"
#include "base/machine.hpp"
#include "base/output.hpp"
#include "command/commands.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

struct BenchRead {
  CommonOptions common;
  InputOptions input;
  std::string file;
  std::string commit;
  int repeat = 5;

  void run() const;
};

/// Of this process, all threads, user and system.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void BenchRead::run() const {
  if (repeat < 1) throw Error(ErrorCode::invalid_argument, fmt::format("--repeat is {}, not above 0", repeat));
  const Runtime runtime = make_runtime(common, Computes::on_host);
  const FileInfo info = describe_file(runtime.ctx, file, read_options(input));
  Json json = head_of_results("bench read", commit);
  json["file"] = file;
  json["format"] = name_of(info.format);
  json["bytes"] = info.bytes;
  json["threads"] = runtime.ctx.threads();
  json["runs"] = Json::array();
  std::string text;
  for (int i = 0; i < repeat; ++i) {
    const double cpu = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    const Table table = read_table(runtime.ctx, file, read_options(input));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double used = processor_seconds() - cpu;
    json["rows"] = table.view.rows();
    json["cols"] = table.view.cols();
    json["runs"].push_back({{"seconds", seconds}, {"cpu", used}});
    text += fmt::format("{:.3f} s, {:.3f} s of processors, {}/s\n", seconds, used,
                        format_bytes(static_cast<double>(info.bytes) / seconds));
  }
  runtime.progress->clear();
  if (common.json) return print_json(json);
  write_stdout(text);
}

}  // namespace

Command add_bench_read(const Parser& bench) {
  auto command = std::make_shared<BenchRead>();
  const Parser app = bench.add_subcommand("read", "Time the reading of a file");
  app.add_option("FILE", command->file, "Any file that vicinal reads").type_name("FILE").required();
  app.add_option("--repeat", command->repeat, "Timed runs").type_name("N").capture_default_str().group("Timing");
  app.add_option("--commit", command->commit, "Commit to note in the result").type_name("ID").group("Timing");
  add_input_options(app, command->input);
  add_common_options(app, command->common);
  app.add_examples(
      {"vicinal-bench read train.csv --drop class", "vicinal-bench read train.npy --repeat 1 --threads 1 --json"});
  return {app, [command] { command->run(); }, &command->common.json};
}

}  // namespace vicinal::cli
