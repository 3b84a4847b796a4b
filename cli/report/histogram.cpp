// See histogram.hpp.
#include "report/histogram.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/interrupt.hpp"
#include "report/chart.hpp"
#include "report/html.hpp"

namespace vicinal::cli::report {
namespace {

constexpr ChartFrame kHistogramFrame = {480, 320, 30, 46, 58, 14};
constexpr std::size_t kBars = 40;
constexpr double kMaxWholeBars = 60;
constexpr double kWideRange = 30;
constexpr double kWideWholeRange = 1000;
constexpr double kWidestBar = 64;
constexpr double kLargestWhole = 1e15;

enum class Scale : std::uint8_t { linear, logarithmic, counts };  // counts: the logarithm of 1 + value

/// Bars and where they stand: bar b holds edges[b] <= value < edges[b + 1], the first what is below, the last what is
/// above.
struct Bars {
  Scale scale = Scale::linear;
  bool whole = false;  ///< edges are whole numbers, as all values are
  std::vector<double> edges;

  [[nodiscard]] std::size_t count() const { return edges.size() - 1; }
  [[nodiscard]] std::size_t of(double value) const {
    const auto above = std::upper_bound(edges.begin() + 1, edges.end() - 1, value);
    return static_cast<std::size_t>(above - edges.begin()) - 1;
  }
  /// A value's place on the axis, 0 to 1.
  [[nodiscard]] double place(double value) const {
    const double low = measure(edges.front());
    const double at = measure(std::clamp(value, edges.front(), edges.back()));
    return std::clamp((at - low) / (measure(edges.back()) - low), 0.0, 1.0);
  }
  /// Where a tick stands: of whole numbers the middle of [value, value + 1).
  [[nodiscard]] double tick_place(double value) const {
    return place(whole && edges[1] - edges[0] == 1 ? value + 0.5 : value);
  }
  [[nodiscard]] double measure(double value) const {
    if (scale == Scale::linear) return value / 2;  // halves: a range may be twice the largest number
    return std::log10(scale == Scale::counts ? 1 + value : value);
  }
};

Bars bars_of_whole(double least, double most) {
  Bars bars;
  bars.whole = true;
  if (least >= 0 && most - least > kWideWholeRange) {
    bars.scale = Scale::counts;
    const double step = (std::log10(2 + most) - std::log10(1 + least)) / kBars;
    for (double edge = least; edge <= most;) {
      bars.edges.push_back(edge);
      edge = std::max(edge + 1, std::ceil(std::pow(10, std::log10(1 + edge) + step) - 1));
    }
    bars.edges.push_back(std::max(most, bars.edges.back()) + 1);
    return bars;
  }
  const double width = std::max(1.0, round_step(most - least + 1, kMaxWholeBars));
  const double first = std::floor(least / width);
  const double last = std::floor(most / width) + 1;
  for (double i = first; i <= last; ++i) bars.edges.push_back(i * width);
  return bars;
}

Bars bars_of(const std::vector<double>& sorted) {
  const double least = sorted.front();
  const double most = sorted.back();
  if (std::max(std::fabs(least), std::fabs(most)) < kLargestWhole &&
      std::all_of(sorted.begin(), sorted.end(), [](double value) { return value == std::floor(value); })) {
    return bars_of_whole(least, most);
  }
  const auto above = std::upper_bound(sorted.begin(), sorted.end(), 0.0);
  Bars bars;
  if (above != sorted.end() && most / *above > kWideRange) bars.scale = Scale::logarithmic;
  double low = bars.scale == Scale::logarithmic ? std::log10(*above) : least;
  double high = bars.scale == Scale::logarithmic ? std::log10(most) : most;
  if (!(high > low)) {  // one value, which then lies in the middle
    const double margin = std::max(std::fabs(low) * 0.5, 1e-300);
    low -= margin;
    high += margin;
  }
  for (std::size_t b = 0; b <= kBars; ++b) {
    const double share = static_cast<double>(b) / kBars;
    const double at = low * (1 - share) + high * share;
    bars.edges.push_back(bars.scale == Scale::logarithmic ? std::pow(10, at) : at);
  }
  if (bars.scale == Scale::logarithmic) {  // whose powers may have been rounded
    bars.edges.front() = *above;
    bars.edges.back() = most;
  }
  return bars;
}

std::string tick_text(const Bars& bars, double value) {
  if (bars.whole && std::fabs(value) < 1e6) return count_text(static_cast<std::int64_t>(value));
  return number_text(value, 3);
}

std::string range_text(const Bars& bars, std::size_t bar) {
  const double from = bars.edges[bar];
  const double to = bars.edges[bar + 1] - (bars.whole ? 1 : 0);
  return from == to ? tick_text(bars, from) : fmt::format("{} to {}", tick_text(bars, from), tick_text(bars, to));
}

/// Round values where there are enough of them, else the ends; none over another.
std::string value_ticks(const Bars& bars) {
  constexpr double kTicks = 5;
  constexpr std::size_t kLogTicks = 7;
  const double low = bars.edges.front();
  const double high = bars.edges.back() - (bars.whole ? 1 : 0);
  std::vector<double> values;
  if (bars.scale == Scale::linear) {
    values = round_ticks(low, high, kTicks, bars.whole);
  } else {
    values = log_ticks(std::max(low, bars.whole ? 1.0 : low), high);
    if (bars.whole && low == 0) values.insert(values.begin(), 0);
    std::erase_if(values, [&](double value) { return value < low || value > high; });
    const std::size_t stride = (values.size() + kLogTicks - 1) / kLogTicks;
    for (std::size_t i = 0; stride > 1 && i * stride < values.size(); ++i) values[i] = values[i * stride];
    if (stride > 1) values.resize((values.size() + stride - 1) / stride);
  }
  if (values.size() < 2 && low < high) values = {low, high};
  std::string shapes;
  double free = 0;
  for (const double value : values) {
    const std::string text = tick_text(bars, value);
    const double half = 3.4 * static_cast<double>(character_count(text));
    const double x = std::clamp(kHistogramFrame.across(bars.tick_place(value)), half, kHistogramFrame.width - half);
    if (x - half < free) continue;
    shapes += kHistogramFrame.tick(x, text);
    free = x + half + 14;
  }
  return shapes;
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
  const Bars bars = bars_of(sorted);
  found.logarithmic = bars.scale != Scale::linear;
  if (bars.scale == Scale::logarithmic) {
    found.zeros = std::upper_bound(sorted.begin(), sorted.end(), 0.0) - sorted.begin();
  }

  std::vector<std::int64_t> rows(bars.count());
  std::vector<std::int64_t> outliers(bars.count());
  for (const double value : sorted) {
    const std::size_t bar = bars.of(value);
    ++rows[bar];
    outliers[bar] += value > threshold ? 1 : 0;
  }
  // Heights are logarithmic: of a million rows with one score the few with another are what is looked for.
  const auto tallest = static_cast<double>(*std::max_element(rows.begin(), rows.end()));
  const double width = kHistogramFrame.plot_width();
  const double height = kHistogramFrame.plot_height();
  const auto tall = [&](std::int64_t count) {
    return height * std::log10(1 + static_cast<double>(count)) / std::log10(1 + tallest);
  };
  std::string shapes = svg_rect(kHistogramFrame.left, kHistogramFrame.base(), width, 1, "line");
  int power = 0;
  for (std::int64_t count = 1; static_cast<double>(count) <= tallest; count *= 10, ++power) {
    const std::string name = power < 6 ? count_text(count) : fmt::format("1e{}", power);
    shapes += kHistogramFrame.level(kHistogramFrame.base() - tall(count), name, 6);
  }
  const auto bar = [&](std::size_t b, std::int64_t count, const char* style) {
    if (count == 0) return std::string();
    const double from = kHistogramFrame.across(bars.place(bars.edges[b]));
    const double to = kHistogramFrame.across(bars.place(bars.edges[b + 1]));
    const double wide = std::clamp(to - from - 1, 1.0, kWidestBar);
    return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"/>",
                       (from + to - wide) / 2, kHistogramFrame.base() - tall(count), wide, tall(count), style);
  };
  for (std::size_t b = 0; b < bars.count(); ++b) {
    if (rows[b] == 0) continue;
    shapes += fmt::format("<g><title>{}: {} row{}</title>{}{}</g>", range_text(bars, b), count_text(rows[b]),
                          rows[b] == 1 ? "" : "s", bar(b, rows[b], "good"), bar(b, outliers[b], "bad"));
  }
  shapes += value_ticks(bars);
  shapes += kHistogramFrame.name_below(below + (found.logarithmic ? ", on a logarithmic axis" : ""));
  if (std::isfinite(threshold) && threshold >= bars.edges.front() && threshold <= bars.edges.back()) {
    const double x = kHistogramFrame.across(bars.place(threshold));
    const std::string text = "threshold " + number_text(threshold, 3);
    const double half = 3.6 * static_cast<double>(character_count(text));
    shapes += kHistogramFrame.upright(x, 8);
    shapes += svg_text(std::clamp(x, kHistogramFrame.left + half, kHistogramFrame.width - half - 2),
                       kHistogramFrame.top - 14, "middle", "strong", text);
  }
  found.svg = report::svg(kHistogramFrame.width, kHistogramFrame.height, label, shapes);
  return found;
}

}  // namespace vicinal::cli::report
