// See papers_bars.hpp.
#include "command/papers_bars.hpp"

#include <algorithm>
#include <cmath>

#include "report/html.hpp"

namespace vicinal::cli {
namespace {

constexpr double kBarsWidth = 560;
constexpr double kNames = 210;  // to the left of the bars
constexpr double kTexts = 90;   // to the right
constexpr double kBarStep = 26;
constexpr double kBarHeight = 16;
constexpr double kShortest = 0.1;

}  // namespace

report::Drawing draw_bars(const std::vector<Bar>& bars, const std::string& label) {
  const auto [least, most] =
      std::minmax_element(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) { return a.value < b.value; });
  const double decades = std::log(most->value / least->value);
  std::string shapes;
  double top = 6;
  for (const Bar& bar : bars) {
    const double share = decades > 0 ? std::log(bar.value / least->value) / decades : 1;
    const double width = (kBarsWidth - kNames - kTexts) * (kShortest + (1 - kShortest) * share);
    shapes += report::svg_text(kNames - 10, top + 12.5, "end", "", bar.name);
    shapes += report::svg_rect(kNames, top, width, kBarHeight, bar.is_paper ? "bad" : "good");
    shapes += report::svg_text(kNames + width + 8, top + 12.5, "start", "soft", bar.text);
    top += kBarStep;
  }
  return {kBarsWidth, top, label, shapes};
}

}  // namespace vicinal::cli
