// See curve.hpp. The axis on the left has round numbers and need not begin at zero: what is looked for is a bend or a
// peak.
#include "report/curve.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/chart.hpp"
#include "report/html.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::size_t kMaxDots = 60;

struct Axis {
  double low = 0;
  double high = 1;
  double step = 1;

  Axis(double least, double most, double count) {
    const double margin = most > least ? 0 : std::max(std::fabs(most) * 0.1, 1e-300);
    step = round_step(std::max(most - least + 2 * margin, 1e-300), count);
    low = std::floor((least - margin) / step) * step;
    high = std::ceil((most + margin) / step) * step;
  }
  [[nodiscard]] double place(double value) const { return (value - low) / (high - low); }
};

}  // namespace

std::string curve_svg(const std::vector<Point>& points, const std::string& label, const std::string& below,
                      std::optional<std::size_t> marked) {
  std::vector<Point> shown;
  std::optional<Point> mark;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(points[i].y)) continue;
    shown.push_back(points[i]);
    if (marked == i) mark = points[i];
  }
  if (shown.empty()) return {};
  const auto [least, most] =
      std::minmax_element(shown.begin(), shown.end(), [](Point a, Point b) { return a.y < b.y; });
  const Axis axis(least->y, most->y, 4);
  std::vector<std::string> ticks;
  std::size_t longest = 1;
  for (int i = 0; axis.low + i * axis.step <= axis.high + axis.step / 2; ++i) {
    const double value = axis.low + i * axis.step;
    ticks.push_back(number_text(std::fabs(value) < axis.step / 2 ? 0 : value));
    longest = std::max(longest, character_count(ticks.back()));
  }
  const ChartFrame frame = {480, 300, 26, 44, 16 + 7.4 * static_cast<double>(longest), 22};
  const double first = shown.front().x;
  const double last = std::max(shown.back().x, first + 1);
  const auto across = [&](double x) { return frame.across((x - first) / (last - first)); };
  const auto down = [&](double y) { return frame.down(1 - axis.place(y)); };
  std::string shapes;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    shapes += frame.level(down(axis.low + static_cast<double>(i) * axis.step), ticks[i]);
  }
  const double step = std::max(1.0, round_step(last - first, 8));
  for (double x = std::ceil(first / step) * step; x <= shown.back().x; x += step) {
    shapes += frame.tick(across(x), fmt::format("{:.0f}", x));
  }
  shapes += frame.name_below(below);
  std::string path;
  for (const Point& point : shown) path += fmt::format("{:.1f},{:.1f} ", across(point.x), down(point.y));
  shapes += fmt::format("<polyline points=\"{}\" class=\"curve\"/>", path);
  if (shown.size() <= kMaxDots) {
    for (const Point& point : shown) {
      shapes += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" class=\"good\"><title>{:.0f}: {:.6g}</title></circle>",
          across(point.x), down(point.y), point.x, point.y);
    }
  }
  if (mark) {
    const double x = across(mark->x);
    const double y = down(mark->y);
    shapes += chart_dot(x, y, 6, "bad");
    const std::string text = fmt::format("{:.0f}: {}", mark->x, number_text(mark->y));
    const double half = 4.0 * static_cast<double>(character_count(text));
    shapes += svg_text(std::clamp(x, frame.left + half + 6, frame.width - half), std::max(y - 12, 12.0), "middle",
                       "strong", text);
  }
  return svg(frame.width, frame.height, label, shapes);
}

}  // namespace vicinal::cli::report
