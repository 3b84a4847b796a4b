// See growth_page.hpp.
#include "command/growth_page.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "command/page_parts.hpp"
#include "report/drawing.hpp"
#include "report/facts.hpp"
#include "report/html.hpp"
#include "report/scatter.hpp"

namespace vicinal::cli {
namespace {

constexpr std::size_t kCountersDrawn = 3;  // of a sweep

std::string cell(const std::string& text, const char* tag = "td") {
  return fmt::format("<{0}>{1}</{0}>", tag, report::thin(report::escape(text)));
}

report::Line line_of(const std::string& name, std::int64_t kind, const std::vector<double>& sizes,
                     const std::vector<double>& values, bool dashed = false) {
  report::Line line{name, report::kind_color(kind), dashed, {}};
  line.points.reserve(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) line.points.push_back({sizes[i], values[i]});
  return line;
}

/// As much as at the smallest size.
std::vector<double> relative(std::vector<double> values) {
  const double first = values.empty() ? 1 : values.front();
  for (double& value : values) value /= first;
  return values;
}

std::set<std::string> counters_of(const MeasuredSweep& measured) {
  std::set<std::string> names;
  for (const GrowthPoint& point : measured.points) {
    for (const auto& [name, count] : point.counts) names.insert(name);
  }
  return names;
}

bool all_above_0(const std::vector<double>& values) {
  return !values.empty() && std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
}

report::Drawing seconds_drawing(const MeasuredSystem& measured, const MeasuredSweep& sweep, const std::string& below) {
  const std::vector<double> sizes = sizes_of(sweep);
  std::vector<report::Line> lines = {line_of("measured", 0, sizes, least_seconds(sweep))};
  if (const auto fit = fit_growth(sizes, least_seconds(sweep))) {
    std::vector<double> fitted;
    fitted.reserve(sizes.size());
    for (const double size : sizes) fitted.push_back(fit->factor * std::pow(size, fit->exponent));
    lines.push_back(
        line_of(fmt::format("{}^{:.2f}", letter_of(sweep.sweep->axis), fit->exponent), 1, sizes, fitted, true));
  }
  return report::draw_lines(lines, measured.system->name + ": seconds of a call", below);
}

report::Drawing counters_drawing(const MeasuredSystem& measured, const MeasuredSweep& sweep, const std::string& below) {
  const std::vector<double> sizes = sizes_of(sweep);
  std::vector<report::Line> lines = {line_of("time", 0, sizes, relative(least_seconds(sweep)))};
  const std::vector<double> bytes = peak_bytes(sweep);
  if (all_above_0(bytes)) lines.push_back(line_of("peak memory", 1, sizes, relative(bytes), true));
  std::size_t drawn = 0;
  for (const std::string& name : counters_of(sweep)) {
    const std::vector<double> counts = counts_of(sweep, name);
    if (drawn == kCountersDrawn || !all_above_0(counts)) continue;
    lines.push_back(line_of(name, static_cast<std::int64_t>(2 + drawn++), sizes, relative(counts)));
  }
  return report::draw_lines(lines, measured.system->name + ": how many times as much as at the smallest size", below);
}

std::string points_table(const MeasuredSweep& sweep) {
  const std::set<std::string> counters = counters_of(sweep);
  std::string text = "<details style=\"margin-top:18px\"><summary>" + std::to_string(sweep.points.size()) +
                     " sizes</summary>\n<table><thead><tr>" + cell(letter_of(sweep.sweep->axis), "th") +
                     cell("seconds", "th") + cell("exponent of the step", "th") + cell("peak memory", "th");
  for (const std::string& name : counters) text += cell(name, "th");
  text += cell("method", "th") + "</tr></thead><tbody>\n";
  const std::vector<double> steps = step_exponents(sizes_of(sweep), least_seconds(sweep));
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const GrowthPoint& point = sweep.points[i];
    text += "<tr>" + cell(report::count_text(point.size)) + cell(report::short_number(point.least(), 3)) +
            cell(i == 0 ? "-" : fmt::format("{:.2f}", steps[i - 1])) +
            cell(point.peak_bytes ? format_bytes(*point.peak_bytes) : "-");
    for (const std::string& name : counters) {
      const auto count = point.counts.find(name);
      text += cell(count == point.counts.end() ? "-" : report::short_number(count->second, 4));
    }
    text += fmt::format("<td class=\"words\" {}>{}</td></tr>\n", kWords, report::escape(point.how));
  }
  return text + "</tbody></table></details>\n";
}

std::string sweep_text(const MeasuredSystem& measured, const MeasuredSweep& sweep) {
  const std::string below = axis_text(*measured.system, sweep.sweep->axis);
  const std::string fixed = fixed_text(*measured.system, *sweep.sweep);
  std::string text =
      fmt::format("<h3>{}{}</h3>\n<p>{}</p>\n", report::escape("By " + below),
                  fixed.empty() ? "" : report::escape(", " + fixed), report::escape(growth_sentence(sweep)));
  for (const GrowthBend& bend : find_bends(sweep.points, letter_of(sweep.sweep->axis))) {
    text += "<p class=\"note\">" + report::escape(bend.reason) + "</p>\n";
  }
  if (!sweep.stopped.empty()) text += "<p class=\"note\">" + report::escape(sweep.stopped) + "</p>\n";
  if (sweep.points.size() > 1) {
    text += chart(seconds_drawing(measured, sweep, below)) + chart(counters_drawing(measured, sweep, below));
  }
  return text + points_table(sweep);
}

std::string summary(const std::vector<MeasuredSystem>& systems) {
  std::string rows;
  for (const MeasuredSystem& measured : systems) {
    for (const MeasuredSweep& sweep : measured.sweeps) {
      rows += fmt::format(
          "<tr><td class=\"name\">{}</td><td class=\"words\" {}>{}</td><td class=\"words\" {}>{}</td>"
          "</tr>\n",
          report::escape(measured.system->name), kWords, report::escape(growth_sentence(sweep)), kWords,
          report::escape(fixed_text(*measured.system, *sweep.sweep)));
    }
  }
  return "<section>\n<h2>Exponents</h2>\n<p class=\"note\">Fitted by least squares of the logarithms; after ± is half "
         "of "
         "the 95 % interval, by Student's t. The least of the timed calls counts.</p>\n<table><colgroup><col "
         "style=\"width:20%\"><col style=\"width:52%\"></colgroup><thead><tr>" +
         cell("system", "th") + cell("growth", "th") + cell("other sizes", "th") + "</tr></thead><tbody>" + rows +
         "</tbody></table>\n</section>\n";
}

std::string machine_facts(const Json& head) {
  const Json& machine = head["machine"];
  return "<dl class=\"facts\">\n" + report::fact("Processor", machine["cpu"].get<std::string>()) +
         report::fact("Threads", fmt::format("{}", head["threads"].get<int>())) +
         report::fact("Instructions", machine["isa"].get<std::string>()) +
         report::fact("Memory", format_bytes(machine["memory_total_bytes"].get<double>())) +
         report::fact("Date", head["date"].get<std::string>()) +
         report::fact("Version", head["version"].get<std::string>()) +
         report::fact("Commit", head["commit"].is_null() ? "unknown" : head["commit"].get<std::string>()) + "</dl>\n";
}

std::string hero(const std::vector<MeasuredSystem>& systems) {
  std::int64_t sweeps = 0;
  std::int64_t calls = 0;
  Verdict verdict;
  for (const MeasuredSystem& measured : systems) {
    verdict += measured.verdict;
    sweeps += std::ssize(measured.sweeps);
    for (const MeasuredSweep& sweep : measured.sweeps) {
      for (const GrowthPoint& point : sweep.points) calls += std::ssize(point.seconds);
    }
  }
  return "<div class=\"hero\">\n" + report::figure(report::count_text(std::ssize(systems)), "systems") +
         report::figure(report::count_text(sweeps), "sweeps") +
         report::figure(report::count_text(calls), "timed calls") +
         report::figure(report::count_text(verdict.wrong),
                        fmt::format("of {} checked answers wrong", report::count_text(verdict.checked))) +
         "</div>\n";
}

}  // namespace

std::string growth_page(const Json& head, const std::vector<MeasuredSystem>& systems) {
  std::string body =
      "<header><p class=\"over\">vicinal-bench growth</p>\n<h1>How time and memory grow</h1>\n"
      "<p>Each size is changed alone. A bend is a step between two sizes whose exponent is outside of the interval of "
      "the fitted one; a counter explains it where one grows in the same way.</p></header>\n";
  body += hero(systems) + machine_facts(head) + summary(systems);
  for (const MeasuredSystem& measured : systems) {
    body += fmt::format("<section>\n<h2>{}</h2>\n<p>{}</p>\n", report::escape(measured.system->name),
                        report::escape(measured.system->title));
    for (const MeasuredSweep& sweep : measured.sweeps) body += sweep_text(measured, sweep);
    body += "</section>\n";
  }
  return report::page("How time and memory grow", body + report::footer("No network, no scripts."));
}

}  // namespace vicinal::cli
