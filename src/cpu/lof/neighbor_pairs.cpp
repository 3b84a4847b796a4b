// See neighbor_pairs.hpp.
#include "cpu/lof/neighbor_pairs.hpp"

#include <algorithm>
#include <cmath>

namespace vicinal::cpu {
double ldof_score(const core::Neighborhood& near, const WideRows& rows) {
  double a[core::kLanes] = {};
  std::int64_t pair = 0;
  for (std::int64_t i = 0; i < near.size; ++i) {
    for (std::int64_t j = i + 1; j < near.size; ++j) {
      a[pair++ % core::kLanes] += rows.distance(near.ids[i], near.ids[j]);
    }
  }
  const double outer = near.mean([&](std::int64_t i) { return near.distances[i]; });
  return core::ratio_or_one(outer, core::sum_of_lanes(a) / static_cast<double>(pair));
}

double chaining_distance(const core::Neighborhood& near, const WideRows& rows, bool in_order, ChainScratch& scratch) {
  const std::int64_t k = near.size;
  scratch.nearest.assign(near.distances, near.distances + k);
  scratch.left.resize(static_cast<std::size_t>(k));
  for (std::int64_t i = 0; i < k; ++i) scratch.left[static_cast<std::size_t>(i)] = i;
  double a[core::kLanes] = {};
  for (std::int64_t step = 0; step < k; ++step) {
    // Ranks stay ascending, so that the first of equals is the one of smaller rank.
    auto next = scratch.left.begin();
    if (!in_order) {
      next = std::min_element(scratch.left.begin(), scratch.left.end(), [&](std::int64_t x, std::int64_t y) {
        return scratch.nearest[static_cast<std::size_t>(x)] < scratch.nearest[static_cast<std::size_t>(y)];
      });
    }
    const std::int64_t taken = *next;
    scratch.left.erase(next);
    double& sum = a[step % core::kLanes];
    sum = std::fma(static_cast<double>(k - step), scratch.nearest[static_cast<std::size_t>(taken)], sum);
    for (const std::int64_t other : scratch.left) {
      double& distance = scratch.nearest[static_cast<std::size_t>(other)];
      distance = std::min(distance, rows.distance(near.ids[taken], near.ids[other]));
    }
  }
  return 2 * core::sum_of_lanes(a) / static_cast<double>(k * (k + 1));
}

}  // namespace vicinal::cpu
