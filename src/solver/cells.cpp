// Points near each other, side by side; the graph that their blocks make of them; and rows by another numbering. See
// ordering.hpp.
#include <algorithm>
#include <numeric>

#include "core/parallel.hpp"
#include "solver/ordering.hpp"

namespace vicinal::solver {
namespace {

constexpr Point kCellPoints = 16;

std::int64_t widest_column(const std::vector<float>& coordinates, std::int64_t d, const Point* points, Point count) {
  std::int64_t widest = 0;
  float most = -1;
  for (std::int64_t c = 0; c < d; ++c) {
    float low = coordinates[points[0] * d + c];
    float high = low;
    for (Point i = 1; i < count; ++i) {
      const float x = coordinates[points[i] * d + c];
      low = std::min(low, x);
      high = std::max(high, x);
    }
    if (high - low > most) {
      most = high - low;
      widest = c;
    }
  }
  return widest;
}

}  // namespace

Cells kd_cells(const Context& ctx, const std::vector<float>& coordinates, std::int64_t d) {
  const auto n = static_cast<Point>(coordinates.size() / static_cast<std::size_t>(d));
  Cells cells;
  cells.order.resize(static_cast<std::size_t>(n));
  std::iota(cells.order.begin(), cells.order.end(), 0);
  cells.first = {0, n};
  // Each level halves every cell that is still too large.
  while (true) {
    const std::vector<Point> from = cells.first;
    bool split = false;
    cells.first.assign(1, 0);
    for (std::size_t i = 0; i + 1 < from.size(); ++i) {
      if (from[i + 1] - from[i] > kCellPoints) {
        cells.first.push_back(from[i] + (from[i + 1] - from[i]) / 2);
        split = true;
      }
      cells.first.push_back(from[i + 1]);
    }
    if (!split) return cells;
    core::parallel_for(ctx, static_cast<std::int64_t>(from.size()) - 1, [&](std::int64_t task, int /*worker*/) {
      const Point count = from[task + 1] - from[task];
      if (count <= kCellPoints) return;
      Point* points = cells.order.data() + from[task];
      const std::int64_t column = widest_column(coordinates, d, points, count);
      std::nth_element(points, points + count / 2, points + count, [&](Point a, Point b) {
        const float x = coordinates[a * d + column];
        const float y = coordinates[b * d + column];
        return x < y || (x == y && a < b);
      });
    });
  }
}

Pattern pattern_of(const Context& ctx, const LocalRows& a, const Incidence& in) {
  const Point n = a.points;
  const std::int64_t tasks = (n + kTaskPoints - 1) / kTaskPoints;
  std::vector<std::vector<Point>> parts(static_cast<std::size_t>(tasks));
  std::vector<std::vector<Point>> seen_by(static_cast<std::size_t>(ctx.threads()));
  Pattern pattern;
  pattern.first.assign(static_cast<std::size_t>(n) + 1, 0);
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int worker) {
    std::vector<Point>& seen = seen_by[worker];
    if (seen.empty()) seen.assign(static_cast<std::size_t>(n), -1);
    std::vector<Point>& part = parts[task];
    const auto end = static_cast<Point>(std::min<std::int64_t>(n, (task + 1) * kTaskPoints));
    for (auto j = static_cast<Point>(task * kTaskPoints); j < end; ++j) {
      const std::size_t begin = part.size();
      seen[j] = j;
      for (std::int64_t e = in.first[j]; e < in.first[j + 1]; ++e) {
        const Point* cols = a.cols.data() + in.blocks[e] * a.width;
        for (std::int64_t c = 0; c < a.width; ++c) {
          if (seen[cols[c]] == j) continue;
          seen[cols[c]] = j;
          part.push_back(cols[c]);
        }
      }
      std::sort(part.begin() + static_cast<std::ptrdiff_t>(begin), part.end());
      pattern.first[j + 1] = static_cast<std::int64_t>(part.size() - begin);
    }
  });
  for (Point j = 0; j < n; ++j) pattern.first[j + 1] += pattern.first[j];
  pattern.neighbors.reserve(static_cast<std::size_t>(pattern.first.back()));
  for (std::vector<Point>& part : parts) {
    pattern.neighbors.insert(pattern.neighbors.end(), part.begin(), part.end());
    std::vector<Point>().swap(part);
  }
  return pattern;
}

LocalRows renumbered(const Context& ctx, const LocalRows& a, const std::vector<Point>& order) {
  const auto n = static_cast<Point>(order.size());
  LocalRows b;
  b.points = n;
  b.width = a.width;
  b.cols.resize(order.size() * static_cast<std::size_t>(a.width));
  b.first.assign(static_cast<std::size_t>(n) + 1, 0);
  std::vector<Point> now(static_cast<std::size_t>(a.points));
  for (Point i = 0; i < n; ++i) {
    now[order[i]] = i;
    b.first[i + 1] = b.first[i] + a.first[order[i] + 1] - a.first[order[i]];
  }
  b.values.resize(static_cast<std::size_t>(b.rows() * a.width));
  core::parallel_for(ctx, (n + kTaskPoints - 1) / kTaskPoints, [&](std::int64_t task, int /*worker*/) {
    const auto end = static_cast<Point>(std::min<std::int64_t>(n, (task + 1) * kTaskPoints));
    for (auto i = static_cast<Point>(task * kTaskPoints); i < end; ++i) {
      const Point old = order[i];
      for (std::int64_t c = 0; c < a.width; ++c) b.cols[i * a.width + c] = now[a.cols[old * a.width + c]];
      std::copy(a.values.begin() + a.first[old] * a.width, a.values.begin() + a.first[old + 1] * a.width,
                b.values.begin() + b.first[i] * a.width);
    }
  });
  return b;
}

}  // namespace vicinal::solver
