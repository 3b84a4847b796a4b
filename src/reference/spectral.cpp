// See spectral.hpp.
#include "reference/spectral.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

namespace vicinal::reference {

std::vector<double> singular_values(const BipartiteEdges& edges) {
  const auto n = static_cast<std::size_t>(edges.n_a());
  const auto m = static_cast<std::size_t>(edges.n_b());
  std::vector<std::vector<double>> columns(m, std::vector<double>(n));
  std::vector<double> rows_sum(n);
  std::vector<double> columns_sum(m);
  for (std::int64_t e = 0; e < edges.size(); ++e) {
    const double weight = edges.weights().empty() ? 1 : edges.weights()[static_cast<std::size_t>(e)];
    columns.at(static_cast<std::size_t>(edges.b(e))).at(static_cast<std::size_t>(edges.a(e))) += weight;
    rows_sum.at(static_cast<std::size_t>(edges.a(e))) += weight;
    columns_sum.at(static_cast<std::size_t>(edges.b(e))) += weight;
  }
  for (std::size_t j = 0; j < m; ++j) {
    for (std::size_t i = 0; i < n; ++i) {
      if (columns[j][i] > 0) columns[j][i] /= std::sqrt(rows_sum[i] * columns_sum[j]);
    }
  }
  for (int sweep = 0; sweep < 40; ++sweep) {
    for (std::size_t p = 0; p < m; ++p) {
      for (std::size_t q = p + 1; q < m; ++q) {
        double pp = 0;
        double qq = 0;
        double pq = 0;
        for (std::size_t i = 0; i < n; ++i) {
          pp += columns[p][i] * columns[p][i];
          qq += columns[q][i] * columns[q][i];
          pq += columns[p][i] * columns[q][i];
        }
        if (pq == 0) continue;
        const double angle = 0.5 * std::atan2(2 * pq, pp - qq);
        for (std::size_t i = 0; i < n; ++i) {
          const double x = columns[p][i];
          const double y = columns[q][i];
          columns[p][i] = std::cos(angle) * x + std::sin(angle) * y;
          columns[q][i] = std::cos(angle) * y - std::sin(angle) * x;
        }
      }
    }
  }
  std::vector<double> lengths;
  for (const std::vector<double>& column : columns) {
    double sum = 0;
    for (const double x : column) sum += x * x;
    lengths.push_back(std::sqrt(sum));
  }
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  lengths.resize(std::min(n, m));
  return lengths;
}

}  // namespace vicinal::reference
