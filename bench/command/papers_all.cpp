// See papers_all.hpp.
#include "command/papers_all.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
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

/// Where the classical tools' data are, without --data-dir.
std::string images_folder() {
  const char* const data = std::getenv("VICINAL_DATA");
  if (data == nullptr) return {};
  const std::filesystem::path folder = std::filesystem::path(data) / "image_data";
  return std::filesystem::is_directory(folder) ? folder.string() : std::string();
}

class AllPapers {
 public:
  explicit AllPapers(const PapersOptions& options) : options_(options) {}

  void run() {
    for (const PartName& part : kParts) {
      if (!part.on_each_device) {
        measure_part(part, options_.common.device);
        continue;
      }
      for (const std::string& device : devices()) measure_part(part, device);
    }
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

 private:
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
    if (part_name == "km" && asked.data_dir.empty()) asked.data_dir = images_folder();
    if (part_name == "lle" && asked.quick) asked.most_rows = std::min(asked.most_rows, kQuickSurfaceRows);
    tell(part_name, device);
    MeasuredPart measured{part_name, name.measure(asked)};
    std::vector<report::Drawing> drawings;
    if (part_name == "lle") drawings = drawings_of(measured.part.json, asked);
    for (PaperTable& table : tables_of(measured, drawings)) tables_.push_back(std::move(table));
    verdict_ += measured.part.verdict;
    different_ += measured.part.different;
    measured.part.json["part"] = part_name;
    parts_.push_back(measured.part.json);
    // After every part, so that a run that is ended leaves what it has.
    write_text(options_.output, result().dump(2) + "\n");
    write_text(options_.html, papers_page(head_, sizes(), tables_));
  }

  void tell(const std::string& part, const std::string& device) const {
    if (!options_.common.quiet && !options_.common.json) print_text(fmt::format("papers {} on {}\n", part, device));
  }

  static std::vector<report::Drawing> drawings_of(const Json& result, const PapersOptions& options) {
    const Runtime runtime = make_runtime(options.common, Computes::on_host);
    std::vector<report::Drawing> drawings;
    for (NamedDrawing& one : lle_paper_drawings(runtime.ctx, result["tables"][0]["lines"], options.most_rows)) {
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
    json["checked_answers"] = verdict_.checked;
    json["wrong_answers"] = verdict_.wrong;
    json["different_answers"] = different_;
    json["tables"] = Json::array();
    for (const PaperTable& table : tables_) json["tables"].push_back(to_json(table));
    json["parts"] = parts_;
    return json;
  }

  const PapersOptions& options_;
  const Json head_ = head_of_results("bench papers", options_.commit);
  std::vector<PaperTable> tables_;
  Json parts_ = Json::array();
  Verdict verdict_;
  std::int64_t different_ = 0;
};

}  // namespace

void run_all_papers(const PapersOptions& options) {
  AllPapers(options).run();
}

}  // namespace vicinal::cli
