// A picture of named bars, over a logarithmic scale: what a paper reports beside what was measured here.
#pragma once

#include <string>
#include <vector>

#include "report/drawing.hpp"

namespace vicinal::cli {

struct Bar {
  std::string name;
  double value = 0;  ///< above 0
  std::string text;  ///< at the bar's end: the value and its unit
  bool is_paper = false;
};

/// There must be a bar. The shortest has a tenth of the width of the longest.
report::Drawing draw_bars(const std::vector<Bar>& bars, const std::string& label);

}  // namespace vicinal::cli
