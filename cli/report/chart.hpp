// What charts with axes share: the frame of a plot, its levels on the left, its ticks and the axis's name below.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vicinal::cli::report {

/// A picture of width x height; what is drawn of values lies within the margins.
struct ChartFrame {
  double width = 0;
  double height = 0;
  double top = 0;
  double bottom = 0;
  double left = 0;
  double right = 0;

  [[nodiscard]] double plot_width() const { return width - left - right; }
  [[nodiscard]] double plot_height() const { return height - top - bottom; }
  /// Of shares of the plot: from its left, and from its top.
  [[nodiscard]] double across(double share) const { return left + share * plot_width(); }
  [[nodiscard]] double down(double share) const { return top + share * plot_height(); }
  /// The plot's lower edge.
  [[nodiscard]] double base() const { return top + plot_height(); }

  /// A line across the plot, named on its left.
  [[nodiscard]] std::string level(double y, std::string_view text, double gap = 8) const;
  /// The name of a place below the plot.
  [[nodiscard]] std::string tick(double x, std::string_view text, std::string_view anchor = "middle") const;
  /// What the axis below means.
  [[nodiscard]] std::string name_below(std::string_view text) const;
  /// A dashed line from `above` the plot to its lower edge.
  [[nodiscard]] std::string upright(double x, double above) const;
};

/// 1, 2 or 5 times a power of ten, so that about `count` of them cover the range, which is above 0.
double round_step(double range, double count);
/// Multiples of a round step from `low` to `high`, about `count` of them; whole ones where `whole`.
std::vector<double> round_ticks(double low, double high, double count, bool whole = false);
/// 1, 2 and 5 times powers of ten from below `least` to above `most`; powers alone where that were too many.
std::vector<double> log_ticks(double least, double most);

/// A dot in a color of the style sheet.
std::string chart_dot(double x, double y, int radius, std::string_view style_class);

}  // namespace vicinal::cli::report
