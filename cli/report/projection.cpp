// See projection.hpp. Up to kBlock columns the block spans everything, and the result is that of Jacobi's method alone;
// beyond, a vector outside of the two components fades by the ratio of the last to the second variance an iteration.
#include "report/projection.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/philox.hpp"

namespace vicinal::cli::report {
namespace {

constexpr std::size_t kBlock = 8;
constexpr int kMostIterations = 60;
constexpr int kSweeps = 30;
constexpr double kSettled = 1e-9;

using Vectors = std::vector<std::vector<double>>;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Gram and Schmidt, twice, so that what the first pass leaves of the others goes too. Vectors that vanish become zero.
void make_orthonormal(Vectors& vectors) {
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const double before = std::sqrt(dot(vectors[i], vectors[i]));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < i; ++j) {
        const double along = dot(vectors[i], vectors[j]);
        for (std::size_t c = 0; c < vectors[i].size(); ++c) vectors[i][c] -= along * vectors[j][c];
      }
    }
    const double length = std::sqrt(dot(vectors[i], vectors[i]));
    for (double& value : vectors[i]) value = length > 1e-12 * before ? value / length : 0;
  }
}

/// Eigenvalues in descending order with their vectors, of a symmetric matrix, by Jacobi's rotations.
std::vector<std::pair<double, std::vector<double>>> eigen(Vectors a) {
  const std::size_t b = a.size();
  Vectors v(b, std::vector<double>(b, 0));
  for (std::size_t i = 0; i < b; ++i) v[i][i] = 1;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t p = 0; p < b; ++p) {
      for (std::size_t q = p + 1; q < b; ++q) {
        if (a[p][q] == 0) continue;
        const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = (theta >= 0 ? 1 : -1) / (std::fabs(theta) + std::hypot(theta, 1.0));
        const double c = 1 / std::hypot(t, 1.0);
        const double s = t * c;
        for (std::size_t i = 0; i < b; ++i) {
          std::tie(a[i][p], a[i][q]) = std::pair(c * a[i][p] - s * a[i][q], s * a[i][p] + c * a[i][q]);
        }
        for (std::size_t i = 0; i < b; ++i) {
          std::tie(a[p][i], a[q][i]) = std::pair(c * a[p][i] - s * a[q][i], s * a[p][i] + c * a[q][i]);
          std::tie(v[p][i], v[q][i]) = std::pair(c * v[p][i] - s * v[q][i], s * v[p][i] + c * v[q][i]);
        }
        a[p][q] = a[q][p] = 0;
      }
    }
  }
  std::vector<std::pair<double, std::vector<double>>> found;
  for (std::size_t i = 0; i < b; ++i) found.emplace_back(a[i][i], v[i]);
  std::stable_sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  return found;
}

/// The sample's rows less their mean, over the largest deviation.
struct Centred {
  std::vector<double> values;  // [s, d]
  std::vector<double> mean;
  std::size_t s;
  std::size_t d;
  double scale = 0;  // 0 where all rows are equal

  explicit Centred(const Sample& sample)
      : values(sample.rows),
        mean(static_cast<std::size_t>(sample.cols), 0),
        s(static_cast<std::size_t>(sample.size())),
        d(static_cast<std::size_t>(sample.cols)) {
    for (std::size_t i = 0; i < s * d; ++i) mean[i % d] += values[i] / static_cast<double>(s);
    for (std::size_t i = 0; i < s * d; ++i) scale = std::max(scale, std::fabs(values[i] - mean[i % d]));
    for (std::size_t i = 0; i < s * d; ++i) values[i] = at(values[i], i % d);
  }
  [[nodiscard]] double at(double value, std::size_t column) const {
    return scale > 0 ? (value - mean[column]) / scale : 0;
  }
  /// The covariance times s times each vector.
  [[nodiscard]] Vectors times(const Vectors& vectors) const {
    Vectors product(vectors.size(), std::vector<double>(d, 0));
    for (std::size_t i = 0; i < s; ++i) {
      const double* const row = values.data() + i * d;
      for (std::size_t b = 0; b < vectors.size(); ++b) {
        const double along = std::inner_product(row, row + d, vectors[b].begin(), 0.0);
        for (std::size_t c = 0; c < d; ++c) product[b][c] += along * row[c];
      }
    }
    return product;
  }
};

}  // namespace

Corners corners_of(const Projection& projection) {
  Corners all = {projection.rows[0], projection.rows[0]};
  for (const auto* points : {&projection.rows, &projection.centres}) {
    for (const Point& point : *points) {
      all.low = {std::min(all.low.x, point.x), std::min(all.low.y, point.y)};
      all.high = {std::max(all.high.x, point.x), std::max(all.high.y, point.y)};
    }
  }
  return all;
}

Projection project(const Sample& sample, std::span<const double> centres) {
  const Centred rows(sample);
  Vectors vectors(std::min(kBlock, rows.d), std::vector<double>(rows.d));
  for (std::size_t b = 0; b < vectors.size(); ++b) {
    for (std::size_t c = 0; c < rows.d; ++c) vectors[b][c] = core::philox_uniform(0, b, c) - 0.5;
  }
  make_orthonormal(vectors);
  double variances[2] = {};
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    const Vectors product = rows.times(vectors);
    Vectors small(vectors.size(), std::vector<double>(vectors.size()));
    for (std::size_t i = 0; i < small.size(); ++i) {
      for (std::size_t j = 0; j < small.size(); ++j)
        small[i][j] = (dot(vectors[i], product[j]) + dot(vectors[j], product[i])) / 2;
    }
    const auto found = eigen(small);
    const double before[2] = {variances[0], variances[1]};
    for (std::size_t i = 0; i < std::min<std::size_t>(2, found.size()); ++i) variances[i] = found[i].first;
    // The best of what the vectors span, and, for the next iteration, what the covariance makes of it.
    const bool settled = std::fabs(variances[0] - before[0]) <= kSettled * variances[0] &&
                         std::fabs(variances[1] - before[1]) <= kSettled * variances[0];
    const bool last = settled || iteration + 1 == kMostIterations;
    const Vectors& from = last ? vectors : product;
    Vectors turned(vectors.size(), std::vector<double>(rows.d, 0));
    for (std::size_t i = 0; i < turned.size(); ++i) {
      for (std::size_t j = 0; j < turned.size(); ++j) {
        for (std::size_t c = 0; c < rows.d; ++c) turned[i][c] += found[i].second[j] * from[j][c];
      }
    }
    vectors = std::move(turned);
    if (last) break;
    make_orthonormal(vectors);
  }
  if (vectors.size() == 1) vectors.emplace_back(rows.d, 0);
  double total = 0;
  for (const double value : rows.values) total += value * value;
  for (std::size_t i = 0; i < 2; ++i) {
    // A component has two directions: the one in which its largest element is positive.
    const auto largest = std::max_element(vectors[i].begin(), vectors[i].end(),
                                          [](double x, double y) { return std::fabs(x) < std::fabs(y); });
    if (*largest < 0) {
      for (double& value : vectors[i]) value = -value;
    }
  }
  Projection projection;
  for (std::size_t i = 0; i < 2; ++i) projection.share[i] = total > 0 ? variances[i] / total : 0;
  for (std::size_t i = 0; i < rows.s; ++i) {
    const double* const row = rows.values.data() + i * rows.d;
    const auto along = [&](std::size_t v) { return std::inner_product(row, row + rows.d, vectors[v].begin(), 0.0); };
    projection.rows.push_back({along(0), along(1)});
  }
  for (std::size_t i = 0; i + rows.d <= centres.size(); i += rows.d) {
    Point point;
    for (std::size_t c = 0; c < rows.d; ++c) {
      const double value = rows.at(centres[i + c], c);
      point.x += value * vectors[0][c];
      point.y += value * vectors[1][c];
    }
    projection.centres.push_back(point);
  }
  return projection;
}

}  // namespace vicinal::cli::report
