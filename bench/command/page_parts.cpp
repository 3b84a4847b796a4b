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

std::string words(const std::string& text) {
  const auto is_digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool inside = text[i] == ' ' && i > 0 && is_digit(i - 1) && is_digit(i + 1) && is_digit(i + 2) &&
                        is_digit(i + 3) && !is_digit(i + 4);
    made += inside ? report::thin(" ") : std::string(1, text[i]);
  }
  return report::escape(made);
}

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
