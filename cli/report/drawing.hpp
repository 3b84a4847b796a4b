// A picture that stands by itself, and its two kinds: lines over logarithmic axes, and dots in panels side by side.
#pragma once

#include <string>
#include <vector>

#include "report/projection.hpp"
#include "report/scatter.hpp"

namespace vicinal::cli::report {

struct Drawing {
  double width = 0;
  double height = 0;
  std::string label;  ///< what it shows, for who cannot see it
  std::string shapes;
};

/// One named line; its points have coordinates above 0, in ascending x.
struct Line {
  std::string name;
  std::string color;
  bool dashed = false;
  std::vector<Point> points;
};

struct Panel {
  std::string title;
  std::vector<Dot> dots;  ///< those of larger depth lie over others
};

/// Both axes are logarithmic; `below` names the one of x, whose ticks are the points'. There must be a point.
Drawing draw_lines(const std::vector<Line>& lines, const std::string& label, const std::string& below);
/// Each panel in a scale of its own, the same for both of its axes; y points up. Some 11 bytes a dot.
Drawing draw_panels(const std::vector<Panel>& panels, const std::string& label);

/// A file of its own (.svg): no script, no request to anywhere, light and dark by the reader's setting.
std::string svg_file(const Drawing& drawing);

}  // namespace vicinal::cli::report
