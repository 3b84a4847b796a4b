// See cell_graph.hpp.
#include "solver/cell_graph.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/parallel.hpp"

namespace vicinal::solver {
namespace {

constexpr std::int64_t kTaskCells = 256;
constexpr std::size_t kDrawn = 4;     // cells that become one
constexpr Point kFewCells = 4096;     // a graph of so few needs no coarser one
constexpr double kWorthwhile = 0.75;  // of a graph's cells, at most, that the next coarser one may have

/// What is drawn together, [begin[g], begin[g + 1]) for each g, but for what does not reach each other within that.
struct Drawn {
  core::RawVector<Point> into;     ///< [n] numbered as they follow each other
  std::vector<Point> begin;        ///< [groups + 1] the first that each group becomes
  core::RawVector<Point> first;    ///< [cells + 1] where the members of each begin
  core::RawVector<Point> members;  ///< [n]

  [[nodiscard]] Point cells() const noexcept { return begin.back(); }
};

/// `neighbors(i, body)` calls body(j) for what i is joined with.
template <class Neighbors>
Drawn draw_together(const Context& ctx, const std::vector<Point>& begin, const Neighbors& neighbors) {
  const auto groups = static_cast<std::int64_t>(begin.size()) - 1;
  Drawn drawn;
  drawn.into.resize(static_cast<std::size_t>(begin.back()));
  drawn.begin.assign(begin.size(), 0);
  const auto for_each_group = [&](const auto& body) {
    core::parallel_for(ctx, (groups + kTaskCells - 1) / kTaskCells, [&](std::int64_t task, int /*worker*/) {
      std::vector<Point> parent;
      for (std::int64_t g = task * kTaskCells; g < std::min(groups, (task + 1) * kTaskCells); ++g) body(g, parent);
    });
  };
  for_each_group([&](std::int64_t g, std::vector<Point>& parent) {
    const Point first = begin[g];
    const Point size = begin[g + 1] - first;
    parent.resize(static_cast<std::size_t>(size));
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](Point i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for (Point i = 0; i < size; ++i) {
      neighbors(first + i, [&](Point other) {
        if (other < first || other >= first + size) return;
        const Point x = root(i);
        const Point y = root(other - first);
        parent[std::max(x, y)] = std::min(x, y);
      });
    }
    for (Point i = 0; i < size; ++i) {
      const Point above = root(i);
      drawn.into[first + i] = above == i ? drawn.begin[g + 1]++ : drawn.into[first + above];
    }
  });
  std::partial_sum(drawn.begin.begin(), drawn.begin.end(), drawn.begin.begin());
  drawn.first.resize(static_cast<std::size_t>(drawn.cells()) + 1);
  drawn.first.back() = begin.back();
  drawn.members.resize(drawn.into.size());
  for_each_group([&](std::int64_t g, std::vector<Point>& next) {
    next.assign(static_cast<std::size_t>(drawn.begin[g + 1] - drawn.begin[g]) + 1, 0);
    for (Point i = begin[g]; i < begin[g + 1]; ++i) ++next[drawn.into[i] + 1];
    next[0] = begin[g];
    std::partial_sum(next.begin(), next.end(), next.begin());
    std::copy(next.begin(), next.end() - 1, drawn.first.begin() + drawn.begin[g]);
    for (Point i = begin[g]; i < begin[g + 1]; ++i) {
      drawn.members[next[drawn.into[i]]++] = i;
      drawn.into[i] += drawn.begin[g];
    }
  });
  return drawn;
}

/// What each cell is joined with: joined(i, body) calls body(cell) for what its member i is joined with.
template <class Joined>
Lists join(const Context& ctx, const Drawn& drawn, const Joined& joined) {
  std::vector<std::vector<Point>> seen_by(static_cast<std::size_t>(ctx.threads()));
  return lists_of(ctx, drawn.cells(), [&](Point cell, int worker, std::vector<Point>& items) {
    std::vector<Point>& seen = seen_by[worker];
    if (seen.empty()) seen.assign(static_cast<std::size_t>(drawn.cells()), -1);
    seen[cell] = cell;
    const auto before = std::ssize(items);
    for (Point i = drawn.first[cell]; i < drawn.first[cell + 1]; ++i) {
      joined(drawn.members[i], [&](Point other) {
        if (std::exchange(seen[other], cell) != cell) items.push_back(other);
      });
    }
    std::sort(items.begin() + before, items.end());
  });
}

}  // namespace

CellGraphs cell_graphs_of(const Context& ctx, const Pattern& pattern, const std::vector<Point>& near) {
  const LocalRows& a = pattern.a;
  const Incidence& in = pattern.in;
  const auto for_each_column = [&](Point i, const auto& body) {
    for (std::int64_t c = i * a.width; c < (i + 1) * a.width; ++c) body(a.cols[c]);
  };
  CellGraphs graphs;
  std::vector<Point> begin = near;
  Drawn drawn = draw_together(ctx, begin, for_each_column);
  const core::RawVector<Point>& cell_of = drawn.into;
  graphs.levels.emplace_back().neighbors = join(ctx, drawn, [&](Point i, const auto& body) {
    for_each_column(i, [&](Point other) { body(cell_of[other]); });
    for (std::int64_t e = in.first[i]; e < in.first[i + 1]; ++e) body(cell_of[in.blocks[e]]);
  });
  graphs.cell_of = std::move(drawn.into);
  while (graphs.levels.back().cells() > kFewCells) {
    const Lists& fine = graphs.levels.back().neighbors;
    // The cells that four groups became are a group of the next graph.
    begin.clear();
    for (std::size_t g = 0; g + 1 < drawn.begin.size(); g += kDrawn) begin.push_back(drawn.begin[g]);
    begin.push_back(drawn.begin.back());
    drawn = draw_together(ctx, begin, [&](Point i, const auto& body) {
      for (const Point* other = fine.begin(i); other != fine.end(i); ++other) body(*other);
    });
    if (static_cast<double>(drawn.begin.back()) > kWorthwhile * static_cast<double>(fine.size())) break;
    CellGraph coarse;
    coarse.neighbors = join(ctx, drawn, [&](Point i, const auto& body) {
      for (const Point* other = fine.begin(i); other != fine.end(i); ++other) body(drawn.into[*other]);
    });
    graphs.levels.back().above.assign(drawn.into.begin(), drawn.into.end());
    graphs.levels.push_back(std::move(coarse));
  }
  return graphs;
}

}  // namespace vicinal::solver
