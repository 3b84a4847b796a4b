// See page_parts.hpp.
#include "command/page_parts.hpp"

#include <fmt/core.h>

#include "report/html.hpp"

namespace vicinal::cli {
namespace {

constexpr double kNarrowestChart = 520;   // pixels: below them, charts scroll
constexpr double kNarrowestPanels = 860;  // of panels, whose text is smaller
constexpr double kWidestChart = 1000;     // a drawing beyond it has panels

}  // namespace

std::string chart(const report::Drawing& drawing) {
  const bool panels = drawing.width > kWidestChart;
  return fmt::format(
      "<figure><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"figure\"><div "
      "style=\"min-width:{:.0f}px\">"
      "{}</div></div><figcaption>{}</figcaption></figure>\n",
      panels ? kNarrowestPanels : kNarrowestChart,
      report::svg(drawing.width, drawing.height, drawing.label, drawing.shapes), report::escape(drawing.label));
}

}  // namespace vicinal::cli
