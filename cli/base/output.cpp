// See output.hpp.
#include "base/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/interrupt.hpp"
#include "base/standard_streams.hpp"
#include "io/pipe.hpp"
#include "io/shown.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

/// Line ends stay.
std::string printable_lines(std::string_view text) {
  std::string lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (begin > 0) lines += '\n';
    lines += io::printable(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Whether a result goes to stdout, and all words to stderr.
bool& stdout_is_taken() {
  static bool taken = false;
  return taken;
}

void print_words(const std::string& text) {
  if (stdout_is_taken()) {
    write_stderr(text);
  } else {
    write_stdout(text);
  }
}

/// The suffix that says what is written: without that of a packer where CSV may be packed.
std::string ending_of(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  const bool packed = ending == ".gz" || ending == ".bz2" || ending == ".xz";
  return packed && path.stem().extension() == ".csv" ? ".csv" : ending;
}

}  // namespace

bool is_csv_output(const std::filesystem::path& path) {
  return path == "-" || ending_of(path) == ".csv";
}

void write_stdout(std::string_view text) {
  const bool waits = io::is_pipe(STDOUT_FILENO);
  while (!text.empty()) {
    if (waits) io::wait_for_room(STDOUT_FILENO, interrupt_token());
    const std::size_t most = waits ? std::min(text.size(), io::kPipeBytes) : text.size();
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), most);
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EPIPE) throw PipeClosed{};
      throw Error(ErrorCode::io, fmt::format("standard output cannot be written: {}", std::strerror(errno)));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void print_text(std::string_view text) {
  print_words(printable_lines(text));
}

void print_json(const Json& json) {
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  std::string escaped;  // as JSON asks of the control characters below 0x20 only, and terminals of those from 0x7f, too
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const auto next = static_cast<unsigned char>(at + 1 < text.size() ? text[at + 1] : 0);
    if (byte == 0x7f) {
      escaped += "\\u007f";
    } else if (byte == 0xc2 && next < 0xa0) {
      escaped += fmt::format("\\u{:04x}", next);
      ++at;
    } else {
      escaped += text[at];
    }
  }
  print_words(escaped + "\n");
}

void tell(const Runtime& runtime, const CommonOptions& options, std::string_view sentence) {
  if (errors_are_silent()) return;
  runtime.progress->clear();
  if (!options.quiet) write_stderr(fmt::format("{}\n", printable_lines(sentence)));
}

namespace {
struct Notes {
  bool silent = false;
  std::vector<std::string> texts;
};
Notes& notes() {
  static Notes all;
  return all;
}
}  // namespace

void add_note(const std::string& note) {
  std::vector<std::string>& texts = notes().texts;
  if (std::find(texts.begin(), texts.end(), note) == texts.end()) texts.push_back(note);
}

void silence_notes() {
  notes().silent = true;
}

bool notes_are_silent() {
  return notes().silent;
}

namespace {
bool& silent_errors() {
  static bool silent = false;
  return silent;
}
}  // namespace

void silence_errors(bool are_silent) {
  silent_errors() = are_silent;
}

bool errors_are_silent() {
  return silent_errors();
}

void print_notes() {
  if (notes().silent) return;
  for (const std::string& note : notes().texts) write_stderr(fmt::format("note: {}\n", printable_lines(note)));
}

Json to_json(const Plan& plan) {
  return {{"method", name_of(plan.method)},
          {"screens", plan.screens},
          {"device", plan.device},
          {"isa", plan.isa},
          {"threads", plan.threads},
          {"memory_bytes", plan.memory},
          {"device_memory_bytes", plan.device_memory},
          {"expected_seconds", plan.expected_seconds},
          {"reason", plan.reason}};
}

Json to_json(const SearchStats& stats) {
  return {{"distinct_rows", stats.distinct_rows},
          {"survivors", stats.survivors},
          {"escalated", stats.escalated},
          {"uncertified", stats.uncertified},
          {"prepare_seconds", stats.prepare_seconds},
          {"search_seconds", stats.search_seconds},
          {"selection_seconds", stats.selection_seconds}};
}

std::string ran_as(const Plan& plan) {
  if (plan.device != "cpu") return fmt::format("{} on {}", name_of(plan.method), plan.device);
  return fmt::format("{}, {} on {} thread{}", name_of(plan.method), plan.isa, plan.threads,
                     plan.threads == 1 ? "" : "s");
}

void print_plan(const CommonOptions& options, const Plan& plan) {
  if (options.json) {
    print_json({{"plan", to_json(plan)}});
    return;
  }
  const std::string seconds =
      plan.expected_seconds > 0 ? "about " + format_duration(plan.expected_seconds) : std::string("unknown");
  std::string memory = format_bytes(static_cast<double>(plan.memory));
  if (plan.device_memory > 0) {
    memory += ", " + format_bytes(static_cast<double>(plan.device_memory)) + " on the device";
  }
  print_text(fmt::format(
      "method     {}{}\ndevice     {}\nisa        {}\nthreads    {}\nmemory     {}\nexpected   {}\nwhy        {}\n",
      name_of(plan.method), plan.screens.empty() ? std::string() : " (" + plan.screens + ")", plan.device, plan.isa,
      plan.threads, memory, seconds, plan.reason));
}

void check_output(const std::string& option, const std::filesystem::path& path,
                  std::initializer_list<std::string_view> endings) {
  if (path.empty()) return;
  const std::string ending = path == "-" ? ".csv" : ending_of(path);
  if (endings.size() != 0 && std::find(endings.begin(), endings.end(), ending) == endings.end()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: '{}' must end in {}", option, path.string(),
                                                         fmt::join(endings.begin(), endings.end(), " or ")));
  }
  static std::map<std::filesystem::path, std::string> named;  // the option that names each output
  std::error_code ignored;
  const auto [earlier, is_new] = named.emplace(
      path == "-" ? path : std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored), option);
  if (!is_new && earlier->second != option) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: '{}' is the output of {}, too; each needs one of its own",
                                                         option, path.string(), earlier->second));
  }
  if (path == "-") {
    stdout_is_taken() = true;
    return;
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw Error(ErrorCode::io, fmt::format("{}: '{}' cannot be written: there is no folder '{}'", option, path.string(),
                                           folder.string()));
  }
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(ErrorCode::io, fmt::format("{}: '{}' is a folder", option, path.string()));
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    throw Error(ErrorCode::io, fmt::format("{}: the folder '{}' cannot be written: {}", option, folder.string(),
                                           std::strerror(errno)));
  }
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> shown = rows;
  std::vector<std::size_t> widths;
  for (auto& row : shown) {
    if (widths.size() < row.size()) widths.resize(row.size(), 0);
    for (std::size_t j = 0; j < row.size(); ++j) {
      row[j] = io::printable(row[j]);
      widths[j] = std::max(widths[j], row[j].size());
    }
  }
  std::string text;
  for (const auto& row : shown) {
    std::string line;
    for (std::size_t j = 0; j < row.size(); ++j) {
      line += j == 0 ? fmt::format("{:<{}}", row[j], widths[j]) : fmt::format("  {:>{}}", row[j], widths[j]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string format_bytes(double bytes) {
  const char* const units[] = {"bytes", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 999.5 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 || bytes >= 99.95 ? fmt::format("{:.0f} {}", bytes, units[unit])
                                     : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string format_count(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::ptrdiff_t first = value < 0 ? 1 : 0;
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), " ");
  }
  return digits;
}

std::string format_number(double value) {
  return fmt::format("{}", value);
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace vicinal::cli
