// Memberships as contract clause 29 says them: clusters around each other are sets, exponentials have 113 bits.
#include <quadmath.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "reference/density.hpp"

namespace vicinal::reference {

namespace {

double lambda_at(double distance) {
  return distance == 0 ? kInfinite : 1 / distance;
}

double exponential(double y) {
  return y < -700 ? 0 : static_cast<double>(expq(y));
}

// A cluster and those around it.
std::set<std::int64_t> around(const CondensedTree& tree, std::int64_t cluster) {
  std::set<std::int64_t> found;
  for (; cluster >= 0; cluster = tree.parents[static_cast<std::size_t>(cluster)]) found.insert(cluster);
  return found;
}

double death(const CondensedTree& tree, std::int64_t cluster) {
  double most = 0;
  for (std::size_t row = 0; row < tree.row_clusters.size(); ++row) {
    if (tree.row_clusters[row] == cluster) most = std::max(most, lambda_at(tree.row_distances[row]));
  }
  for (std::size_t part = 0; part < tree.parents.size(); ++part) {
    if (tree.parents[part] == cluster) most = std::max(most, lambda_at(tree.births[part]));
  }
  return most;
}

// Where a row that is in `cluster` at last and leaves it with `own` comes apart from another cluster.
double height_of(const CondensedTree& tree, std::int64_t cluster, double own, std::int64_t other) {
  const std::set<std::int64_t> mine = around(tree, cluster);
  const std::set<std::int64_t> theirs = around(tree, other);
  if (mine.count(other) != 0 || theirs.count(cluster) != 0) return own;
  for (const std::int64_t part : theirs) {  // from the largest to the smallest
    if (mine.count(part) == 0) return lambda_at(tree.births[static_cast<std::size_t>(part)]);
  }
  return own;
}

struct Place {
  std::int64_t cluster;
  double lambda;
};

}  // namespace

std::vector<double> memberships(const Hdbscan& fitted, std::span<const double> keys, std::span<const double> distances,
                                bool is_new) {
  const CondensedTree& tree = fitted.tree;
  const std::size_t n = tree.row_clusters.size();
  const std::size_t m = keys.size() / n;
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(fitted.clusters));
  for (std::size_t cluster = 0; cluster < tree.labels.size(); ++cluster) {
    if (tree.labels[cluster] >= 0)
      chosen[static_cast<std::size_t>(tree.labels[cluster])] = static_cast<std::int64_t>(cluster);
  }
  std::vector<double> deaths;
  for (const std::int64_t cluster : chosen) deaths.push_back(death(tree, cluster));

  std::vector<Place> places;
  if (!is_new) {
    for (std::size_t row = 0; row < n; ++row)
      places.push_back({tree.row_clusters[row], lambda_at(tree.row_distances[row])});
  } else {
    const HdbscanOptions& options = fitted.options;
    const std::int64_t least = options.min_samples == 0 ? options.min_cluster_size : options.min_samples;
    const auto rank = static_cast<std::size_t>(options.count_self ? least - 1 : least);
    const HdbscanPrediction predicted = predict(fitted, keys, distances);
    for (std::size_t query = 0; query < m; ++query) {
      const auto by = static_cast<std::size_t>(predicted.rows[query]);
      std::vector<double> sorted(distances.begin() + static_cast<std::ptrdiff_t>(query * n),
                                 distances.begin() + static_cast<std::ptrdiff_t>((query + 1) * n));
      const double apart = sorted[by] / options.alpha;
      std::sort(sorted.begin(), sorted.end());
      const double own = lambda_at(std::max({sorted[rank], fitted.core_distances[by], apart}));
      const double of_row = lambda_at(tree.row_distances[by]);
      Place place = {tree.row_clusters[by], std::min(own, of_row)};
      while (of_row > own && place.cluster != 0 &&
             lambda_at(tree.births[static_cast<std::size_t>(place.cluster)]) >= own) {
        place.cluster = tree.parents[static_cast<std::size_t>(place.cluster)];
      }
      places.push_back(place);
    }
  }

  std::vector<double> values;
  for (std::size_t row = 0; row < places.size() && !chosen.empty(); ++row) {
    const double last = death(tree, places[row].cluster);
    std::vector<double> nearest;
    std::vector<double> heights;
    std::vector<double> scores;
    for (std::size_t label = 0; label < chosen.size(); ++label) {
      nearest.push_back(kInfinite);
      for (std::int64_t at = fitted.exemplar_offsets[label]; at < fitted.exemplar_offsets[label + 1]; ++at) {
        const auto exemplar = static_cast<std::size_t>(fitted.exemplars[static_cast<std::size_t>(at)]);
        nearest.back() = std::min(nearest.back(), distances[row * n + exemplar]);
      }
      heights.push_back(height_of(tree, places[row].cluster, places[row].lambda, chosen[label]));
      const double height = heights.back();
      if (is_new) {
        const double infinite_or_one = height == last ? kInfinite : 1;
        scores.push_back(height == last || std::isinf(last) ? infinite_or_one : last / (last - height));
      } else {
        scores.push_back(exponential(height == last ? -1 : -(last / height)));
      }
    }
    const double least = *std::min_element(nearest.begin(), nearest.end());
    const double best = *std::max_element(scores.begin(), scores.end());
    std::vector<double> weights;
    std::vector<double> of_tree;
    for (std::size_t label = 0; label < chosen.size(); ++label) {
      const double near = nearest[label] == least ? 1 : least / nearest[label];
      const double place = scores[label] == best ? 1 : exponential(scores[label] - best);
      of_tree.push_back(is_new ? place * place : place);
      weights.push_back((is_new ? std::sqrt(near) : near) * of_tree.back());
    }
    __float128 sum = 0;
    for (const double weight : weights) sum += weight;
    if (sum == 0) {
      weights = of_tree;
      for (const double weight : weights) sum += weight;
    }
    const double height = *std::max_element(heights.begin(), heights.end());
    double end = places[row].lambda;
    for (std::size_t label = 0; label < chosen.size(); ++label) {
      if (heights[label] == height) end = std::max(end, deaths[label]);
    }
    const double all = height == end ? 1 : height / end;
    for (const double weight : weights) values.push_back(all * (weight / static_cast<double>(sum)));
  }
  return values;
}

}  // namespace vicinal::reference
