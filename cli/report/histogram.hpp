// How often a value comes, as bars.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace vicinal::cli::report {

struct Histogram {
  std::string svg;            ///< empty where no value is finite
  bool logarithmic = false;   ///< the axis of the values
  std::int64_t infinite = 0;  ///< values that it leaves out
  std::int64_t zeros = 0;     ///< values at 0 or below that a logarithmic axis puts into its first bar
};

/// Of the finite values, those above `threshold` (which may be infinite) in another color. The axis is logarithmic
/// where the values above 0 range over more than a factor of 30; heights always are. Where all values are whole
/// numbers, bars begin and end at whole numbers, and where they are counts that range over more than 1,000, the axis is
/// the logarithm of 1 + value, so that 0 has a place. O(n log n).
Histogram histogram(std::span<const double> values, double threshold, const std::string& label,
                    const std::string& below);

}  // namespace vicinal::cli::report
