// Rows as dots on a square, and the colors that reports give to numbers and to kinds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vicinal::cli::report {

struct Dot {
  double x = 0;
  double y = 0;
  double depth = 0;  ///< dots of larger depth lie over others
  std::string color;
};

/// <svg> of the dots, both axes in the same scale; y points up.
std::string scatter_svg(std::vector<Dot> dots, const std::string& label);

/// Of a share of 0 to 1: blue, green, amber, red, none of them too light or too dark for either paper.
std::string ramp_color(double share);
/// Of kinds 0, 1, ..: neighbors in number are far apart in hue; readable on light and on dark paper.
std::string kind_color(std::int64_t kind);

}  // namespace vicinal::cli::report
