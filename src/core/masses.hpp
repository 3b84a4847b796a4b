// Rows drawn with a chance in proportion to a mass (contract clause 12, draws). Masses are added in chunks of 1,024
// rows, which may be done side by side; the running sums over the chunks are what a draw needs beside the masses of one
// chunk.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/distance.hpp"

namespace vicinal::core {

inline constexpr std::int64_t kMassChunk = 1024;

/// The sum of the masses of rows [first, min(first + 1024, n)); mass(i) is that of row i.
template <class Mass>
double chunk_mass(std::int64_t first, std::int64_t n, const Mass& mass) {
  double a[kLanes] = {};
  const std::int64_t end = std::min(first + kMassChunk, n);
  for (std::int64_t i = first; i < end; ++i) a[(i - first) % kLanes] += mass(i);
  return sum_of_lanes(a);
}

/// 0, and the sums of the first 1, 2, ... chunks; the last one is the total.
inline std::vector<double> running_masses(const std::vector<double>& chunks) {
  std::vector<double> running = {0};
  running.reserve(chunks.size() + 1);
  for (const double chunk : chunks) running.push_back(running.back() + chunk);
  return running;
}

/// The row that a draw u in [0, 1) stands for. O(1024 + log n), but O(n) where no running sum is above u * total.
template <class Mass>
std::int64_t drawn_row(double u, std::int64_t n, const std::vector<double>& running, const Mass& mass) {
  const double total = running.back();
  if (total == 0) return std::min(static_cast<std::int64_t>(u * static_cast<double>(n)), n - 1);
  const double target = u * total;
  const auto chunk = std::upper_bound(running.begin() + 1, running.end(), target) - (running.begin() + 1);
  std::int64_t last = n - 1;
  if (chunk + 1 == static_cast<std::int64_t>(running.size())) {
    while (mass(last) == 0) --last;
    return last;
  }
  // Should the rows' sum, rounded otherwise than the chunk's own, not get there, it is the last row of the chunk.
  double sum = running[static_cast<std::size_t>(chunk)];
  for (std::int64_t i = chunk * kMassChunk; i < std::min((chunk + 1) * kMassChunk, n); ++i) {
    const double added = mass(i);
    if (added == 0) continue;
    last = i;
    sum += added;
    if (sum > target) break;
  }
  return last;
}

}  // namespace vicinal::core
