// DBSCAN as its inventors wrote it, with every neighborhood, from contract clause 28.
#include <quadmath.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/density.hpp"

namespace vicinal::reference {

Dbscan dbscan(std::span<const double> keys, const DbscanOptions& options) {
  const auto n = static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(keys.size()))));
  std::vector<std::vector<std::size_t>> neighbors(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const bool near = distance_of(options.metric, options.p, keys[i * n + j]) <= options.eps;
      if (i == j || near) neighbors[i].push_back(j);
    }
  }
  Dbscan found;
  for (std::size_t i = 0; i < n; ++i) {
    // 113 bits hold the sums of the tests exactly: small multiples of powers of two.
    __float128 weight = 0;
    for (const std::size_t j : neighbors[i]) weight += options.weights.empty() ? 1 : options.weights[j];
    found.core.push_back(static_cast<double>(weight) >= static_cast<double>(options.min_samples) ? 1 : 0);
  }
  // A cluster grows from its first core row; the first cluster that reaches a row has it.
  found.labels.assign(n, -1);
  for (std::size_t start = 0; start < n; ++start) {
    if (found.core[start] == 0 || found.labels[start] >= 0) continue;
    const std::int64_t cluster = found.clusters++;
    found.labels[start] = cluster;
    std::vector<std::size_t> reached = {start};
    while (!reached.empty()) {
      const std::size_t row = reached.back();
      reached.pop_back();
      if (found.core[row] == 0) continue;
      for (const std::size_t other : neighbors[row]) {
        if (found.labels[other] >= 0) continue;
        found.labels[other] = cluster;
        reached.push_back(other);
      }
    }
  }
  return found;
}

}  // namespace vicinal::reference
