// What charts with axes share: the frame of a plot, its levels on the left, its ticks and the axis's name below.
#pragma once

#include <string>
#include <string_view>

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

/// A dot in a color of the style sheet.
std::string chart_dot(double x, double y, int radius, std::string_view style_class);

}  // namespace vicinal::cli::report
