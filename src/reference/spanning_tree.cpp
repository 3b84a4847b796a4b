// Prim's algorithm on the complete graph, from contract clause 27.
#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "reference/density.hpp"
#include "reference/fma.hpp"

namespace vicinal::reference {

namespace {

// "Edges are ordered by (key, smaller row, larger row)."
using Edge = std::tuple<double, std::size_t, std::size_t>;

Edge edge_of(double key, std::size_t i, std::size_t j) {
  return {key, std::min(i, j), std::max(i, j)};
}

// "The divisor is alpha; of euclidean alpha squared, of minkowski alpha to the power p."
double divisor_of(const SpanningTreeOptions& options) {
  const std::array<double, 1> alpha = {options.alpha};
  const std::array<double, 1> zero = {0};
  if (options.metric == Metric::euclidean) return options.alpha * options.alpha;
  if (options.metric == Metric::minkowski) return key(Metric::minkowski, options.p, alpha, zero);
  return options.alpha;
}

}  // namespace

VICINAL_WITH_AND_WITHOUT_FMA
std::vector<double> pair_keys(const TableView& table, Metric metric, double p) {
  const std::vector<double> values = widen(table);
  const auto n = static_cast<std::size_t>(table.rows());
  const auto d = static_cast<std::size_t>(table.cols());
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<const double> row(values.data() + i * d, d);
    rows.push_back(metric == Metric::cosine ? unit_row(row) : std::vector<double>(row.begin(), row.end()));
  }
  std::vector<double> keys(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double k = metric == Metric::cosine ? cosine_of_units(rows[i], rows[j]) : key(metric, p, rows[i], rows[j]);
      keys[i * n + j] = keys[j * n + i] = k;
    }
  }
  return keys;
}

SpanningTree minimum_spanning_tree(std::span<const double> keys, const SpanningTreeOptions& options) {
  const auto n = static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(keys.size()))));
  const auto rank = static_cast<std::size_t>(options.min_samples - (options.count_self ? 1 : 0));
  std::vector<double> core(n, 0);
  for (std::size_t i = 0; i < n && rank > 0; ++i) {
    std::vector<double> others;
    for (std::size_t j = 0; j < n; ++j) {
      if (j != i) others.push_back(keys[i * n + j]);
    }
    std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(rank - 1), others.end());
    core[i] = others[rank - 1];
  }
  const double divisor = divisor_of(options);
  const auto edge_key = [&](std::size_t i, std::size_t j) {
    const double pair = keys[i * n + j] / divisor;
    return rank > 0 ? std::max({core[i], core[j], pair}) : pair;
  };

  std::vector<Edge> edges;
  std::vector<bool> joined(n, false);
  joined[0] = true;
  std::vector<Edge> best(n);  // of each row that is not in the tree, to a row in it
  for (std::size_t j = 1; j < n; ++j) best[j] = edge_of(edge_key(0, j), 0, j);
  while (edges.size() + 1 < n) {
    std::size_t next = n;
    for (std::size_t j = 0; j < n; ++j) {
      if (!joined[j] && (next == n || best[j] < best[next])) next = j;
    }
    joined[next] = true;
    edges.push_back(best[next]);
    for (std::size_t j = 0; j < n; ++j) {
      if (!joined[j]) best[j] = std::min(best[j], edge_of(edge_key(next, j), next, j));
    }
  }
  std::sort(edges.begin(), edges.end());

  SpanningTree tree;
  tree.rows = static_cast<std::int64_t>(n);
  tree.options = options;
  for (const auto& [key, a, b] : edges) {
    tree.a.push_back(static_cast<std::int64_t>(a));
    tree.b.push_back(static_cast<std::int64_t>(b));
    tree.lengths.push_back(distance_of(options.metric, options.p, key));
  }
  for (const double key : core) {
    tree.core_distances.push_back(rank > 0 ? distance_of(options.metric, options.p, key) : 0);
  }
  return tree;
}

}  // namespace vicinal::reference
