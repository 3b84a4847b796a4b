// See spectrum.hpp.
#include "report/spectrum.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "report/chart.hpp"
#include "report/html.hpp"

namespace vicinal::cli::report {
namespace {

constexpr ChartFrame kSpectrumFrame = {480, 320, 26, 44, 62, 16};
constexpr std::size_t kMaxNamed = 8;
constexpr int kMaxTicks = 7;

}  // namespace

std::string spectrum_svg(const LlePiece& piece) {
  std::vector<double> values;
  for (const double value : piece.singular_values) values.push_back(value * value);
  values.push_back(piece.next_singular_value * piece.next_singular_value);
  double least = HUGE_VAL;
  double most = 0;
  for (const double value : values) {
    if (value > 0) least = std::min(least, value);
    most = std::max(most, value);
  }
  if (!(most > 0)) return "<p class=\"note\">All of them are 0.</p>\n";
  const int low = static_cast<int>(std::floor(std::log10(least))) - 1;
  const int high = std::max(low + 2, static_cast<int>(std::ceil(std::log10(most))));
  const auto down = [&](double log) { return kSpectrumFrame.down((high - log) / (high - low)); };
  std::string shapes;
  const int step = (high - low + kMaxTicks - 1) / kMaxTicks;
  for (int decade = low; decade <= high; decade += step) {
    shapes += kSpectrumFrame.level(down(decade), fmt::format("1e{}", decade));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool next = i + 1 == values.size();
    const double x = kSpectrumFrame.across((static_cast<double>(i) + 0.5) / static_cast<double>(values.size()));
    const double y = values[i] > 0 ? down(std::log10(values[i])) : down(low);
    const char* const style = next ? "soft" : "good";
    shapes += svg_rect(x - 1, y, 2, down(low) - y, style);
    shapes += chart_dot(x, y, 5, style);
    if (values.size() > kMaxNamed) continue;
    shapes += svg_text(x, y - 12, "middle", next ? "soft" : "strong", fmt::format("{:.2e}", values[i]));
    shapes += kSpectrumFrame.tick(x, next ? "next" : fmt::format("{}", i));
  }
  shapes += kSpectrumFrame.name_below("column");
  return svg(kSpectrumFrame.width, kSpectrumFrame.height, "Eigenvalues of the columns, and the next one", shapes);
}

}  // namespace vicinal::cli::report
