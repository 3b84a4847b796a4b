// Errors of predicted values (contract clause 21): exact sums, each rounded once.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "core/entry.hpp"
#include "core/exact_sum.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "ops/common/refuse.hpp"
#include "vicinal/metrics.hpp"

namespace vicinal {
namespace {

using Values = std::span<const double>;

void check_finite(core::Poll& poll, Values values, std::int64_t outputs, const char* name) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    poll.step();
    if (std::isfinite(values[i])) continue;
    const auto columns = static_cast<std::size_t>(outputs);
    throw Error(ErrorCode::bad_data,
                fmt::format("{}: row {}, output {} is {}, must be finite", name, i / columns, i % columns, values[i]));
  }
}

/// A sum whose terms and result must be finite.
class Sum {
 public:
  void add(double term) {
    if (std::isfinite(term)) {
      sum_.add(term);
    } else {
      overflows_ = true;
    }
  }
  [[nodiscard]] double rounded(std::size_t output) const {
    const double value = overflows_ ? INFINITY : sum_.rounded();
    if (std::isfinite(value)) return value;
    throw Error(ErrorCode::bad_data,
                fmt::format("truth: the sums of output {} overflow float64; scale the values down", output));
  }

 private:
  core::ExactSum sum_;
  bool overflows_ = false;
};

RegressionScore score_output(core::Poll& poll, Values truth, Values predicted, std::size_t output,
                             std::size_t outputs) {
  Sum squares;
  Sum magnitudes;
  Sum values;
  RegressionScore score;
  for (std::size_t at = output; at < truth.size(); at += outputs) {
    poll.step();
    const double error = predicted[at] - truth[at];
    squares.add(error * error);
    magnitudes.add(std::fabs(error));
    values.add(truth[at]);
    score.max_error = std::max(score.max_error, std::fabs(error));
  }
  const std::size_t count = truth.size() / outputs;
  const auto rows = static_cast<double>(count);
  const double mean = values.rounded(output) / rows;
  Sum deviations;
  for (std::size_t at = output; at < truth.size(); at += outputs) {
    poll.step();
    const double deviation = truth[at] - mean;
    deviations.add(deviation * deviation);
  }
  const double spread = deviations.rounded(output);
  score.root_mean_squared_error = std::sqrt(squares.rounded(output) / rows);
  score.mean_absolute_error = magnitudes.rounded(output) / rows;
  if (spread > 0) score.r2 = 1 - squares.rounded(output) / spread;
  return score;
}

}  // namespace

std::vector<RegressionScore> regression_scores(const Context& ctx, Values truth, Values predicted,
                                               std::int64_t outputs) try {
  const core::Entry entry;
  if (outputs < 1) refuse(fmt::format("outputs: is {}, must be at least 1", outputs));
  if (truth.empty()) refuse("truth: has no rows");
  if (truth.size() % static_cast<std::size_t>(outputs) != 0) {
    refuse(fmt::format("truth: has {} values, no multiple of {} outputs", truth.size(), outputs));
  }
  if (truth.size() != predicted.size()) {
    refuse(fmt::format("predicted: has {} values, but truth has {}", predicted.size(), truth.size()));
  }
  core::require_memory(ctx, static_cast<std::uint64_t>(outputs) * sizeof(RegressionScore), "regression_scores");
  core::Poll poll(ctx);
  check_finite(poll, truth, outputs, "truth");
  check_finite(poll, predicted, outputs, "predicted");
  std::vector<RegressionScore> scores;
  scores.reserve(static_cast<std::size_t>(outputs));
  for (std::size_t o = 0; o < static_cast<std::size_t>(outputs); ++o) {
    scores.push_back(score_output(poll, truth, predicted, o, static_cast<std::size_t>(outputs)));
  }
  return scores;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
