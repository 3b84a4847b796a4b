// The command `vicinal`: parses, runs one subcommand, turns errors into exit codes:
// 0 ok, 1 internal, 2 usage, 3 bad data or files, 4 over the memory limit, 5 device unavailable, 130 interrupted.
#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.hpp"
#include "interrupt.hpp"
#include "io/shown.hpp"
#include "one_line.hpp"
#include "output.hpp"
#include "standard_streams.hpp"
#include "vicinal/error.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli {
namespace {

std::string_view code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::bad_data:
      return "bad_data";
    case ErrorCode::io:
      return "io";
    case ErrorCode::over_memory:
      return "over_memory";
    case ErrorCode::device_unavailable:
      return "device_unavailable";
    case ErrorCode::cancelled:
      return "cancelled";
    default:
      return "internal";
  }
}

int fail(ErrorCode code, const std::string& what, bool json) {
  const std::string sentence = one_line(what);
  write_stderr(fmt::format("vicinal: error: {}\n", io::printable(sentence)));
  if (json) {
    try {
      print_json({{"error", {{"code", code_name(code)}, {"message", sentence}}}});
    } catch (...) {
      // The error has been told on stderr, and its exit code stands even when stdout is broken.
    }
  }
  return exit_code(code);
}

int run_command(const Command& command) {
  const bool json = command.json != nullptr && *command.json;
  if (json) report_lost_files_as_json();
  try {
    command.run();
    return 0;
  } catch (const PipeClosed&) {
    return 0;
  } catch (const Error& error) {
    return fail(error.code(), error.what(), json);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::over_memory, "the machine has no memory left for this job", json);
  } catch (const std::exception& error) {
    return fail(ErrorCode::internal, fmt::format("unexpected: {}", error.what()), json);
  }
}

int run(int argc, char** argv) {
  occupy_closed_streams();
  install_signal_handlers();
  const RootParser parser("vicinal", "Exact nearest neighbors, and what follows from them", "vicinal " VICINAL_VERSION);
  parser.add_examples({"vicinal generate blobs -n 300 --seed 1 -o blobs.npy",
                       "vicinal knn train.npy test.npy -k 5 -o graph.npz",
                       "vicinal classify train.csv test.csv --label class -k 5 -o labels.csv"});
  const std::vector<Command> commands = {
      add_knn(parser),  add_radius(parser), add_classify(parser), add_regress(parser),   add_kmeans(parser),
      add_lof(parser),  add_lle(parser),    add_match(parser),    add_cocluster(parser), add_convert(parser),
      add_info(parser), add_doctor(parser), add_bench(parser),    add_generate(parser),  add_completion(parser)};
  try {
    if (const auto code = parser.parse(argc, argv)) return *code;
  } catch (const Error& error) {
    return fail(error.code(), error.what(), std::find(argv + 1, argv + argc, std::string("--json")) != argv + argc);
  }
  for (const Command& command : commands) {
    if (command.app.parsed()) return run_command(command);
  }
  return fail(ErrorCode::internal, "no subcommand ran", false);
}

}  // namespace
}  // namespace vicinal::cli

int main(int argc, char** argv) {
  try {
    return vicinal::cli::run(argc, argv);
  } catch (const std::exception& error) {
    vicinal::cli::write_stderr(std::string("vicinal: error: unexpected: ") + error.what() + "\n");
    return 1;
  }
}
