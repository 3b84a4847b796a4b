// Scores of predicted classes (contract clause 21). Everything is counted in whole numbers; quotients are rounded once.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "ops/common/refuse.hpp"
#include "vicinal/metrics.hpp"

namespace vicinal {
namespace {

using Codes = std::span<const std::int32_t>;

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void check_codes(const Context& ctx, Codes truth, Codes predicted, std::int64_t class_count) {
  if (class_count < 1 || class_count > std::numeric_limits<std::int32_t>::max()) {
    refuse(fmt::format("class_count: is {}, must be from 1 to 2^31 - 1", class_count));
  }
  if (truth.empty()) refuse("truth: has no rows");
  if (truth.size() != predicted.size()) {
    refuse(fmt::format("predicted: has {} rows, but truth has {}", predicted.size(), truth.size()));
  }
  core::Poll poll(ctx);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    poll.step();
    if (truth[i] < 0 || truth[i] >= class_count) {
      refuse(fmt::format("truth: row {} has code {}, must be from 0 to {}", i, truth[i], class_count - 1));
    }
    if (predicted[i] < -1 || predicted[i] >= class_count) {
      refuse(fmt::format("predicted: row {} has code {}, must be from -1 to {}", i, predicted[i], class_count - 1));
    }
  }
}

/// Means over the classes: of those that occur, and by their support.
void average_classes(ClassificationScores& scores) {
  std::int64_t occurring = 0;
  for (const ClassScore& one : scores.classes) {
    if (one.support == 0) continue;
    ++occurring;
    const auto support = static_cast<double>(one.support);
    scores.macro.precision += one.precision;
    scores.macro.recall += one.recall;
    scores.macro.f1 += one.f1;
    scores.weighted.precision += support * one.precision;
    scores.weighted.recall += support * one.recall;
    scores.weighted.f1 += support * one.f1;
  }
  for (double PrecisionRecall::*of : {&PrecisionRecall::precision, &PrecisionRecall::recall, &PrecisionRecall::f1}) {
    scores.macro.*of /= static_cast<double>(occurring);
    scores.weighted.*of = std::min(scores.weighted.*of / static_cast<double>(scores.rows), 1.0);
  }
}

/// Cohen's kappa and Matthews' coefficient. Rows without a prediction are of a class of their own, which none has.
void correlate(ClassificationScores& scores) {
  __extension__ using Wide = __int128;
  const Wide rows = scores.rows;
  Wide unpredicted = rows;
  Wide products = 0;
  Wide squares_of_truth = 0;
  Wide squares_of_predicted = 0;
  for (const ClassScore& one : scores.classes) {
    unpredicted -= one.predicted;
    products += Wide{one.support} * one.predicted;
    squares_of_truth += Wide{one.support} * one.support;
    squares_of_predicted += Wide{one.predicted} * one.predicted;
  }
  squares_of_predicted += unpredicted * unpredicted;
  const Wide by_chance = rows * rows - products;
  if (by_chance > 0) {
    const Wide wrong = rows * (rows - scores.correct);
    scores.kappa = 1 - static_cast<double>(wrong) / static_cast<double>(by_chance);
  }
  const auto spread =
      static_cast<double>(rows * rows - squares_of_truth) * static_cast<double>(rows * rows - squares_of_predicted);
  const auto together = static_cast<double>(rows * scores.correct - products);
  if (spread > 0) scores.matthews = std::clamp(together / std::sqrt(spread), -1.0, 1.0);
}

}  // namespace

ClassificationScores classification_scores(const Context& ctx, Codes truth, Codes predicted,
                                           std::int64_t class_count) try {
  const core::Entry entry;
  check_codes(ctx, truth, predicted, class_count);
  core::require_memory(ctx, static_cast<std::uint64_t>(class_count) * sizeof(ClassScore), "classification_scores");
  ClassificationScores scores;
  scores.rows = static_cast<std::int64_t>(truth.size());
  scores.classes.resize(static_cast<std::size_t>(class_count));
  core::Poll poll(ctx);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    poll.step();
    ClassScore& own = scores.classes[static_cast<std::size_t>(truth[i])];
    ++own.support;
    if (predicted[i] < 0) continue;
    ++scores.classes[static_cast<std::size_t>(predicted[i])].predicted;
    if (truth[i] != predicted[i]) continue;
    ++own.correct;
    ++scores.correct;
  }
  scores.accuracy = ratio(scores.correct, scores.rows);
  for (ClassScore& one : scores.classes) {
    poll.step();
    one.precision = ratio(one.correct, one.predicted);
    one.recall = ratio(one.correct, one.support);
    one.f1 = ratio(2 * one.correct, one.support + one.predicted);
  }
  average_classes(scores);
  correlate(scores);
  return scores;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<std::int64_t> confusion_matrix(const Context& ctx, Codes truth, Codes predicted,
                                           std::int64_t class_count) try {
  const core::Entry entry;
  check_codes(ctx, truth, predicted, class_count);
  const auto c = static_cast<std::uint64_t>(class_count);
  // 8 c^2 is below 2^65: where it passes 2^64, so does any limit.
  const bool beyond = c > (std::uint64_t{1} << 30);
  core::require_memory(ctx, beyond ? std::numeric_limits<std::uint64_t>::max() : c * c * sizeof(std::int64_t),
                       "confusion_matrix");
  std::vector<std::int64_t> counts(static_cast<std::size_t>(c * c));
  core::Poll poll(ctx);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    poll.step();
    if (predicted[i] < 0) continue;
    ++counts[static_cast<std::size_t>(truth[i]) * static_cast<std::size_t>(c) + static_cast<std::size_t>(predicted[i])];
  }
  return counts;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
