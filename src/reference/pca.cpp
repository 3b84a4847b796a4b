// See pca.hpp.
#include "reference/pca.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "reference/kmeans_problem.hpp"
#include "reference/lle.hpp"

namespace vicinal::reference {

std::vector<std::int64_t> sampled_rows(std::int64_t n, std::int64_t s, std::uint64_t seed) {
  std::set<std::int64_t> taken;
  Draws draws{seed, 0x73696c68U};
  for (std::int64_t j = n - std::min(s, n); j < n; ++j) {
    const auto row = s >= n ? j : static_cast<std::int64_t>(std::floor(draws.next() * static_cast<double>(j + 1)));
    if (!taken.insert(row).second) taken.insert(j);
  }
  return {taken.begin(), taken.end()};
}

std::vector<double> variance_ratios(std::span<const double> rows, std::int64_t d) {
  const auto width = static_cast<std::size_t>(d);
  const std::size_t n = rows.size() / width;
  std::vector<Real> mean(width, 0);
  for (std::size_t i = 0; i < rows.size(); ++i) mean[i % width] += static_cast<Real>(rows[i]) / static_cast<Real>(n);
  std::vector<Real> covariance(width * width, 0);
  Real total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t a = 0; a < width; ++a) {
      const Real x = rows[i * width + a] - mean[a];
      total += x * x;
      for (std::size_t b = 0; b < width; ++b) covariance[a * width + b] += x * (rows[i * width + b] - mean[b]);
    }
  }
  std::vector<double> ratios;
  for (const Real value : lle_problem(covariance).values) {
    ratios.push_back(total > 0 ? static_cast<double>(value / total) : 0);
  }
  std::sort(ratios.rbegin(), ratios.rend());
  return ratios;
}

}  // namespace vicinal::reference
