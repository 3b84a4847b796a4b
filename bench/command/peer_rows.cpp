// `vicinal-bench peers`: rows of a table of other libraries beside vicinal. The rows, their environments of Python and
// their scripts are in bench/peers/suite of the source tree; this replaces itself by the Python program there, whose
// output and exit code are the command's.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "command/commands.hpp"
#include "command/peers.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

struct PeerRowsOptions {
  std::vector<std::string> rows;
  std::vector<std::string> pythons;
  std::string dir;
  std::string libraries;
  std::string machine;
  std::string commit;
  std::string compare;
  std::string output;
  double timeout = 3600;
  int threads = 0;
  bool list = false;
  bool quick = false;
  bool short_set = false;
  bool verify = false;
  bool no_install = false;
  bool json = false;
  bool quiet = false;
};

std::filesystem::path suite_of(const std::string& given) {
  const std::filesystem::path dir = given.empty() ? find_peers_dir() : std::filesystem::path(given);
  if (dir.empty()) {
    throw Error(ErrorCode::io,
                "bench/peers is not above this program: it is not in vicinal's source tree; name the folder by "
                "--peers-dir");
  }
  std::error_code error;
  if (std::filesystem::exists(dir / "suite/__main__.py", error)) return std::filesystem::absolute(dir) / "suite";
  throw Error(ErrorCode::io, fmt::format("--peers-dir: there is no suite/__main__.py in '{}'", dir.string()));
}

std::vector<std::string> words_of(const PeerRowsOptions& options) {
  std::error_code error;
  std::vector<std::string> words = {"python3", "-B", suite_of(options.dir).string(), "--bench",
                                    std::filesystem::read_symlink("/proc/self/exe", error).string()};
  const auto add_value = [&words](const std::string& name, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("{}={}", name, value));
  };
  const auto add_flag = [&words](const std::string& name, bool given) {
    if (given) words.push_back(name);
  };
  for (const std::string& python : options.pythons) add_value("--python", python);
  add_value("--libraries", options.libraries);
  add_value("--machine", options.machine);
  add_value("--commit", options.commit);
  add_value("--compare", options.compare);
  add_value("--output", options.output);
  add_value("--timeout", fmt::format("{}", options.timeout));
  add_value("--threads", fmt::format("{}", options.threads));
  add_flag("--list", options.list);
  add_flag("--quick", options.quick);
  add_flag("--short", options.short_set);
  add_flag("--verify", options.verify);
  add_flag("--no-install", options.no_install);
  add_flag("--json", options.json);
  add_flag("--quiet", options.quiet);
  words.emplace_back("--");
  words.insert(words.end(), options.rows.begin(), options.rows.end());
  return words;
}

/// Returns only by an exception.
void become_suite(const PeerRowsOptions& options) {
  std::vector<std::string> words = words_of(options);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw Error(ErrorCode::io, fmt::format("python3, which runs the rows, cannot be started: {}", std::strerror(errno)));
}

}  // namespace

Command add_bench_peers(const Parser& root) {
  auto options = std::make_shared<PeerRowsOptions>();
  const Parser app = root.add_subcommand("peers", "Compare with other libraries, row by row of a table");
  app.add_option("rows", options->rows, "Rows or groups of rows, as --list names them; all if there is none")
      .type_name("ROW");
  app.add_flag("--list", options->list, "List the rows and the libraries of each, and run none");
  const std::string sizes = "Sizes";
  app.add_flag("--quick", options->quick, "Take sizes of seconds, which try the row").group(sizes);
  app.add_flag("--short", options->short_set, "Run only rows of the short set, in sizes that take ten minutes together")
      .group(sizes);
  const std::string libraries = "Libraries";
  app.add_option(
         "--python", options->pythons,
         "Python that has the libraries of all environments, or with NAME=FILE those of environment NAME; may be "
         "repeated [VICINAL_PEERS_PYTHON, else environments that are made in bench/ of the source tree]")
      .type_name("[NAME=]FILE")
      .repeatable()
      .group(libraries);
  app.add_option("--libraries", options->libraries, "Libraries to compare with, by commas [all of the rows]")
      .type_name("NAMES")
      .group(libraries);
  app.add_flag("--no-install", options->no_install, "Make no environments; their libraries are reported as missing")
      .group(libraries);
  app.add_option("--peers-dir", options->dir, "Folder of the scripts [bench/peers of the source tree]")
      .type_name("DIR")
      .group(libraries);
  app.add_option("--timeout", options->timeout, "Seconds after which the script of a row is ended")
      .type_name("SECONDS")
      .capture_default_str()
      .group(libraries);
  app.add_option("--threads", options->threads, "Threads of vicinal and of each library; 0: all cores")
      .type_name("N")
      .capture_default_str()
      .between(0, 4096);
  const std::string results = "Results";
  app.add_flag("--verify", options->verify,
               "Fail unless each line has a ratio and an exactness figure, and all answers of vicinal are exact")
      .group(results);
  app.add_option("--compare", options->compare,
                 "Compare the ratios with the newest result bench-MACHINE-*.json of this folder and size")
      .type_name("DIR")
      .group(results);
  app.add_option("--machine", options->machine, "Kind of machine, as names of results have it [processor and cores]")
      .type_name("NAME")
      .group(results);
  app.add_option("--commit", options->commit, "Commit to note in the result [that of the source tree]")
      .type_name("ID")
      .group(results);
  app.add_option("-o,--output", options->output, "Where to write the result, after each row (.json)")
      .type_name("FILE")
      .group(results);
  app.add_flag("--json", options->json, "Print the result as JSON");
  app.add_flag("-q,--quiet", options->quiet, "Print no progress");
  app.add_examples({"vicinal-bench peers --list", "vicinal-bench peers --list density lof"});
  return {app, [options] { become_suite(*options); }, &options->json};
}

}  // namespace vicinal::cli
