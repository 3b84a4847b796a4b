// See scatter.hpp.
#include "report/scatter.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "report/html.hpp"

namespace vicinal::cli::report {
namespace {

constexpr double kSquare = 460;
constexpr double kEdge = 8;

}  // namespace

std::string scatter_svg(std::vector<Dot> dots, const std::string& label) {
  std::stable_sort(dots.begin(), dots.end(), [](const Dot& a, const Dot& b) { return a.depth < b.depth; });
  const auto [left, right] = std::minmax_element(dots.begin(), dots.end(), [](auto& a, auto& b) { return a.x < b.x; });
  const auto [low, high] = std::minmax_element(dots.begin(), dots.end(), [](auto& a, auto& b) { return a.y < b.y; });
  const double middle_x = left->x / 2 + right->x / 2;
  const double middle_y = low->y / 2 + high->y / 2;
  const double range = std::max(right->x / 2 - left->x / 2, high->y / 2 - low->y / 2);
  const double scale = range > 0 ? (kSquare / 2 - kEdge) / range : 0;
  const double radius = dots.size() > 1500 ? 1.8 : 2.6;
  std::string shapes;
  for (const Dot& dot : dots) {
    shapes += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>",
                          kSquare / 2 + (dot.x - middle_x) * scale, kSquare / 2 - (dot.y - middle_y) * scale, radius,
                          dot.color);
  }
  return svg(kSquare, kSquare, label, shapes);
}

std::string ramp_color(double share) {
  constexpr double kStops[][3] = {{59, 101, 190}, {42, 152, 138}, {214, 160, 52}, {200, 76, 60}};
  const double at = std::clamp(share, 0.0, 1.0) * (std::size(kStops) - 1);
  const auto from = std::min(static_cast<std::size_t>(at), std::size(kStops) - 2);
  const double part = at - static_cast<double>(from);
  const auto mixed = [&](int c) {
    return static_cast<int>(std::lround(kStops[from][c] + part * (kStops[from + 1][c] - kStops[from][c])));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(0), mixed(1), mixed(2));
}

std::string kind_color(std::int64_t kind) {
  constexpr const char* kFirst[] = {"#2f7fa3", "#d2694c", "#5b9a5f", "#c99a2e", "#8a6bb1",
                                    "#c2688f", "#4aa5a0", "#8d7b5a", "#6f86c9", "#a3ab34"};
  if (kind < static_cast<std::int64_t>(std::size(kFirst))) return kFirst[kind];
  return fmt::format("hsl({:.0f} {}% {}%)", std::fmod(137.508 * static_cast<double>(kind), 360),
                     kind % 2 == 0 ? 45 : 60, kind % 3 == 0 ? 48 : 56);
}

}  // namespace vicinal::cli::report
