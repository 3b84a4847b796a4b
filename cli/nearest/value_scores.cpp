// See value_scores.hpp.
#include "nearest/value_scores.hpp"

#include <algorithm>
#include <cmath>

#include "core/exact_sum.hpp"

namespace vicinal::cli {

std::vector<ValueScore> score_values(std::span<const double> truth, std::span<const double> found,
                                     const std::vector<std::string>& names) {
  std::vector<ValueScore> scores;
  const std::size_t outputs = names.size();
  const std::size_t rows = truth.size() / outputs;
  const auto m = static_cast<double>(rows);
  for (std::size_t o = 0; o < outputs; ++o) {
    ValueScore one;
    one.name = names[o];
    core::ExactSum squares;
    core::ExactSum sizes;
    core::ExactSum values;
    core::ExactSum deviations;
    const auto add = [](core::ExactSum& sum, double x) {
      if (std::isfinite(x)) sum.add(x);
    };
    for (std::size_t i = 0; i < rows; ++i) {
      const double error = found[i * outputs + o] - truth[i * outputs + o];
      add(squares, error * error);
      add(sizes, std::fabs(error));
      add(values, truth[i * outputs + o]);
      one.largest = std::max(one.largest, std::fabs(error));
    }
    const double mean = values.rounded() / m;
    for (std::size_t i = 0; i < rows; ++i) {
      const double deviation = truth[i * outputs + o] - mean;
      add(deviations, deviation * deviation);
    }
    one.root_mean_square = std::sqrt(squares.rounded() / m);
    one.mean_size = sizes.rounded() / m;
    one.r2 = deviations.rounded() > 0 ? 1 - squares.rounded() / deviations.rounded() : NAN;
    scores.push_back(one);
  }
  return scores;
}

}  // namespace vicinal::cli
