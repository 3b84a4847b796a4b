// See changed_lists.hpp.
#include "nearest/changed_lists.hpp"

#include <cstddef>

namespace vicinal::cli {
namespace {

constexpr std::int64_t kPartNeighbors = std::int64_t{1} << 16;

bool has_bit(std::span<const std::uint64_t> words, std::int64_t row) {
  return (words[static_cast<std::size_t>(row / 64)] >> (row % 64) & 1) != 0;
}

}  // namespace

ChangeList renumbered(std::span<const std::int64_t> numbers) {
  return [numbers](std::int64_t /*row*/, std::span<const std::int64_t> ids, std::span<const double> distances,
                   NeighborGraph& made) {
    for (const std::int64_t id : ids) made.ids.push_back(numbers[static_cast<std::size_t>(id)]);
    made.distances.insert(made.distances.end(), distances.begin(), distances.end());
  };
}

ChangeList with_row_itself() {
  return
      [](std::int64_t row, std::span<const std::int64_t> ids, std::span<const double> distances, NeighborGraph& made) {
        made.ids.push_back(row);
        made.ids.insert(made.ids.end(), ids.begin(), ids.end());
        made.distances.push_back(0);
        made.distances.insert(made.distances.end(), distances.begin(), distances.end());
      };
}

ChangeList among_filtered(std::span<const std::uint64_t> filter, bool both) {
  return [filter, both](std::int64_t row, std::span<const std::int64_t> ids, std::span<const double> distances,
                        NeighborGraph& made) {
    const bool is_row = has_bit(filter, row);
    for (std::size_t rank = 0; rank < ids.size(); ++rank) {
      const bool is_neighbor = has_bit(filter, ids[rank]);
      if (both ? !(is_row && is_neighbor) : !(is_row || is_neighbor)) continue;
      made.ids.push_back(ids[rank]);
      made.distances.push_back(distances[rank]);
    }
  };
}

void pass_on_changed(std::int64_t first, const NeighborGraph& lists, const ChangeList& change, const TakeLists& take) {
  NeighborGraph made;
  made.table_rows = lists.table_rows;
  made.metric = lists.metric;
  made.p = lists.p;
  made.plan = lists.plan;
  made.stats = lists.stats;
  const auto room = static_cast<std::size_t>(kPartNeighbors + lists.table_rows);
  made.ids.reserve(room);
  made.distances.reserve(room);
  for (std::int64_t row = 0; row < lists.rows;) {
    made.offsets.assign(1, 0);
    made.ids.clear();
    made.distances.clear();
    const std::int64_t begin = row;
    do {
      change(first + row, lists.ids_of(row), lists.distances_of(row), made);
      made.offsets.push_back(static_cast<std::int64_t>(made.ids.size()));
      ++row;
    } while (row < lists.rows && made.offsets.back() + std::ssize(made.offsets) < kPartNeighbors);
    made.rows = row - begin;
    take(first + begin, made);
  }
}

std::uint64_t changed_bytes(std::int64_t n) {
  return static_cast<std::uint64_t>(kPartNeighbors + n) * 16 + kPartNeighbors * 8;
}

}  // namespace vicinal::cli
