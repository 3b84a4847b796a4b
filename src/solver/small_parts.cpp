// See small_parts.hpp.
#include "solver/small_parts.hpp"

#include <algorithm>
#include <utility>

#include "core/parallel.hpp"
#include "formulas/lle/part_rule.hpp"

namespace vicinal::solver {
namespace {

/// Where a worker notes which of a part's places a cell has.
struct CellNotes {
  std::vector<std::int32_t> part;
  std::vector<Point> place;
};

}  // namespace

std::uint64_t small_parts_bytes(const Context& ctx, const CellGraphs& graphs, std::int64_t n) {
  const CellGraph& finest = graphs.levels.front();
  const auto cells = static_cast<std::uint64_t>(finest.cells());
  // A cell is in a part for each of its points at most, seldom in more than two; twice as much is left for that.
  const std::uint64_t lists = 2 * (cells * (sizeof(Point) + sizeof(std::int64_t)) +
                                   static_cast<std::uint64_t>(finest.neighbors.items.size()) * sizeof(Point));
  return lists + static_cast<std::uint64_t>(ctx.threads()) * cells * (sizeof(std::int32_t) + sizeof(Point)) +
         static_cast<std::uint64_t>(n) * 2 * sizeof(Point);
}

SmallParts small_parts_of(const Context& ctx, const CellGraphs& graphs, const Incidence& in, const Point* order,
                          std::vector<Part> parts) {
  const Lists& lists = graphs.levels.front().neighbors;
  const auto count = static_cast<std::int64_t>(parts.size());
  SmallParts small;
  small.parts = std::move(parts);
  small.cell_of = graphs.cell_of.data();
  small.entries.assign(small.parts.size(), 0);
  small.places.assign(small.parts.size(), 0);
  std::vector<std::vector<Point>> cells_of(small.parts.size());
  std::vector<std::int64_t> first_neighbor(small.parts.size() + 1, 0);
  core::parallel_for(ctx, count, [&](std::int64_t p, int /*worker*/) {
    std::vector<Point>& cells = cells_of[p];
    for (const Point* v = order + small.parts[p].begin; v != order + small.parts[p].end; ++v) {
      const Point cell = graphs.cell_of[*v];
      if (cells.empty() || cells.back() != cell) cells.push_back(cell);
      small.entries[p] += in.first[*v + 1] - in.first[*v];
    }
    std::sort(cells.begin(), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
    for (const Point cell : cells) first_neighbor[p + 1] += lists.end(cell) - lists.begin(cell);
  });
  small.first_cell.assign(1, 0);
  for (std::int64_t p = 0; p < count; ++p) {
    small.first_cell.push_back(small.first_cell.back() + std::ssize(cells_of[p]));
    first_neighbor[p + 1] += first_neighbor[p];
  }
  small.cells.resize(static_cast<std::size_t>(small.first_cell.back()));
  small.first.resize(small.cells.size() + 1);
  small.first.back() = first_neighbor.back();
  small.neighbors.resize(static_cast<std::size_t>(first_neighbor.back()));
  std::vector<CellNotes> notes(static_cast<std::size_t>(ctx.threads()));
  core::parallel_for(ctx, count, [&](std::int64_t p, int worker) {
    std::vector<std::int32_t>& part = notes[worker].part;
    std::vector<Point>& place = notes[worker].place;
    if (part.empty()) {
      part.assign(static_cast<std::size_t>(lists.size()), -1);
      place.resize(part.size());
    }
    const auto note = [&](Point cell) {
      if (std::exchange(part[cell], static_cast<std::int32_t>(p)) != p) place[cell] = small.places[p]++;
    };
    for (const Point cell : cells_of[p]) note(cell);
    std::int64_t at = first_neighbor[p];
    for (std::size_t i = 0; i < cells_of[p].size(); ++i) {
      const Point cell = cells_of[p][i];
      small.cells[small.first_cell[p] + static_cast<std::int64_t>(i)] = cell;
      small.first[small.first_cell[p] + static_cast<std::int64_t>(i)] = at;
      for (const Point* other = lists.begin(cell); other != lists.end(cell); ++other) {
        note(*other);
        small.neighbors[at++] = place[*other];
      }
    }
  });
  return small;
}

std::vector<Dissection::Node> tree_of(const Part& part, const Splits& splits) {
  std::vector<Part> own = {{part.begin, part.end, -1}};
  Point next = part.begin;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].size() <= kLeafPoints) continue;
    add_parts(own, i, {splits.left[next], splits.right[next]});
    ++next;
  }
  return nodes_of(own, {});
}

}  // namespace vicinal::solver
