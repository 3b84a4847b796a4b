// See chart.hpp.
#include "report/chart.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/html.hpp"

namespace vicinal::cli::report {

std::string ChartFrame::level(double y, std::string_view text, double gap) const {
  return svg_rect(left, y - 0.5, plot_width(), 1, "line") + svg_text(left - gap, y + 4, "end", "soft", text);
}

std::string ChartFrame::tick(double x, std::string_view text, std::string_view anchor) const {
  return svg_text(x, base() + 18, anchor, "soft", text);
}

std::string ChartFrame::name_below(std::string_view text) const {
  return svg_text(left + plot_width() / 2, height - 6, "middle", "soft", text);
}

std::string ChartFrame::upright(double x, double above) const {
  return fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" class=\"mean\"/>", x, top - above, base());
}

double round_step(double range, double count) {
  const double rough = range / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double digit = rough / power;
  return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

std::vector<double> round_ticks(double low, double high, double count, bool whole) {
  const double step = std::max(round_step(high - low, count), whole ? 1.0 : 0.0);
  const double first = std::ceil(low / step);
  std::vector<double> ticks;
  for (int i = 0; i <= 2 * count && (first + i) * step <= high; ++i) ticks.push_back((first + i) * step);
  return ticks;
}

std::vector<double> log_ticks(double least, double most) {
  std::vector<double> ticks;
  const auto first = static_cast<int>(std::floor(std::log10(least)));
  const auto last = static_cast<int>(std::ceil(std::log10(most)));
  for (int decade = first; decade <= last; ++decade) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit > 1 && last - first > 4) continue;
      ticks.push_back(digit * std::pow(10, decade));
    }
  }
  std::size_t from = 0;
  while (from + 1 < ticks.size() && ticks[from + 1] <= least) ++from;
  std::size_t to = ticks.size() - 1;
  while (to > from + 1 && ticks[to - 1] >= most) --to;
  return {ticks.begin() + static_cast<std::ptrdiff_t>(from), ticks.begin() + static_cast<std::ptrdiff_t>(to) + 1};
}

std::string chart_dot(double x, double y, int radius, std::string_view style_class) {
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"{}\"/>", x, y, radius, style_class);
}

}  // namespace vicinal::cli::report
