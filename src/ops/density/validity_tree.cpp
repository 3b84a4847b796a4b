// See validity_tree.hpp. The tree grows from the cluster's first place, by one place a step: all weights are computed
// when they are needed, and none is kept but the least of each open place.
#include "ops/density/validity_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/infinity.hpp"
#include "core/power.hpp"

namespace vicinal::ops {

void find_core_distances(const Context& ctx, const PlacedRows& rows, const ClusterPlaces& cluster,
                         std::vector<std::vector<double>>& rooms, std::vector<double>& cores) {
  const std::int64_t size = cluster.end - cluster.begin;
  const auto dimension = static_cast<double>(rows.cols());
  const auto core_of = [&](std::int64_t place, double* distances) {
    double least = kInfinity;  // of those above 0
    const std::int64_t polled = rows.polled_pairs();
    for (std::int64_t other = 0; other < size; ++other) {
      if ((other + 1) % polled == 0) ctx.check_cancelled();
      const double distance = rows.distance(place, cluster.begin + other);
      distances[other] = place == cluster.begin + other ? 0 : distance;
      if (distances[other] > 0) least = std::min(least, distances[other]);
    }
    if (std::isinf(least)) return 0.0;
    double sum = 0;
    for (std::int64_t other = 0; other < size; ++other) {
      if ((other + 1) % polled == 0) ctx.check_cancelled();  // a power costs more than a distance
      if (distances[other] > 0) sum += core::power(least / distances[other], dimension);
    }
    return least * core::power(static_cast<double>(size - 1) / sum, 1 / dimension);
  };
  for_ranges(
      ctx, cluster.begin, cluster.end, size * rows.cols(), [&](std::int64_t first, std::int64_t last, int worker) {
        for (std::int64_t place = first; place < last; ++place) {
          ctx.check_cancelled();
          cores[static_cast<std::size_t>(place)] = core_of(place, rooms[static_cast<std::size_t>(worker)].data());
        }
      });
}

InnerTree::InnerTree(const Context& ctx, const PlacedRows& rows, std::span<const double> cores,
                     std::int64_t most_places)
    : ctx_(ctx),
      rows_(rows),
      cores_(cores),
      edges_(static_cast<std::size_t>(most_places)),
      is_placed_(static_cast<std::size_t>(most_places)),
      degrees_(static_cast<std::size_t>(most_places)),
      range_best_(static_cast<std::size_t>(most_places / range_length(rows.cols()) + 1)) {}

bool InnerTree::is_before(const Edge& a, std::int64_t to_a, const Edge& b, std::int64_t to_b) noexcept {
  return std::tuple(a.weight, a.distance, std::min(a.from, to_a), std::max(a.from, to_a)) <
         std::tuple(b.weight, b.distance, std::min(b.from, to_b), std::max(b.from, to_b));
}

std::int64_t InnerTree::grow(const ClusterPlaces& cluster, std::int64_t place) {
  const std::int64_t size = cluster.end - cluster.begin;
  const std::int64_t step = range_length(rows_.cols());
  const double core = cores_[static_cast<std::size_t>(cluster.begin + place)];
  for_ranges(ctx_, 0, size, rows_.cols(), [&](std::int64_t first, std::int64_t last, int) {
    std::int64_t best = -1;
    for (std::int64_t to = first; to < last; ++to) {
      const auto at = static_cast<std::size_t>(to);
      if (is_placed_[at] != 0) continue;
      const double distance = rows_.distance(cluster.begin + place, cluster.begin + to);
      const double other = cores_[static_cast<std::size_t>(cluster.begin + to)];
      const Edge edge = {std::max({core, other, distance}), distance, place};
      if (is_before(edge, to, edges_[at], to)) edges_[at] = edge;
      if (best < 0 || is_before(edges_[at], to, edges_[static_cast<std::size_t>(best)], best)) best = to;
    }
    range_best_[static_cast<std::size_t>(first / step)] = best;
  });
  std::int64_t best = -1;
  for (std::int64_t range = 0; range * step < size; ++range) {
    const std::int64_t to = range_best_[static_cast<std::size_t>(range)];
    if (to < 0) continue;
    if (best < 0 || is_before(edges_[static_cast<std::size_t>(to)], to, edges_[static_cast<std::size_t>(best)], best)) {
      best = to;
    }
  }
  return best;
}

double InnerTree::find(const ClusterPlaces& cluster, std::vector<std::uint8_t>& is_inner) {
  const std::int64_t size = cluster.end - cluster.begin;
  constexpr Edge kNone = {kInfinity, kInfinity, std::numeric_limits<std::int64_t>::max()};
  std::fill_n(edges_.begin(), size, kNone);
  std::fill_n(is_placed_.begin(), size, std::uint8_t{0});
  std::fill_n(degrees_.begin(), size, 0);
  is_placed_[0] = 1;
  std::int64_t place = 0;
  for (std::int64_t edge = 1; edge < size; ++edge) {
    place = grow(cluster, place);
    is_placed_[static_cast<std::size_t>(place)] = 1;
    ++degrees_[static_cast<std::size_t>(place)];
    ++degrees_[static_cast<std::size_t>(edges_[static_cast<std::size_t>(place)].from)];
  }
  double longest = -1;
  double longest_inner = -1;
  for (std::int64_t to = 0; to < size; ++to) {
    const auto at = static_cast<std::size_t>(to);
    is_inner[static_cast<std::size_t>(cluster.begin + to)] = degrees_[at] > 1 || size == 2 ? 1 : 0;
    if (to == 0) continue;
    longest = std::max(longest, edges_[at].weight);
    const bool joins_inner = degrees_[at] > 1 && degrees_[static_cast<std::size_t>(edges_[at].from)] > 1;
    if (joins_inner) longest_inner = std::max(longest_inner, edges_[at].weight);
  }
  return longest_inner >= 0 ? longest_inner : longest;
}

}  // namespace vicinal::ops
