// See program.hpp.
#include "base/program.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>

#include "base/interrupt.hpp"
#include "base/one_line.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"
#include "base/standard_streams.hpp"
#include "io/shown.hpp"
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

int fail(const char* name, ErrorCode code, const std::string& what, bool json) {
  if (errors_are_silent()) return exit_code(code);
  const std::string sentence = one_line(what);
  write_stderr(fmt::format("{}: error: {}\n", name, io::printable(sentence)));
  if (json) {
    try {
      print_json({{"error", {{"code", code_name(code)}, {"message", sentence}}}});
    } catch (...) {
      // The error has been told on stderr, and its exit code stands even when stdout is broken.
    }
  }
  return exit_code(code);
}

int run_command(const char* name, const Command& command) {
  const bool json = command.json != nullptr && *command.json;
  if (json) report_lost_files_as_json();
  try {
    command.run();
    print_notes();
    print_written_files();
    return 0;
  } catch (const PipeClosed&) {
    return 0;
  } catch (const Error& error) {
    print_notes();
    return fail(name, error.code(), error.what(), json);
  } catch (const std::bad_alloc&) {
    return fail(name, ErrorCode::over_memory, "the machine has no memory left for this job", json);
  } catch (const std::exception& error) {
    return fail(name, ErrorCode::internal, fmt::format("unexpected: {}", error.what()), json);
  }
}

int run(const Program& program, int argc, char** argv) {
  occupy_closed_streams();
  install_signal_handlers();
  const RootParser parser(program.name, program.description, fmt::format("{} {}", program.name, VICINAL_VERSION));
  parser.add_examples(program.examples);
  std::vector<Command> commands;
  for (const auto& add : program.commands) commands.push_back(add(parser));
  try {
    if (const auto code = parser.parse(argc, argv)) return *code;
  } catch (const Error& error) {
    const bool json = std::find(argv + 1, argv + argc, std::string("--json")) != argv + argc;
    return fail(program.name, error.code(), error.what(), json);
  }
  for (const Command& command : commands) {
    if (command.app.parsed()) return run_command(program.name, command);
  }
  return fail(program.name, ErrorCode::internal, "no subcommand ran", false);
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  try {
    return run(program, argc, argv);
  } catch (const std::exception& error) {
    write_stderr(fmt::format("{}: error: unexpected: {}\n", program.name, error.what()));
    return 1;
  }
}

}  // namespace vicinal::cli
