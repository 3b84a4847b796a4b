// See drawing.hpp.
#include "report/drawing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "report/chart.hpp"
#include "report/html.hpp"
#include "report/style.hpp"

namespace vicinal::cli::report {
namespace {

constexpr ChartFrame kLines = {560, 320, 18, 46, 58, 150};  // to the right are the names of lines, at their ends
constexpr double kNameHeight = 16;
constexpr double kTickGap = 44;

constexpr int kPanel = 500;  // a side, in whole units: half a pixel where panels are shown
constexpr int kPanelEdge = 12;
constexpr int kPanelTitle = 44;
constexpr int kPanelGap = 20;
constexpr std::size_t kLayers = 6;  // of depth; within one, dots of one color are one path

/// Places for names at the lines' ends, from above to below, none over another, and none below the plot: by line.
std::vector<double> name_places(const std::vector<double>& ends) {
  std::vector<std::size_t> order(ends.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ends[a] < ends[b]; });
  std::vector<double> places(ends.size());
  double free = kLines.top;
  for (const std::size_t i : order) {
    places[i] = std::max(ends[i], free);
    free = places[i] + kNameHeight;
  }
  double lowest = kLines.base();
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    places[*i] = std::min(places[*i], lowest);
    lowest = places[*i] - kNameHeight;
  }
  return places;
}

/// Paths of dots by layer and color: dots of a later layer, and within it of a later color, lie over others.
std::string panel_shapes(std::vector<Dot> dots, double left) {
  std::stable_sort(dots.begin(), dots.end(), [](const Dot& a, const Dot& b) { return a.depth < b.depth; });
  const auto [west, east] = std::minmax_element(dots.begin(), dots.end(), [](auto& a, auto& b) { return a.x < b.x; });
  const auto [low, high] = std::minmax_element(dots.begin(), dots.end(), [](auto& a, auto& b) { return a.y < b.y; });
  const double range = std::max(east->x - west->x, high->y - low->y);
  const double scale = range > 0 ? (kPanel - 2 * kPanelEdge) / range : 0;
  const double middle_x = (west->x + east->x) / 2;
  const double middle_y = (low->y + high->y) / 2;
  const std::size_t layers = dots.front().depth < dots.back().depth ? kLayers : 1;
  std::string shapes = "<g class=\"dots\" stroke-width=\"9\">\n";
  for (std::size_t layer = 0; layer < layers; ++layer) {
    std::map<std::string, std::string> paths;
    for (std::size_t i = dots.size() * layer / layers; i < dots.size() * (layer + 1) / layers; ++i) {
      paths[dots[i].color] += fmt::format("M{:.0f} {:.0f}h0", left + kPanel / 2.0 + (dots[i].x - middle_x) * scale,
                                          kPanelTitle + kPanel / 2.0 - (dots[i].y - middle_y) * scale);
    }
    for (const auto& [color, path] : paths) {
      shapes += fmt::format("<path d=\"{}\" stroke=\"{}\"/>\n", path, color);
    }
  }
  return shapes + "</g>\n";
}

}  // namespace

Drawing draw_lines(const std::vector<Line>& lines, const std::string& label, const std::string& below) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  std::set<double> at;
  for (const Line& line : lines) {
    for (const Point& point : line.points) {
      low = std::min(low, point.y);
      high = std::max(high, point.y);
      at.insert(point.x);
    }
  }
  const std::vector<double> ticks = log_ticks(low, high);
  const auto share = [](double value, double from, double to) {
    return to > from ? std::log(value / from) / std::log(to / from) : 0.5;
  };
  const auto across = [&](double x) { return kLines.across(share(x, *at.begin(), *at.rbegin())); };
  const auto down = [&](double y) { return kLines.down(1 - share(y, ticks.front(), ticks.back())); };
  std::string shapes;
  for (const double tick : ticks) shapes += kLines.level(down(tick), number_text(tick));
  double free = -kTickGap;
  for (const double x : at) {
    if (across(x) - free < kTickGap) continue;  // names of ticks do not touch
    shapes += kLines.tick(across(x), number_text(x, 6));
    free = across(x);
  }
  shapes += kLines.name_below(below);
  std::vector<double> ends;
  ends.reserve(lines.size());
  for (const Line& line : lines) ends.push_back(line.points.empty() ? kLines.top : down(line.points.back().y));
  const std::vector<double> names = name_places(ends);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    std::string path;
    for (const Point& point : line.points) path += fmt::format("{:.1f},{:.1f} ", across(point.x), down(point.y));
    shapes += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", path,
                          line.color, line.dashed ? " stroke-dasharray=\"5 4\"" : "");
    for (const Point& point : line.points) {
      shapes += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {}</title></circle>\n",
                            across(point.x), down(point.y), line.color, number_text(point.x, 6), number_text(point.y));
    }
    shapes += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" style=\"fill:{}\">{}</text>\n", kLines.across(1) + 12,
                          names[i] + 4, line.color, escape(line.name));
  }
  return {kLines.width, kLines.height, label, shapes};
}

Drawing draw_panels(const std::vector<Panel>& panels, const std::string& label) {
  std::string shapes;
  double left = 0;
  for (const Panel& panel : panels) {
    shapes += fmt::format("<text x=\"{:.0f}\" y=\"32\" text-anchor=\"middle\" style=\"font-size:26px\">{}</text>\n",
                          left + kPanel / 2.0, escape(panel.title));
    if (!panel.dots.empty()) shapes += panel_shapes(panel.dots, left);
    left += kPanel + kPanelGap;
  }
  return {left - kPanelGap, kPanelTitle + kPanel, label, shapes};
}

std::string svg_file(const Drawing& drawing) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "role=\"img\" aria-label=\"{2}\">\n<style>{3}\ntext {{ font-family: system-ui, \"Segoe UI\", Roboto, \"DejaVu "
      "Sans\", sans-serif; }}\n{4}</style>\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" style=\"fill:var(--card)\"/>\n"
      "{5}</svg>\n",
      drawing.width, drawing.height, escape(drawing.label), kColors, kDrawn, drawing.shapes);
}

}  // namespace vicinal::cli::report
