// See histogram.hpp.
#include "report/histogram.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/interrupt.hpp"
#include "report/chart.hpp"
#include "report/html.hpp"

namespace vicinal::cli::report {
namespace {

constexpr ChartFrame kFrame = {480, 320, 30, 46, 46, 14};
constexpr std::size_t kBars = 40;
constexpr double kWideRange = 30;

/// Where a value lies on the axis, 0 to 1.
struct Axis {
  double low = 0;
  double high = 1;
  bool logarithmic = false;

  [[nodiscard]] double place(double value) const {
    const double at = logarithmic ? std::log10(std::max(value, std::pow(10, low))) : value;
    return std::clamp((at - low) / (high - low), 0.0, 1.0);
  }
  [[nodiscard]] double value(double place) const {
    const double at = low + place * (high - low);
    return logarithmic ? std::pow(10, at) : at;
  }
};

Axis axis_of(const std::vector<double>& sorted) {
  const auto above = std::upper_bound(sorted.begin(), sorted.end(), 0.0);
  const double least = above == sorted.end() ? 0 : *above;
  const double most = sorted.back();
  Axis axis;
  axis.logarithmic = least > 0 && most / least > kWideRange;
  axis.low = axis.logarithmic ? std::log10(least) : sorted.front();
  axis.high = axis.logarithmic ? std::log10(most) : most;
  if (!(axis.high > axis.low)) {  // one value, which then lies in the middle
    const double margin = std::max(std::fabs(axis.low) * 0.5, 1e-300);
    axis.low -= margin;
    axis.high += margin;
  }
  return axis;
}

std::string tick_text(double value) {
  return short_number(value, 3);
}

}  // namespace

Histogram histogram(std::span<const double> values, double threshold, const std::string& label,
                    const std::string& below) {
  Histogram found;
  std::vector<double> sorted;
  for (const double value : values) {
    if (std::isfinite(value)) sorted.push_back(value);
  }
  found.infinite = static_cast<std::int64_t>(values.size() - sorted.size());
  if (sorted.empty()) return found;
  std::sort(sorted.begin(), sorted.end(), [](double a, double b) {
    poll_interrupt();
    return a < b;
  });
  const Axis axis = axis_of(sorted);
  found.logarithmic = axis.logarithmic;
  if (axis.logarithmic) found.zeros = std::upper_bound(sorted.begin(), sorted.end(), 0.0) - sorted.begin();

  std::vector<std::int64_t> rows(kBars);
  std::vector<std::int64_t> outliers(kBars);
  for (const double value : sorted) {
    const auto bar = std::min(kBars - 1, static_cast<std::size_t>(axis.place(value) * kBars));
    ++rows[bar];
    outliers[bar] += value > threshold ? 1 : 0;
  }
  // Heights are logarithmic: of a million rows with one score the few with another are what is looked for.
  const auto tallest = static_cast<double>(*std::max_element(rows.begin(), rows.end()));
  const double width = kFrame.plot_width();
  const double height = kFrame.plot_height();
  const auto tall = [&](std::int64_t count) {
    return height * std::log10(1 + static_cast<double>(count)) / std::log10(1 + tallest);
  };
  const double wide = width / kBars;
  std::string shapes = svg_rect(kFrame.left, kFrame.base(), width, 1, "line");
  int power = 0;
  for (std::int64_t count = 1; static_cast<double>(count) <= tallest; count *= 10, ++power) {
    const std::string name = power < 4 ? fmt::format("{}", count) : fmt::format("1e{}", power);
    shapes += kFrame.level(kFrame.base() - tall(count), name, 6);
  }
  const auto bar = [&](std::size_t b, std::int64_t count, const char* style) {
    if (count == 0) return std::string();
    return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"/>",
                       kFrame.left + wide * static_cast<double>(b) + 0.5, kFrame.base() - tall(count), wide - 1,
                       tall(count), style);
  };
  for (std::size_t b = 0; b < kBars; ++b) {
    if (rows[b] == 0) continue;
    const double from = axis.value(static_cast<double>(b) / kBars);
    const double to = axis.value(static_cast<double>(b + 1) / kBars);
    shapes += fmt::format("<g><title>{} to {}: {} rows</title>{}{}</g>", tick_text(from), tick_text(to), rows[b],
                          bar(b, rows[b], "good"), bar(b, outliers[b], "bad"));
  }
  constexpr int kTicks = 4;
  for (int tick = 0; tick <= kTicks; ++tick) {
    const double place = static_cast<double>(tick) / kTicks;
    const char* const anchor = tick == 0 ? "start" : tick == kTicks ? "end" : "middle";
    shapes += kFrame.tick(kFrame.across(place), tick_text(axis.value(place)), anchor);
  }
  shapes += kFrame.name_below(below + (axis.logarithmic ? ", on a logarithmic axis" : ""));
  if (std::isfinite(threshold) && threshold >= axis.value(0) && threshold <= axis.value(1)) {
    const double x = kFrame.across(axis.place(threshold));
    const std::string text = "threshold " + tick_text(threshold);
    const double half = 3.6 * static_cast<double>(text.size());
    shapes += kFrame.upright(x, 8);
    shapes +=
        svg_text(std::clamp(x, kFrame.left + half, kFrame.width - half - 2), kFrame.top - 14, "middle", "strong", text);
  }
  found.svg = report::svg(kFrame.width, kFrame.height, label, shapes);
  return found;
}

}  // namespace vicinal::cli::report
