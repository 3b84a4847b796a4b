// The command `vicinal`: parses, runs one subcommand, turns errors into exit codes:
// 0 ok, 1 internal, 2 usage, 3 bad data or files, 4 over the memory limit, 5 device unavailable, 130 interrupted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "command.hpp"
#include "interrupt.hpp"
#include "output.hpp"
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

/// One sentence on one line, whoever wrote it.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const auto end = text.find_last_not_of(" \r\t");
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text.empty() ? "something failed without saying what" : text;
}

/// Help that shows defaults in brackets and leaves out what the parser says about itself.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_items_expected_max() > 0 && !option->get_type_name().empty()) text = " " + option->get_type_name();
    return text;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string& text = option->get_description();
    return option->get_default_str().empty() ? text : text + " [" + option->get_default_str() + "]";
  }
};

int fail(ErrorCode code, const std::string& what, bool json) {
  const std::string sentence = one_line(what);
  fmt::print(stderr, "vicinal: error: {}\n", sentence);
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

/// The parser's complaint as one sentence that says where help is.
/// `unknown` is the first argument when it is no option: without a known subcommand, it was meant to be one.
std::string usage_sentence(const CLI::App& root, const CLI::ParseError& error, const std::string& unknown) {
  std::string path = "vicinal";
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    path += " " + app->get_name();
  }
  std::string what = one_line(error.what());
  if (app == &root && !unknown.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* child : root.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(child->get_name());
    }
    what = fmt::format("there is no subcommand '{}' but {}", unknown, fmt::join(names, ", "));
  }
  if (what.size() > 1 && what.back() == '.') what.pop_back();
  return fmt::format("{} (see `{} --help`)", what, path);
}

int run(int argc, char** argv) {
  install_signal_handlers();
  CLI::App root("Exact nearest neighbors, and what follows from them", "vicinal");
  root.set_version_flag("--version", "vicinal " VICINAL_VERSION, "Print the version and stop");
  root.set_config("--config", "", "Read options from a TOML file: one [section] a subcommand")->type_name("FILE");
  root.allow_config_extras(CLI::config_extras_mode::error);
  root.require_subcommand(1);
  root.fallthrough();
  root.formatter(std::make_shared<HelpFormatter>());
  root.get_formatter()->column_width(36);
  add_examples(
      root, {"vicinal generate blobs -n 300 --seed 1 -o blobs.npy", "vicinal knn train.npy test.npy -k 5 -o graph.npz",
             "vicinal classify train.csv test.csv --label class -k 5 -o labels.csv"});
  const std::vector<Command> commands = {add_knn(root),    add_radius(root),   add_classify(root),
                                         add_kmeans(root), add_info(root),     add_doctor(root),
                                         add_bench(root),  add_generate(root), add_completion(root)};
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return root.exit(error);
    const bool json = std::find(argv + 1, argv + argc, std::string("--json")) != argv + argc;
    const std::string unknown = argc > 1 && argv[1][0] != '-' ? argv[1] : "";
    return fail(ErrorCode::invalid_argument, usage_sentence(root, error, unknown), json);
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return run_command(command);
  }
  return fail(ErrorCode::internal, "no subcommand ran", false);
}

}  // namespace
}  // namespace vicinal::cli

int main(int argc, char** argv) {
  try {
    return vicinal::cli::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vicinal: error: unexpected: %s\n", error.what());
    return 1;
  }
}
