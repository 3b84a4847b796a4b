// See cell_graph.hpp.
#include "solver/cell_graph.hpp"

#include <algorithm>
#include <numeric>

#include "core/parallel.hpp"

namespace vicinal::solver {
namespace {

constexpr std::int64_t kTaskCells = 256;

/// Numbers the pieces of the points [begin, end) from 0, by their first points; returns how many there are.
Point number_pieces(const LocalRows& a, Point begin, Point end, std::vector<Point>& parent, Point* piece) {
  parent.resize(static_cast<std::size_t>(end - begin));
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](Point i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  for (Point i = begin; i < end; ++i) {
    const Point* cols = a.cols.data() + i * a.width;
    for (std::int64_t c = 0; c < a.width; ++c) {
      if (cols[c] < begin || cols[c] >= end) continue;
      const Point x = root(i - begin);
      const Point y = root(cols[c] - begin);
      parent[std::max(x, y)] = std::min(x, y);
    }
  }
  Point count = 0;
  for (Point i = 0; i < end - begin; ++i) {
    const Point above = root(i);
    piece[begin + i] = above == i ? count++ : piece[begin + above];
  }
  return count;
}

/// Cells that a block leads to from each cell, itself left out: [cells] lists.
struct Lists {
  std::vector<Point> first;
  std::vector<Point> cells;
};

Lists led_to(const Context& ctx, const LocalRows& a, const std::vector<Point>& near, const CellGraph& graph) {
  const auto coarse = static_cast<std::int64_t>(near.size()) - 1;
  const std::int64_t tasks = (coarse + kTaskCells - 1) / kTaskCells;
  std::vector<std::vector<Point>> parts(static_cast<std::size_t>(tasks));
  std::vector<std::vector<std::pair<Point, Point>>> rooms(static_cast<std::size_t>(ctx.threads()));
  Lists lists;
  lists.first.assign(graph.first.size(), 0);
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int worker) {
    std::vector<std::pair<Point, Point>>& found = rooms[worker];
    for (std::int64_t cell = task * kTaskCells; cell < std::min(coarse, (task + 1) * kTaskCells); ++cell) {
      found.clear();
      for (Point i = near[cell]; i < near[cell + 1]; ++i) {
        const Point from = graph.cell_of[i];
        for (std::int64_t c = 0; c < a.width; ++c) {
          const Point to = graph.cell_of[a.cols[i * a.width + c]];
          if (to != from && (found.empty() || found.back() != std::pair{from, to})) found.emplace_back(from, to);
        }
      }
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      for (const auto& [from, to] : found) {
        ++lists.first[from + 1];
        parts[task].push_back(to);
      }
    }
  });
  std::partial_sum(lists.first.begin(), lists.first.end(), lists.first.begin());
  lists.cells.reserve(static_cast<std::size_t>(lists.first.back()));
  for (const std::vector<Point>& part : parts) lists.cells.insert(lists.cells.end(), part.begin(), part.end());
  return lists;
}

Lists turned_round(const Lists& lists) {
  Lists turned;
  turned.first.assign(lists.first.size(), 0);
  for (const Point to : lists.cells) ++turned.first[to + 1];
  std::partial_sum(turned.first.begin(), turned.first.end(), turned.first.begin());
  turned.cells.resize(lists.cells.size());
  std::vector<Point> next(turned.first.begin(), turned.first.end() - 1);
  for (Point from = 0; from + 1 < static_cast<Point>(lists.first.size()); ++from) {
    for (Point e = lists.first[from]; e < lists.first[from + 1]; ++e) turned.cells[next[lists.cells[e]]++] = from;
  }
  return turned;
}

}  // namespace

CellGraph graph_of_cells(const Context& ctx, const Pattern& pattern, const std::vector<Point>& near) {
  const LocalRows& a = pattern.a;
  const auto coarse = static_cast<std::int64_t>(near.size()) - 1;
  const std::int64_t tasks = (coarse + kTaskCells - 1) / kTaskCells;
  CellGraph graph;
  graph.cell_of.resize(static_cast<std::size_t>(a.points));
  std::vector<Point> before(static_cast<std::size_t>(coarse) + 1, 0);
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
    std::vector<Point> parent;
    for (std::int64_t cell = task * kTaskCells; cell < std::min(coarse, (task + 1) * kTaskCells); ++cell) {
      before[cell + 1] = number_pieces(a, near[cell], near[cell + 1], parent, graph.cell_of.data());
    }
  });
  std::partial_sum(before.begin(), before.end(), before.begin());
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t cell = task * kTaskCells; cell < std::min(coarse, (task + 1) * kTaskCells); ++cell) {
      for (Point i = near[cell]; i < near[cell + 1]; ++i) graph.cell_of[i] += before[cell];
    }
  });
  graph.first.assign(static_cast<std::size_t>(before.back()) + 1, 0);
  const Lists out = led_to(ctx, a, near, graph);
  const Lists in = turned_round(out);
  // Both lists of a cell ascend.
  graph.neighbors.reserve(out.cells.size() + out.cells.size() / 4);
  for (Point cell = 0; cell < graph.cells(); ++cell) {
    std::set_union(out.cells.begin() + out.first[cell], out.cells.begin() + out.first[cell + 1],
                   in.cells.begin() + in.first[cell], in.cells.begin() + in.first[cell + 1],
                   std::back_inserter(graph.neighbors));
    graph.first[cell + 1] = static_cast<Point>(graph.neighbors.size());
  }
  return graph;
}

}  // namespace vicinal::solver
