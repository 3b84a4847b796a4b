// See neighbor_profile.hpp.
#include "report/neighbor_profile.hpp"

#include <algorithm>

#include "base/interrupt.hpp"

namespace vicinal::cli::report {

NeighborProfile::NeighborProfile(ProfileDepth depth, std::int64_t m, std::int64_t n) : depth_(depth) {
  if (depth.kept == 0) return;
  ids_.resize(static_cast<std::size_t>(m * depth.kept));
  distances_.resize(ids_.size());
  sizes_.resize(static_cast<std::size_t>(m));
  last_.resize(static_cast<std::size_t>(m));
  times_.resize(static_cast<std::size_t>(n));
}

std::uint64_t NeighborProfile::page_bytes(ProfileDepth depth, std::int64_t m, std::int64_t n) {
  if (depth.kept == 0) return 0;
  // Beside its own arrays: pairs of rows, two lists of numbers to draw, and one of them sorted.
  const std::uint64_t of_query = static_cast<std::uint64_t>(depth.kept) * 16 + 16 + 24 + 24;
  const std::uint64_t of_row = 8 + 8;
  return static_cast<std::uint64_t>(m) * of_query + static_cast<std::uint64_t>(n) * of_row;
}

void NeighborProfile::add(const NeighborGraph& lists) {
  table_rows = lists.table_rows;
  k = lists.k;
  metric = lists.metric;
  p = lists.p;
  if (rows == 0) {
    plan = lists.plan;
    stats = lists.stats;
  }
  for (std::int64_t i = 0; i < lists.rows; ++i, ++rows) {
    poll_interrupt();
    const auto ids = lists.ids_of(i);
    const auto distances = lists.distances_of(i);
    neighbors += static_cast<std::int64_t>(ids.size());
    if (first_rows.size() < kRowsShown) {
      const auto shown = static_cast<std::ptrdiff_t>(std::min(ids.size(), kNeighborsShown));
      first_rows.push_back({static_cast<std::int64_t>(ids.size()),
                            {ids.begin(), ids.begin() + shown},
                            {distances.begin(), distances.begin() + shown}});
    }
    if (depth_.kept == 0) continue;
    const auto row = static_cast<std::size_t>(rows);
    const std::size_t kept = std::min(ids.size(), static_cast<std::size_t>(depth_.kept));
    const auto place = static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(depth_.kept));
    std::copy_n(ids.begin(), kept, ids_.begin() + place);
    std::copy_n(distances.begin(), kept, distances_.begin() + place);
    sizes_[row] = static_cast<std::int64_t>(ids.size());
    last_[row] = distances.empty() ? 0 : distances.back();
    for (const std::int64_t id : ids) ++times_[static_cast<std::size_t>(id)];
  }
}

std::span<const std::int64_t> NeighborProfile::ids_of(std::int64_t row) const noexcept {
  return {ids_.data() + row * depth_.kept, static_cast<std::size_t>(std::min(size_of(row), depth_.kept))};
}

std::span<const double> NeighborProfile::distances_of(std::int64_t row) const noexcept {
  return {distances_.data() + row * depth_.kept, static_cast<std::size_t>(std::min(size_of(row), depth_.kept))};
}

}  // namespace vicinal::cli::report
