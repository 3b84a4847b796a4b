// Validity as contract clause 21 says it: all pairs of rows, and the spanning tree by joining sets.
#include <quadmath.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "reference/density.hpp"

namespace vicinal::reference {

namespace {

double raised(double t, double p) {
  return static_cast<double>(powq(t, p));
}

}  // namespace

Validity validity(std::span<const double> keys, std::int64_t cols, std::span<const std::int64_t> labels,
                  const ValidityOptions& options) {
  const std::size_t n = labels.size();
  const auto distance = [&](std::size_t a, std::size_t b) {
    return distance_of(options.metric, options.p, keys[a * n + b]);
  };
  const auto clusters = static_cast<std::size_t>(*std::max_element(labels.begin(), labels.end()) + 1);
  Validity found;
  std::vector<std::vector<std::size_t>> members(clusters);
  for (std::size_t row = 0; row < n; ++row) {
    if (labels[row] >= 0) members[static_cast<std::size_t>(labels[row])].push_back(row);
  }
  std::vector<double> core(n, 0);
  std::vector<std::vector<std::size_t>> inner(clusters);
  for (std::size_t c = 0; c < clusters; ++c) {
    const std::vector<std::size_t>& rows = members[c];
    found.sizes.push_back(std::ssize(rows));
    found.sparseness.push_back(0);
    if (rows.size() < 2) continue;
    for (const std::size_t row : rows) {
      double least = kInfinite;
      for (const std::size_t other : rows) {
        if (other != row && distance(row, other) > 0) least = std::min(least, distance(row, other));
      }
      double sum = 0;
      for (const std::size_t other : rows) {
        if (other != row && distance(row, other) > 0) {
          sum += raised(least / distance(row, other), static_cast<double>(cols));
        }
      }
      if (sum == 0) continue;
      const double ratio = static_cast<double>(rows.size() - 1) / sum;
      core[row] = least * raised(ratio, 1 / static_cast<double>(cols));
    }
    std::vector<std::tuple<double, double, std::size_t, std::size_t>> edges;
    for (const std::size_t a : rows) {
      for (const std::size_t b : rows) {
        if (a < b) edges.emplace_back(std::max({core[a], core[b], distance(a, b)}), distance(a, b), a, b);
      }
    }
    std::sort(edges.begin(), edges.end());
    std::vector<std::size_t> part(n);
    for (const std::size_t row : rows) part[row] = row;
    std::vector<std::size_t> degree(n, 0);
    std::vector<std::tuple<double, double, std::size_t, std::size_t>> tree;
    for (const auto& edge : edges) {
      const std::size_t a = std::get<2>(edge);
      const std::size_t b = std::get<3>(edge);
      const std::size_t old = part[b];
      if (part[a] == old) continue;
      for (const std::size_t row : rows) {
        if (part[row] == old) part[row] = part[a];
      }
      tree.push_back(edge);
      ++degree[a];
      ++degree[b];
    }
    double all = 0;
    double within = -1;
    for (const auto& [weight, length, a, b] : tree) {
      all = std::max(all, weight);
      if (degree[a] > 1 && degree[b] > 1) within = std::max(within, weight);
    }
    found.sparseness.back() = within < 0 ? all : within;
    for (const std::size_t row : rows) {
      if (degree[row] > 1 || rows.size() == 2) inner[c].push_back(row);
    }
  }
  __float128 sum = 0;
  std::int64_t rated = 0;
  for (std::size_t c = 0; c < clusters; ++c) {
    double separation = kInfinite;
    for (std::size_t other = 0; other < clusters; ++other) {
      if (other == c) continue;
      for (const std::size_t a : inner[c]) {
        for (const std::size_t b : inner[other]) {
          separation = std::min(separation, std::max({core[a], core[b], distance(a, b)}));
        }
      }
    }
    found.separations.push_back(separation);
    const double larger = std::max(separation, found.sparseness[c]);
    const bool is_rated = members[c].size() > 1;
    rated += is_rated ? 1 : 0;
    found.clusters.push_back(
        is_rated && std::isfinite(larger) && larger > 0 ? (separation - found.sparseness[c]) / larger : 0);
    const double product = static_cast<double>(members[c].size()) * found.clusters.back();
    sum += product;
  }
  if (rated > 1) found.index = static_cast<double>(sum) / static_cast<double>(n);
  return found;
}

}  // namespace vicinal::reference
