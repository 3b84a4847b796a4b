// How good predicted numbers are: errors, and the share of the variance that they explain.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace vicinal::cli {

/// Of one target.
struct ValueScore {
  std::string name;
  double root_mean_square = 0;  ///< of the errors
  double mean_size = 0;         ///< mean of their magnitudes
  double largest = 0;           ///< of these
  double r2 = 0;                ///< 1 - sum of squared errors over that of deviations from the mean; NaN for one value
};

/// `truth` and `found` are [m, names]. Sums are exact, each rounded once. O(m names).
std::vector<ValueScore> score_values(std::span<const double> truth, std::span<const double> found,
                                     const std::vector<std::string>& names);

}  // namespace vicinal::cli
