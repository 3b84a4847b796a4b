// See metrics.hpp.
#include "reference/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/kmeans.hpp"
#include "reference/reference.hpp"

namespace vicinal::reference {
namespace {

double over(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

}  // namespace

ClassificationScores classification_scores(std::span<const std::int32_t> truth, std::span<const std::int32_t> predicted,
                                           std::int64_t class_count) {
  ClassificationScores found;
  found.rows = static_cast<std::int64_t>(truth.size());
  std::int64_t occurring = 0;
  for (std::int64_t c = 0; c < class_count; ++c) {
    ClassScore one;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      one.support += truth[i] == c ? 1 : 0;
      one.predicted += predicted[i] == c ? 1 : 0;
      one.correct += truth[i] == c && predicted[i] == c ? 1 : 0;
    }
    one.precision = over(one.correct, one.predicted);
    one.recall = over(one.correct, one.support);
    one.f1 = over(2 * one.correct, one.support + one.predicted);
    found.correct += one.correct;
    found.classes.push_back(one);
    if (one.support == 0) continue;
    ++occurring;
    const auto s = static_cast<double>(one.support);
    found.macro = {found.macro.precision + one.precision, found.macro.recall + one.recall, found.macro.f1 + one.f1};
    found.weighted = {found.weighted.precision + s * one.precision, found.weighted.recall + s * one.recall,
                      found.weighted.f1 + s * one.f1};
  }
  const auto m = static_cast<double>(found.rows);
  const auto k = static_cast<double>(occurring);
  found.accuracy = over(found.correct, found.rows);
  found.macro = {found.macro.precision / k, found.macro.recall / k, found.macro.f1 / k};
  found.weighted = {std::min(1.0, found.weighted.precision / m), std::min(1.0, found.weighted.recall / m),
                    std::min(1.0, found.weighted.f1 / m)};
  return found;
}

std::vector<std::int64_t> confusion_matrix(std::span<const std::int32_t> truth, std::span<const std::int32_t> predicted,
                                           std::int64_t class_count) {
  std::vector<std::int64_t> counts;
  for (std::int64_t i = 0; i < class_count; ++i) {
    for (std::int64_t j = 0; j < class_count; ++j) {
      std::int64_t count = 0;
      for (std::size_t row = 0; row < truth.size(); ++row) count += truth[row] == i && predicted[row] == j ? 1 : 0;
      counts.push_back(count);
    }
  }
  return counts;
}

double roc_auc_score(std::span<const std::int32_t> truth, std::span<const double> scores) {
  std::int64_t twice = 0;
  std::int64_t positives = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (truth[i] == 0) continue;
    ++positives;
    for (std::size_t j = 0; j < truth.size(); ++j) {
      if (truth[j] == 0) twice += scores[i] > scores[j] ? 2 : scores[i] == scores[j] ? 1 : 0;
    }
  }
  const auto p = static_cast<double>(positives);
  const auto q = static_cast<double>(static_cast<std::int64_t>(truth.size()) - positives);
  return static_cast<double>(twice) / 2 / (p * q);
}

RegressionScore regression_score(std::span<const double> truth, std::span<const double> predicted) {
  const auto m = static_cast<double>(truth.size());
  std::vector<double> squares;
  std::vector<double> sizes;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double e = predicted[i] - truth[i];
    squares.push_back(e * e);
    sizes.push_back(std::fabs(e));
  }
  const double mean = exact_sum(truth) / m;
  std::vector<double> deviations;
  for (const double t : truth) deviations.push_back((t - mean) * (t - mean));
  RegressionScore found;
  found.root_mean_squared_error = std::sqrt(exact_sum(squares) / m);
  found.mean_absolute_error = exact_sum(sizes) / m;
  found.max_error = *std::max_element(sizes.begin(), sizes.end());
  if (exact_sum(deviations) > 0) found.r2 = 1 - exact_sum(squares) / exact_sum(deviations);
  return found;
}

SilhouetteScores silhouette_scores(const TableView& table, const Labeling& labeling, const SilhouetteOptions& options) {
  const auto n = static_cast<std::size_t>(table.rows());
  const auto k = static_cast<std::size_t>(labeling.clusters);
  const Ranking ranking = rank(table, table, {.metric = options.metric, .p = options.p});
  SilhouetteScores found;
  found.sizes.assign(k, 0);
  found.clusters.assign(k, 0);
  for (const std::int32_t label : labeling.labels) ++found.sizes[static_cast<std::size_t>(label)];
  double total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> distances(n);
    for (const Candidate& one : ranking[i]) distances[static_cast<std::size_t>(one.id)] = one.distance;
    std::vector<double> sums(k, 0);
    for (std::size_t j = 0; j < n; ++j) {
      if (j != i) sums[static_cast<std::size_t>(labeling.labels[j])] += distances[j];
    }
    const auto own = static_cast<std::size_t>(labeling.labels[i]);
    double b = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < k; ++c) {
      if (c != own && found.sizes[c] > 0) b = std::min(b, sums[c] / static_cast<double>(found.sizes[c]));
    }
    double silhouette = 0;
    if (found.sizes[own] > 1 && std::isfinite(b)) {
      const double a = sums[own] / static_cast<double>(found.sizes[own] - 1);
      if (std::max(a, b) > 0) silhouette = (b - a) / std::max(a, b);
    }
    found.samples.push_back(silhouette);
    found.clusters[own] += silhouette;
    total += silhouette;
  }
  std::int64_t present = 0;
  for (std::size_t c = 0; c < k; ++c) {
    if (found.sizes[c] == 0) continue;
    ++present;
    found.clusters[c] /= static_cast<double>(found.sizes[c]);
  }
  if (present > 1) found.mean = total / static_cast<double>(n);
  return found;
}

}  // namespace vicinal::reference
