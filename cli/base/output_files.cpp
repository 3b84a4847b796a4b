// See output_files.hpp.
#include "base/output_files.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "base/standard_streams.hpp"
#include "io/shown.hpp"

namespace vicinal::cli {
namespace {

struct WrittenFiles {
  std::vector<std::string> names;
  bool said = false;
};
WrittenFiles& written_files() {
  static WrittenFiles all;
  return all;
}

}  // namespace

OutputFiles::OutputFiles() : group_(interrupt_token()) {}

void OutputFiles::commit() {
  for (std::string& name : group_.commit()) written_files().names.push_back(std::move(name));
}

void print_result(Json json) {
  written_files().said = true;
  json["files"] = written_files().names;
  print_json(json);
}

void print_written_files() {
  if (written_files().said || written_files().names.empty() || notes_are_silent()) return;
  std::vector<std::string> shown;
  for (const std::string& name : written_files().names) shown.push_back(io::printable(name));
  write_stderr(fmt::format("written: {}\n", fmt::join(shown, ", ")));
}

}  // namespace vicinal::cli
