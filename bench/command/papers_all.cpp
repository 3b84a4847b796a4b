// See papers_all.hpp.
#include "command/papers_all.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/machine.hpp"
#include "command/papers_attacks.hpp"
#include "command/papers_cc.hpp"
#include "command/papers_km.hpp"
#include "command/papers_lle.hpp"
#include "command/papers_lle_plots.hpp"
#include "command/papers_page.hpp"
#include "command/papers_search.hpp"
#include "command/papers_tables.hpp"
#include "report/html.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kQuickSurfaceRows = 4096;
constexpr std::int64_t kPaperMostRows = std::int64_t{1} << 15;

struct PartName {
  const char* name;
  PapersPart (*measure)(const PapersOptions&);
  bool on_each_device;  ///< false: it takes the CPU and the device itself
};

constexpr PartName kParts[] = {
    {"gs", measure_papers_gs, true},    {"gs-attacks", measure_papers_attacks, true},
    {"lof", measure_papers_lof, true},  {"lle-search", measure_papers_lle_search, true},
    {"lle", measure_papers_lle, false}, {"km", measure_papers_km, false},
    {"cc", measure_papers_cc, false},
};

/// Where the classical tools' data are if --data-dir has none.
std::string images_folder() {
  const char* const data = std::getenv("VICINAL_DATA");
  if (data == nullptr) return {};
  const std::filesystem::path folder = std::filesystem::path(data) / "image_data";
  return std::filesystem::is_directory(folder) ? folder.string() : std::string();
}

/// A result that an earlier run wrote. Throws `bad_data` naming the file where it is none.
Json read_all_papers(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::io, fmt::format("--from: cannot open {}", path.string()));
  Json result = Json::parse(file, nullptr, false);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::bad_data, fmt::format("--from: {} is no result of bench papers: {}", path.string(), why));
  };
  if (result.is_discarded()) refuse("it is no JSON");
  if (!result.is_object() || result.value("command", Json()) != "bench papers") refuse("it has another command");
  if (!result.contains("parts") || !result["parts"].is_array() || result["parts"].empty()) refuse("it has no parts");
  for (const char* const name : {"date", "version", "commit", "machine", "quick", "most_rows", "verify"}) {
    if (!result.contains(name)) refuse(fmt::format("it has no {}", name));
  }
  for (const Json& part : result["parts"]) {
    const Json name = part.is_object() ? part.value("part", Json()) : Json();
    const bool known =
        std::any_of(std::begin(kParts), std::end(kParts), [&](const PartName& one) { return name == one.name; });
    if (!known) refuse("it has a part of another name");
    const Json lines = part.value(name == "cc" ? "lines" : "tables", Json());
    if (!lines.is_array() || lines.empty() || !part.contains("device")) {
      refuse(fmt::format("part {} has no device or no tables", name.dump()));
    }
    for (const char* const count : {"different_answers", "checked_answers", "wrong_answers"}) {
      if (!part.value(count, Json()).is_number_integer()) refuse(fmt::format("part {} has no {}", name.dump(), count));
    }
  }
  return result;
}

/// The head of a result: what was measured when and where.
Json head_of(const Json& result) {
  Json head;
  for (const char* const name : {"command", "date", "version", "commit", "machine"}) head[name] = result[name];
  return head;
}

/// The options that a stored result was measured with, as far as its page names them.
PapersOptions options_of(PapersOptions options, const Json& result) {
  options.quick = result["quick"].get<bool>();
  options.most_rows = result["most_rows"].get<std::int64_t>();
  options.verify = result["verify"].get<bool>();
  // Results of before it was stored had the default.
  options.time_limit = result.value("time_limit", PapersOptions{}.time_limit);
  options.repeat =
      static_cast<int>(result.value("/parts/0/tables/0/lines/0/seconds/runs"_json_pointer, Json::array()).size());
  return options;
}

class AllPapers {
 public:
  explicit AllPapers(const PapersOptions& options)
      : options_(options), head_(head_of_results("bench papers", options.commit)) {}
  /// Of a stored result, which is drawn again.
  AllPapers(const PapersOptions& options, const Json& result)
      : options_(options_of(options, result)), head_(head_of(result)) {}

  void run() {
    for (const PartName& part : kParts) {
      if (!part.on_each_device) {
        measure_part(part, options_.common.device);
        continue;
      }
      for (const std::string& device : devices()) measure_part(part, device);
    }
    finish();
  }

  void draw(const Json& parts) {
    for (const Json& json : parts) {
      const auto count = [&](const char* name) { return json[name].get<std::int64_t>(); };
      const Verdict verdict{count("checked_answers"), count("wrong_answers")};
      add({json["part"].get<std::string>(), PapersPart{json, {}, count("different_answers"), verdict}});
    }
    save();
    finish();
  }

 private:
  void finish() const {
    if (options_.common.json) {
      print_json(result());
    } else {
      print_text(fmt::format("{} tables, {} answers checked, {} wrong: {} and {}\n", tables_.size(), verdict_.checked,
                             verdict_.wrong, options_.output, options_.html));
    }
    if (verdict_.wrong + different_ > 0) {
      throw Error(ErrorCode::internal, fmt::format("{} of {} checked answers are wrong, and methods differ in {} lines",
                                                   verdict_.wrong, verdict_.checked, different_));
    }
  }

  [[nodiscard]] std::vector<std::string> devices() const {
    std::vector<std::string> names;
    for (const Context& ctx : cpu_and_device(options_.common, make_runtime(options_.common))) {
      names.push_back(ctx.device() == "cpu"              ? "cpu"
                      : options_.common.device == "auto" ? "cuda"
                                                         : options_.common.device);
    }
    return names;
  }

  void measure_part(const PartName& name, const std::string& device) {
    PapersOptions asked = options_;
    asked.output.clear();
    asked.common.device = device;
    const std::string part_name = name.name;
    if (part_name == "km" && !has_classical_files(asked.data_dir)) asked.data_dir = images_folder();
    if (part_name == "lle" && asked.quick) asked.most_rows = std::min(asked.most_rows, kQuickSurfaceRows);
    tell(part_name, device);
    add({part_name, name.measure(asked)});
    // After every part, so that a run that is ended leaves what it has.
    save();
  }

  void add(MeasuredPart measured) {
    std::vector<report::Drawing> drawings;
    if (measured.name == "lle") drawings = drawings_of(measured.part.json);
    for (PaperTable& table : tables_of(measured, drawings)) tables_.push_back(std::move(table));
    verdict_ += measured.part.verdict;
    different_ += measured.part.different;
    measured.part.json["part"] = measured.name;
    parts_.push_back(std::move(measured.part.json));
  }

  void save() const {
    write_text(options_.output, result().dump(2) + "\n");
    write_text(options_.html, papers_page(head_, sizes(), verdict_, tables_));
  }

  void tell(const std::string& part, const std::string& device) const {
    if (!options_.common.quiet && !options_.common.json) print_text(fmt::format("papers {} on {}\n", part, device));
  }

  [[nodiscard]] std::vector<report::Drawing> drawings_of(const Json& result) const {
    const Runtime runtime = make_runtime(options_.common, Computes::on_host);
    const std::int64_t most_rows =
        options_.quick ? std::min(options_.most_rows, kQuickSurfaceRows) : options_.most_rows;
    std::vector<report::Drawing> drawings;
    for (NamedDrawing& one : lle_paper_drawings(runtime.ctx, result["tables"][0]["lines"], most_rows)) {
      drawings.push_back(std::move(one.drawing));
    }
    return drawings;
  }

  [[nodiscard]] PaperSizes sizes() const {
    const bool cut = options_.most_rows < kPaperMostRows;
    std::string text =
        cut ? fmt::format("tables cut to {} rows", report::count_text(options_.most_rows)) : "the papers'";
    text += fmt::format(", {} timed run{}", options_.repeat, options_.repeat == 1 ? "" : "s");
    if (options_.repeat > 1) text += fmt::format(", fewer where they take {} s", options_.time_limit);
    if (options_.quick)
      text = "--quick: " + text + ", surfaces of at most " + report::count_text(kQuickSurfaceRows) + " rows";
    return {text, options_.most_rows, cut};
  }

  [[nodiscard]] Json result() const {
    Json json = head_;
    json["quick"] = options_.quick;
    json["most_rows"] = options_.most_rows;
    json["verify"] = options_.verify;
    json["time_limit"] = options_.time_limit;
    json["checked_answers"] = verdict_.checked;
    json["wrong_answers"] = verdict_.wrong;
    json["different_answers"] = different_;
    json["tables"] = Json::array();
    for (const PaperTable& table : tables_) json["tables"].push_back(to_json(table));
    json["parts"] = parts_;
    return json;
  }

  const PapersOptions options_;
  const Json head_;
  std::vector<PaperTable> tables_;
  Json parts_ = Json::array();
  Verdict verdict_;
  std::int64_t different_ = 0;
};

}  // namespace

void run_all_papers(const PapersOptions& options) {
  AllPapers(options).run();
}

void draw_all_papers(const PapersOptions& options) {
  const Json result = read_all_papers(options.from);
  try {
    AllPapers(options, result).draw(result["parts"]);
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::bad_data,
                fmt::format("--from: {} is no result of bench papers: {}", options.from, error.what()));
  }
}

}  // namespace vicinal::cli
