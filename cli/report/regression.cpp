// See regression.hpp. Order of the page: the answer, what was run, each target (predicted against true, and errors; or
// the values alone), the largest errors, and the neighborhoods.
#include "report/regression.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/interrupt.hpp"
#include "base/output.hpp"
#include "base/progress.hpp"
#include "report/chart.hpp"
#include "report/facts.hpp"
#include "report/histogram.hpp"
#include "report/html.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::int64_t kDotsShown = 2000;
constexpr std::size_t kErrorsShown = 10;
constexpr std::size_t kOutputsShown = 20;

double at(std::span<const double> values, const RegressionReport& report, std::int64_t row, std::size_t output) {
  return values[static_cast<std::size_t>(row) * report.names.size() + output];
}

std::string hero(const RegressionReport& report) {
  std::string text = "<div class=\"hero\">";
  if (report.scores.empty()) {
    text += fmt::format("<div class=\"figure\"><div class=\"big\">{}</div><span>rows answered</span></div>\n",
                        count_text(report.found->rows));
  } else {
    const RegressionScore& first = report.scores[0];
    const std::string of = report.names.size() > 1 ? " of " + report.names[0] : "";
    text +=
        fmt::format("<div class=\"figure\"><div class=\"big\">{}</div><span>root mean square error{}</span></div>\n",
                    number_text(first.root_mean_squared_error), escape(shortened(of, 40)));
    if (first.r2 && std::isfinite(*first.r2))
      text += figure(fmt::format("{:.4f}", *first.r2), "share of the variance explained");
    text += figure(number_text(first.mean_absolute_error), "mean size of the errors");
    text += figure(number_text(first.max_error), "largest error");
  }
  if (report.found->outliers > 0) text += figure(count_text(report.found->outliers), "rows without neighbors");
  return text + figure(escape(format_duration(report.seconds)), "from files to answer") + "</div>\n";
}

std::string facts(const RegressionReport& report) {
  const auto table = [](const TableView& view) {
    return fmt::format("{} x {} ({})", count_text(view.rows()), count_text(view.cols()), name_of(view.dtype()));
  };
  std::string text = "<dl class=\"facts\">\n" + fact("Training file", report.train_file) +
                     fact("Training table", table(*report.train)) + fact("Test file", report.test_file) +
                     fact("Test table", table(*report.test));
  for (const auto& [name, value] : report.how) text += fact(name, value);
  return text + fact("Metric", std::string(name_of(report.profile->metric))) +
         fact("Ran as", ran_as(report.profile->plan)) + fact("Version", "vicinal " VICINAL_VERSION) +
         fact("Why this method", report.profile->plan.reason, true) + "</dl>\n";
}

/// Predicted over true values, with the line on which they are equal; one scale for both.
std::string predictions_svg(const RegressionReport& report, std::size_t output) {
  constexpr double kSide = 400;
  constexpr ChartFrame kFrame = {84 + kSide + 14, 10 + kSide + 46, 10, 46, 84, 14};
  constexpr double kLeft = kFrame.left;
  constexpr double kTop = kFrame.top;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  const std::int64_t rows = report.found->rows;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (const double value : {at(report.truth, report, i, output), at(report.found->values, report, i, output)}) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (!(high > low)) {
    low -= 0.5;
    high += 0.5;
  }
  const auto place = [&](double value) { return (value / 2 - low / 2) / (high / 2 - low / 2) * kSide; };
  std::string dots;
  const std::int64_t step = std::max<std::int64_t>(1, (rows + kDotsShown - 1) / kDotsShown);
  for (std::int64_t i = 0; i < rows; i += step) {
    const double is = at(report.truth, report, i, output);
    const double said = at(report.found->values, report, i, output);
    if (!std::isfinite(is) || !std::isfinite(said)) continue;
    dots += fmt::format("M{:.1f} {:.1f}h0", kLeft + place(is), kTop + kSide - place(said));
  }
  std::string shapes = svg_rect(kLeft, kTop + kSide, kSide, 1, "line") + svg_rect(kLeft - 1, kTop, 1, kSide, "line");
  shapes += fmt::format("<path d=\"M{0:.1f} {1:.1f}L{2:.1f} {3:.1f}\" class=\"mean\"/>", kLeft, kTop + kSide,
                        kLeft + kSide, kTop);
  shapes += fmt::format("<path d=\"{}\" class=\"dots\" stroke=\"var(--good)\" stroke-width=\"{}\"/>", dots,
                        rows > 600 ? "4" : "6");
  for (const double value : {low, low / 2 + high / 2, high}) {
    const char* const anchor = value == low ? "start" : value == high ? "end" : "middle";
    shapes += kFrame.tick(kLeft + place(value), number_text(value, 3), anchor);
    shapes += svg_text(kLeft - 8, kTop + kSide - place(value) + 4, "end", "soft", number_text(value, 3));
  }
  shapes += svg_text(kLeft + kSide / 2, kFrame.height - 8, "middle", "soft", "true value");
  shapes += fmt::format(
      "<text transform=\"translate(12 {:.1f}) rotate(-90)\" text-anchor=\"middle\" class=\"soft\">answer</text>",
      kTop + kSide / 2);
  return svg(kFrame.width, kFrame.height, "Answers over true values", shapes);
}

std::string target_sections(const RegressionReport& report, std::size_t output) {
  const std::string name = escape(shortened(report.names[output], 40));
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<double> values;
  for (std::int64_t i = 0; i < report.found->rows; ++i) values.push_back(at(report.found->values, report, i, output));
  if (report.truth.empty()) {
    return fmt::format("<section><h2>{}</h2><p class=\"note\">Rows by the answer.</p>\n{}</section>\n", name,
                       histogram(values, kNone, "Rows by the answer", "answer").svg);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::fabs(values[i] - at(report.truth, report, static_cast<std::int64_t>(i), output));
  }
  return fmt::format(
             "<div class=\"pair\">\n<section><h2>{}</h2><p class=\"note\">Each dot is a row; on the dashed line the "
             "answer is right.</p>\n",
             name) +
         predictions_svg(report, output) +
         "</section>\n<section><h2>How large the errors are</h2><p class=\"note\">Rows by the size of their "
         "error.</p>\n" +
         histogram(values, kNone, "Rows by the size of their error", "size of the error").svg + "</section>\n</div>\n";
}

std::string largest_errors(const RegressionReport& report) {
  if (report.truth.empty()) return {};
  std::vector<std::int64_t> rows(static_cast<std::size_t>(report.found->rows));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  const auto error = [&](std::int64_t row) {
    const double size = std::fabs(at(report.found->values, report, row, 0) - at(report.truth, report, row, 0));
    return std::isfinite(size) ? size : -1;
  };
  const std::size_t shown = std::min(rows.size(), kErrorsShown);
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown), rows.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      poll_interrupt();
                      return error(a) != error(b) ? error(a) > error(b) : a < b;
                    });
  std::string text = fmt::format(
      "<section><h2>The largest errors</h2><p class=\"note\">{}</p>\n<table><thead><tr><th>row</th><th>true</th>"
      "<th>answer</th><th>nearest</th><th>farthest</th></tr></thead><tbody>\n",
      report.names.size() > 1
          ? "Of " + escape(shortened(report.names[0], 40)) + ", with the distances of the neighbors."
          : "With the distances of the neighbors.");
  for (std::size_t i = 0; i < shown; ++i) {
    const auto far = [&](bool last) {
      const NeighborProfile& profile = *report.profile;
      if (profile.size_of(rows[i]) == 0) return std::string("none");
      return number_text(last ? profile.last_of(rows[i]) : profile.distances_of(rows[i])[0]);
    };
    text += fmt::format("<tr><td class=\"name\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        escape(shortened(report.asked.text(rows[i]), 32)),
                        number_text(at(report.truth, report, rows[i], 0), 6),
                        number_text(at(report.found->values, report, rows[i], 0), 6), far(false), far(true));
  }
  return text + "</tbody></table></section>\n";
}

}  // namespace

std::string render(const RegressionReport& report) {
  const std::string name = std::filesystem::path(report.test_file).filename().string();
  std::string body = fmt::format(
      "<header><p class=\"over\">Regression report</p><h1>{}</h1><p>{} rows, each given the mean of its nearest of {} "
      "training rows</p></header>\n",
      escape(name), count_text(report.found->rows), count_text(report.profile->table_rows));
  body += hero(report) + facts(report);
  for (std::size_t o = 0; o < std::min(kOutputsShown, report.names.size()); ++o) body += target_sections(report, o);
  if (report.names.size() > kOutputsShown) {
    body += fmt::format("<p class=\"note\">The first {} of {} targets.</p>\n", kOutputsShown, report.names.size());
  }
  body += largest_errors(report);
  body += distances_pair({.profile = report.profile, .table = report.train, .queries = report.test});
  body += hubness_section(*report.profile, hubness_of(*report.profile));
  body += footer("The neighbors are those of brute force in float64, ties to the smaller row.");
  return page("Regression of " + name, body);
}

}  // namespace vicinal::cli::report
