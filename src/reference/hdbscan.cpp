// HDBSCAN as contract clause 29 says it: edges are taken out of the tree one after the other, and each time the parts
// of the component are looked up.
#include <quadmath.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "reference/density.hpp"

namespace vicinal::reference {

namespace {

double lambda(double distance) {
  return distance == 0 ? kInfinite : 1 / distance;
}

struct Cluster {
  std::int64_t parent = -1;
  double birth = kInfinite;
  std::vector<std::int64_t> rows;       // at its birth
  std::vector<std::int64_t> children;   // none or two
  std::map<std::int64_t, double> left;  // rows that leave it, and when
};

// The rows that the first `edges` edges of the tree join to a row, ascending.
std::vector<std::int64_t> component(const SpanningTree& tree, std::size_t edges, std::int64_t row) {
  std::set<std::int64_t> found = {row};
  for (bool grows = true; grows;) {
    grows = false;
    for (std::size_t e = 0; e < edges; ++e) {
      if (found.count(tree.a[e]) == found.count(tree.b[e])) continue;
      found.insert(tree.a[e]);
      found.insert(tree.b[e]);
      grows = true;
    }
  }
  return {found.begin(), found.end()};
}

std::vector<Cluster> condense(const SpanningTree& tree, std::int64_t min_cluster_size) {
  std::vector<Cluster> clusters(1);
  std::vector<std::int64_t> within(static_cast<std::size_t>(tree.rows), 0);  // -1: the row has left its last cluster
  for (std::int64_t row = 0; row < tree.rows; ++row) clusters[0].rows.push_back(row);
  for (std::size_t edge = tree.a.size(); edge-- > 0;) {
    const std::int64_t cluster = within[static_cast<std::size_t>(tree.a[edge])];
    if (cluster < 0) continue;
    std::vector<std::vector<std::int64_t>> parts = {component(tree, edge, tree.a[edge]),
                                                    component(tree, edge, tree.b[edge])};
    std::sort(parts.begin(), parts.end());  // the one with the smallest row first
    const auto is_large = [&](const auto& part) { return std::ssize(part) >= min_cluster_size; };
    const bool divides = is_large(parts[0]) && is_large(parts[1]);
    for (const auto& part : parts) {
      if (divides) {
        const auto number = static_cast<std::int64_t>(clusters.size());
        clusters[static_cast<std::size_t>(cluster)].children.push_back(number);
        clusters.push_back({cluster, tree.lengths[edge], part, {}, {}});
        for (const std::int64_t row : part) within[static_cast<std::size_t>(row)] = number;
      } else if (!is_large(part)) {
        for (const std::int64_t row : part) {
          clusters[static_cast<std::size_t>(cluster)].left[row] = tree.lengths[edge];
          within[static_cast<std::size_t>(row)] = -1;
        }
      }
    }
  }
  return clusters;
}

double stability(const std::vector<Cluster>& clusters, const Cluster& cluster) {
  __float128 sum = 0;
  const auto leave = [&](double distance, std::size_t size) {
    if (lambda(distance) == lambda(cluster.birth)) return;
    const double mass = (lambda(distance) - lambda(cluster.birth)) * static_cast<double>(size);
    sum += mass;
  };
  for (const auto& [row, distance] : cluster.left) leave(distance, 1);
  for (const std::int64_t child : cluster.children) {
    leave(clusters[static_cast<std::size_t>(child)].birth, clusters[static_cast<std::size_t>(child)].rows.size());
  }
  return static_cast<double>(sum);
}

bool is_within(const std::vector<Cluster>& clusters, std::int64_t cluster, std::int64_t other) {
  while (cluster >= 0 && cluster != other) cluster = clusters[static_cast<std::size_t>(cluster)].parent;
  return cluster == other;
}

// Of clusters within each other the outermost.
std::set<std::int64_t> outermost(const std::vector<Cluster>& clusters, const std::set<std::int64_t>& chosen) {
  std::set<std::int64_t> kept;
  for (const std::int64_t cluster : chosen) {
    const bool is_covered = std::any_of(chosen.begin(), chosen.end(), [&](std::int64_t other) {
      return other != cluster && is_within(clusters, cluster, other);
    });
    if (!is_covered) kept.insert(cluster);
  }
  return kept;
}

// The best sum of stabilities within a cluster; those that make it go to `chosen`.
double choose(const std::vector<Cluster>& clusters, const HdbscanOptions& options, std::int64_t number,
              std::set<std::int64_t>& chosen) {
  const Cluster& cluster = clusters[static_cast<std::size_t>(number)];
  double within = 0;
  std::set<std::int64_t> parts;
  for (const std::int64_t child : cluster.children) within += choose(clusters, options, child, parts);
  const double own = stability(clusters, cluster);
  const bool is_too_large = options.max_cluster_size > 0 && std::ssize(cluster.rows) > options.max_cluster_size;
  if (within > own || is_too_large || (number == 0 && !options.allow_single_cluster)) {
    chosen.insert(parts.begin(), parts.end());
    return within;
  }
  chosen.insert(number);
  return own;
}

std::set<std::int64_t> chosen_clusters(const std::vector<Cluster>& clusters, const HdbscanOptions& options) {
  std::set<std::int64_t> chosen;
  if (options.selection == ClusterSelection::leaves) {
    for (std::size_t c = 1; c < clusters.size(); ++c) {
      if (clusters[c].children.empty()) chosen.insert(static_cast<std::int64_t>(c));
    }
  } else {
    choose(clusters, options, 0, chosen);
  }
  if (options.epsilon == 0 || chosen.count(0) != 0) return chosen;
  std::set<std::int64_t> wider;
  for (std::int64_t cluster : chosen) {
    while (clusters[static_cast<std::size_t>(cluster)].birth < options.epsilon) {
      const std::int64_t parent = clusters[static_cast<std::size_t>(cluster)].parent;
      if (parent == 0 && !options.allow_single_cluster) break;
      cluster = parent;
    }
    wider.insert(cluster);
  }
  return outermost(clusters, wider);
}

// The largest lambda with which something leaves a cluster; with its parts where those count.
double death(const std::vector<Cluster>& clusters, std::int64_t number, bool with_parts) {
  const Cluster& cluster = clusters[static_cast<std::size_t>(number)];
  double most = 0;
  for (const auto& [row, distance] : cluster.left) most = std::max(most, lambda(distance));
  for (const std::int64_t child : cluster.children) {
    most = std::max(most, lambda(clusters[static_cast<std::size_t>(child)].birth));
    if (with_parts) most = std::max(most, death(clusters, child, true));
  }
  return most;
}

}  // namespace

Hdbscan hdbscan(const SpanningTree& tree, const HdbscanOptions& options) {
  const std::vector<Cluster> clusters = condense(tree, options.min_cluster_size);
  const std::set<std::int64_t> chosen = chosen_clusters(clusters, options);
  const auto n = static_cast<std::size_t>(tree.rows);
  Hdbscan found;
  found.options = options;
  CondensedTree& made = found.tree;
  made.row_clusters.assign(n, 0);
  made.row_distances.assign(n, kInfinite);
  for (std::size_t c = 0; c < clusters.size(); ++c) {
    made.parents.push_back(clusters[c].parent);
    made.births.push_back(clusters[c].birth);
    made.sizes.push_back(std::ssize(clusters[c].rows));
    made.stabilities.push_back(stability(clusters, clusters[c]));
    made.labels.push_back(-1);
    for (const auto& [row, distance] : clusters[c].left) {
      made.row_clusters[static_cast<std::size_t>(row)] = static_cast<std::int64_t>(c);
      made.row_distances[static_cast<std::size_t>(row)] = distance;
    }
  }
  const double threshold = options.epsilon > 0 ? lambda(options.epsilon) : death(clusters, 0, false);
  found.labels.assign(n, -1);
  std::vector<std::int64_t> cluster_of_label;
  for (std::size_t row = 0; row < n; ++row) {
    for (const std::int64_t cluster : chosen) {
      if (!is_within(clusters, made.row_clusters[row], cluster)) continue;
      if (cluster == 0 && lambda(made.row_distances[row]) < threshold) continue;
      std::int64_t& label = made.labels[static_cast<std::size_t>(cluster)];
      if (label < 0) {
        label = found.clusters++;
        cluster_of_label.push_back(cluster);
      }
      found.labels[row] = label;
    }
  }
  for (std::size_t row = 0; row < n; ++row) {
    const double own = lambda(made.row_distances[row]);
    const std::int64_t label = found.labels[row];
    double probability = 0;
    if (label >= 0) {
      const double last = death(clusters, cluster_of_label[static_cast<std::size_t>(label)], false);
      probability = std::isinf(own) || last == 0 ? 1 : std::min(own, last) / last;
    }
    found.probabilities.push_back(probability);
    const double last = death(clusters, made.row_clusters[row], true);
    const double outlying = std::isinf(last) ? 1 : (last - own) / last;
    found.outlier_scores.push_back(std::isinf(own) || last == 0 ? 0 : outlying);
    found.noise += label < 0 ? 1 : 0;
  }
  const double most = death(clusters, 0, true);
  found.exemplar_offsets.push_back(0);
  for (std::int64_t label = 0; label < found.clusters; ++label) {
    const std::int64_t cluster = cluster_of_label[static_cast<std::size_t>(label)];
    found.sizes.push_back(std::count(found.labels.begin(), found.labels.end(), label));
    const double whole = static_cast<double>(found.sizes.back()) * most;
    found.persistences.push_back(
        std::isinf(most) || most == 0 ? 1 : made.stabilities[static_cast<std::size_t>(cluster)] / whole);
    for (std::size_t row = 0; row < n; ++row) {
      const std::int64_t last = made.row_clusters[row];
      if (found.labels[row] != label || !clusters[static_cast<std::size_t>(last)].children.empty()) continue;
      if (lambda(made.row_distances[row]) == death(clusters, last, false)) {
        found.exemplars.push_back(static_cast<std::int64_t>(row));
      }
    }
    found.exemplar_offsets.push_back(std::ssize(found.exemplars));
  }
  return found;
}

HdbscanPrediction predict(const Hdbscan& fitted, std::span<const double> keys, std::span<const double> distances) {
  const CondensedTree& tree = fitted.tree;
  const HdbscanOptions& options = fitted.options;
  const std::size_t n = tree.row_clusters.size();
  const std::int64_t least = options.min_samples == 0 ? options.min_cluster_size : options.min_samples;
  const auto rank = static_cast<std::size_t>(options.count_self ? least - 1 : least);
  const auto most = [&](std::int64_t cluster) {  // the largest lambda of what leaves a cluster
    double found = 0;
    for (std::size_t row = 0; row < n; ++row) {
      if (tree.row_clusters[row] == cluster) found = std::max(found, lambda(tree.row_distances[row]));
    }
    for (std::size_t c = 0; c < tree.parents.size(); ++c) {
      if (tree.parents[c] == cluster) found = std::max(found, lambda(tree.births[c]));
    }
    return found;
  };
  HdbscanPrediction found;
  for (std::size_t query = 0; query * n < keys.size(); ++query) {
    std::vector<std::size_t> order;  // of clause 2
    for (std::size_t row = 0; row < n; ++row) order.push_back(row);
    std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
      return std::pair(keys[query * n + x], x) < std::pair(keys[query * n + y], y);
    });
    const double core = distances[query * n + order[rank]];
    std::vector<double> reaches;
    for (const std::size_t row : order) {
      reaches.push_back(std::max({core, fitted.core_distances[row], distances[query * n + row] / options.alpha}));
    }
    const auto first = std::min_element(reaches.begin(), reaches.end()) - reaches.begin();
    const std::size_t by = order[static_cast<std::size_t>(first)];
    const double reached = lambda(reaches[static_cast<std::size_t>(first)]);
    std::int64_t cluster = tree.row_clusters[by];
    if (lambda(tree.row_distances[by]) > reached) {
      while (cluster != 0 && lambda(tree.births[static_cast<std::size_t>(cluster)]) >= reached) {
        cluster = tree.parents[static_cast<std::size_t>(cluster)];
      }
    }
    while (cluster >= 0 && tree.labels[static_cast<std::size_t>(cluster)] < 0) {
      cluster = tree.parents[static_cast<std::size_t>(cluster)];
    }
    const double threshold = options.epsilon > 0 ? lambda(options.epsilon) : most(0);
    if (cluster == 0 && reached < threshold) cluster = -1;
    found.rows.push_back(static_cast<std::int64_t>(by));
    found.labels.push_back(cluster < 0 ? -1 : tree.labels[static_cast<std::size_t>(cluster)]);
    if (cluster < 0) {
      found.probabilities.push_back(0);
      continue;
    }
    const double last = most(cluster);
    found.probabilities.push_back(std::isinf(reached) || last == 0 ? 1 : std::min(reached, last) / last);
  }
  return found;
}

}  // namespace vicinal::reference
