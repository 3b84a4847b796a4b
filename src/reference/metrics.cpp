// See metrics.hpp.
#include "reference/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "reference/kmeans.hpp"
#include "reference/reference.hpp"

namespace vicinal::reference {
namespace {

__extension__ using Whole = __int128;

double over(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

/// Clause 19.
double ln(double x) {
  int e = std::ilogb(x) + 1;
  double m = std::ldexp(x, -e);
  if (m < std::sqrt(0.5)) {
    m = 2 * m;
    e = e - 1;
  }
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double t = 0;
  for (int i = 11; i > 0; --i) t = (t + 1.0 / (2 * i + 1)) * z;
  return e * 0x1.62e42fefa39efp-1 + (2 * s + ((2 * s) * t + e * 0x1.abc9e3b39803fp-56));
}

/// Positive and all rows with a score of at least t.
std::pair<std::int64_t, std::int64_t> from(std::span<const std::int32_t> truth, std::span<const double> scores,
                                           double t) {
  std::pair<std::int64_t, std::int64_t> found;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (!(scores[i] >= t)) continue;
    found.first += truth[i];
    ++found.second;
  }
  return found;
}

/// Scores that occur, descending.
std::set<double, std::greater<>> levels(std::span<const double> scores) {
  return {scores.begin(), scores.end()};
}

double entropy_times_rows(const std::map<std::int32_t, std::int64_t>& sizes, double n) {
  std::vector<double> terms;
  for (const auto& [label, size] : sizes) {
    terms.push_back(static_cast<double>(size) * ln(n / static_cast<double>(size)));
  }
  return exact_sum(terms);
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
  Whole sq = 0;
  Whole ss = 0;
  Whole qq = 0;
  Whole without = 0;
  for (const ClassScore& one : found.classes) {
    sq += Whole{one.support} * one.predicted;
    ss += Whole{one.support} * one.support;
    qq += Whole{one.predicted} * one.predicted;
  }
  for (const std::int32_t code : predicted) without += code < 0 ? 1 : 0;
  qq += without * without;
  const Whole mm = Whole{found.rows} * found.rows;
  if (mm != sq) {
    found.kappa = 1 - static_cast<double>(mm - Whole{found.rows} * found.correct) / static_cast<double>(mm - sq);
  }
  const double spread = static_cast<double>(mm - ss) * static_cast<double>(mm - qq);
  const double x = static_cast<double>(Whole{found.rows} * found.correct - sq);
  found.matthews = spread > 0 ? std::max(-1.0, std::min(1.0, x / std::sqrt(spread))) : 0;
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

RocCurve roc_curve(std::span<const std::int32_t> truth, std::span<const double> scores, bool drop_intermediate) {
  std::int64_t p = 0;
  for (const std::int32_t one : truth) p += one;
  const auto q = static_cast<std::int64_t>(truth.size()) - p;
  std::vector<std::pair<std::int64_t, std::int64_t>> points;  // positive and negative rows found
  std::vector<double> thresholds;
  for (const double t : levels(scores)) {
    const auto [positives, all] = from(truth, scores, t);
    points.emplace_back(positives, all - positives);
    thresholds.push_back(t == 0 ? 0 : t);
  }
  RocCurve curve{{0}, {0}, {std::numeric_limits<double>::infinity()}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (drop_intermediate && i > 0 && i + 1 < points.size()) {
      const auto& [before, at, after] = std::tie(points[i - 1], points[i], points[i + 1]);
      if (at.first - before.first == after.first - at.first && at.second - before.second == after.second - at.second) {
        continue;
      }
    }
    curve.false_positive_rates.push_back(over(points[i].second, q));
    curve.true_positive_rates.push_back(over(points[i].first, p));
    curve.thresholds.push_back(thresholds[i]);
  }
  return curve;
}

double average_precision_score(std::span<const std::int32_t> truth, std::span<const double> scores) {
  std::vector<double> terms;
  std::int64_t before = 0;
  for (const double t : levels(scores)) {
    const auto [positives, all] = from(truth, scores, t);
    terms.push_back(static_cast<double>(positives - before) * over(positives, all));
    before = positives;
  }
  return exact_sum(terms) / static_cast<double>(before);
}

double precision_at_n_score(std::span<const std::int32_t> truth, std::span<const double> scores, std::int64_t n) {
  if (n == 0) {
    for (const std::int32_t one : truth) n += one;
  }
  std::pair<std::int64_t, std::int64_t> before;
  for (const double t : levels(scores)) {
    const auto at = from(truth, scores, t);
    if (at.second >= n) {
      const std::int64_t g = at.second - before.second;
      const Whole x = Whole{before.first} * g + Whole{n - before.second} * (at.first - before.first);
      return static_cast<double>(x) / (static_cast<double>(g) * static_cast<double>(n));
    }
    before = at;
  }
  return 0;
}

ClusteringScores clustering_scores(const Labeling& truth, const Labeling& predicted) {
  std::map<std::int32_t, std::int64_t> a;
  std::map<std::int32_t, std::int64_t> b;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> cells;
  const std::size_t rows = truth.labels.size();
  for (std::size_t i = 0; i < rows; ++i) {
    ++a[truth.labels[i]];
    ++b[predicted.labels[i]];
    ++cells[{truth.labels[i], predicted.labels[i]}];
  }
  const auto n = static_cast<double>(rows);
  Whole sum_a = 0;
  Whole sum_b = 0;
  Whole sum = 0;
  for (const auto& [label, size] : a) sum_a += Whole{size} * size;
  for (const auto& [label, size] : b) sum_b += Whole{size} * size;
  std::vector<double> terms;
  for (const auto& [labels, size] : cells) {
    sum += Whole{size} * size;
    const auto c = static_cast<double>(size);
    const double by_chance = static_cast<double>(a[labels.first]) * static_cast<double>(b[labels.second]);
    terms.push_back(c * ln(n * c / by_chance));
  }
  const auto tp = static_cast<double>(sum - static_cast<Whole>(rows));
  const auto fp = static_cast<double>(sum_b - sum);
  const auto fn = static_cast<double>(sum_a - sum);
  const auto tn = static_cast<double>(static_cast<Whole>(rows) * static_cast<Whole>(rows) - sum_a - sum_b + sum);
  ClusteringScores found;
  found.adjusted_rand =
      fp == 0 && fn == 0 ? 1 : 2 * (tp * tn - fn * fp) / ((tp + fn) * (fn + tn) + (tp + fp) * (fp + tn));
  const double information = std::max(0.0, exact_sum(terms));
  found.homogeneity = cells.size() == b.size() ? 1 : std::min(1.0, information / entropy_times_rows(a, n));
  found.completeness = cells.size() == a.size() ? 1 : std::min(1.0, information / entropy_times_rows(b, n));
  const double h = found.homogeneity;
  const double c = found.completeness;
  found.v_measure = h + c == 0 ? 0 : 2 * h * c / (h + c);
  found.normalized_mutual_info = found.v_measure;
  return found;
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
