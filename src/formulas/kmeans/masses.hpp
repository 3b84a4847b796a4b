// Rows drawn with a chance in proportion to a mass (contract clause 12, draws). Masses are added in a tree, 32 parts at
// a time, so that sums can be made side by side and a draw looks at 32 numbers a level. Host and device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/distance.hpp"

namespace vicinal::core {

inline constexpr std::int64_t kMassParts = 32;

/// Where the sums over n >= 1 masses lie: level by level, those of 32 masses each first, the total last.
struct MassTree {
  static constexpr int kMaxLevels = 13;  // 32^13 = 2^65
  int levels = 0;
  std::int64_t sizes[kMaxLevels] = {};   ///< sums of a level
  std::int64_t begins[kMaxLevels] = {};  ///< where they begin
  std::int64_t nodes = 0;                ///< sums in all

  MassTree() = default;
  explicit MassTree(std::int64_t n) {
    for (std::int64_t size = n; levels == 0 || size > 1; ++levels) {
      size = (size + kMassParts - 1) / kMassParts;
      sizes[levels] = size;
      begins[levels] = nodes;
      nodes += size;
    }
  }
  [[nodiscard]] VICINAL_HD std::int64_t total() const noexcept { return nodes - 1; }
};

/// The sum of the first 32 of `count` parts, part(0), part(1), ...: by the eight accumulators.
template <class Part>
VICINAL_HD inline double sum_of_parts(std::int64_t count, const Part& part) noexcept {
  double a[kLanes] = {};
  for (std::int64_t first = 0; first < kMassParts; first += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      if (first + lane < count) a[lane] += part(first + lane);
    }
  }
  return sum_of_lanes(a);
}

/// The part that `t` falls into, of which there is one above 0; takes from t what the parts before it sum to.
template <class Part>
VICINAL_HD inline std::int64_t part_under(std::int64_t count, const Part& part, double& t) noexcept {
  std::int64_t taken = 0;
  double before = 0;
  double sum = 0;
  bool above = false;
  for (std::int64_t i = 0; i < count; ++i) {
    const double added = part(i);
    const double next = sum + added;
    if (!above && added != 0) {
      taken = i;
      before = sum;
      above = next > t;
    }
    sum = next;
  }
  t -= before;
  return taken;
}

/// The row that a draw u in [0, 1) stands for where all masses are 0.
VICINAL_HD inline std::int64_t massless_row(double u, std::int64_t n) noexcept {
  const auto row = static_cast<std::int64_t>(u * static_cast<double>(n));
  return row < n - 1 ? row : n - 1;
}

/// Fills levels 1 and up of sums[tree.nodes] from level 0. O(n / 32).
inline void add_levels(const MassTree& tree, double* sums) {
  for (int level = 1; level < tree.levels; ++level) {
    const double* const parts = sums + tree.begins[level - 1];
    for (std::int64_t i = 0; i < tree.sizes[level]; ++i) {
      const std::int64_t first = i * kMassParts;
      const std::int64_t left = tree.sizes[level - 1] - first;
      sums[tree.begins[level] + i] = sum_of_parts(left, [&](std::int64_t p) { return parts[first + p]; });
    }
  }
}

/// The row that a draw u in [0, 1) stands for; mass(i) is that of row i. O(log n).
template <class Mass>
std::int64_t drawn_row(double u, std::int64_t n, const MassTree& tree, const double* sums, const Mass& mass) {
  const double total = sums[tree.total()];
  if (total == 0) return massless_row(u, n);
  double t = u * total;
  std::int64_t node = 0;
  for (int level = tree.levels - 1; level >= 0; --level) {
    const std::int64_t first = node * kMassParts;
    const std::int64_t left = (level == 0 ? n : tree.sizes[level - 1]) - first;
    node =
        first +
        part_under(
            left < kMassParts ? left : kMassParts,
            [&](std::int64_t p) { return level == 0 ? mass(first + p) : sums[tree.begins[level - 1] + first + p]; }, t);
  }
  return node;
}

}  // namespace vicinal::core
