// See chart.hpp.
#include "report/chart.hpp"

#include <fmt/core.h>

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

std::string chart_dot(double x, double y, int radius, std::string_view style_class) {
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"{}\"/>", x, y, radius, style_class);
}

}  // namespace vicinal::cli::report
