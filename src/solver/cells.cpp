// Points near each other, side by side; the graph that their blocks make of them; and rows by another numbering. See
// ordering.hpp.
#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/parallel.hpp"
#include "solver/ordering.hpp"

namespace vicinal::solver {
namespace {

constexpr Point kSample = 4096;   // points by which the first levels are divided, so that workers can share them
constexpr int kSampleLevels = 6;  // of them
constexpr Point kFewPoints = 1 << 14;
constexpr Point kPolledPart = 1 << 16;  // parts with more look at the cancel token before they are divided

/// Points and the columns that they are divided by.
class KdOrder {
 public:
  KdOrder(const Context& ctx, const core::RawVector<float>& coordinates, std::int64_t d)
      : ctx_(ctx), x_(coordinates), d_(d) {}

  [[nodiscard]] float at(Point point, std::int64_t column) const { return x_[point * d_ + column]; }

  [[nodiscard]] std::int64_t widest_column(const Point* points, Point count) const {
    std::int64_t widest = 0;
    float most = -1;
    for (std::int64_t c = 0; c < d_; ++c) {
      float low = at(points[0], c);
      float high = low;
      for (Point i = 1; i < count; ++i) {
        low = std::min(low, at(points[i], c));
        high = std::max(high, at(points[i], c));
      }
      if (high - low > most) {
        most = high - low;
        widest = c;
      }
    }
    return widest;
  }

  using Room = std::vector<std::pair<float, Point>>;
  /// The points before count / 2 are the lesser ones by the column, ties by number.
  void halve(Point* points, Point count, std::int64_t column, Room& room) const {
    room.resize(static_cast<std::size_t>(count));
    for (Point i = 0; i < count; ++i) room[i] = {at(points[i], column), points[i]};
    std::nth_element(room.begin(), room.begin() + count / 2, room.end());
    for (Point i = 0; i < count; ++i) points[i] = room[i].second;
  }

  /// Down to cells; where each ends is added to `ends`, counted from `offset`.
  void divide(Point* points, Point count, Point offset, std::vector<Point>& ends, Room& room) const {
    if (count <= kCellPoints) {
      if (count > 0) ends.push_back(offset + count);
      return;
    }
    if (count > kPolledPart) ctx_.check_cancelled();
    halve(points, count, widest_column(points, count), room);
    divide(points, count / 2, offset, ends, room);
    divide(points + count / 2, count - count / 2, offset + count / 2, ends, room);
  }

 private:
  const Context& ctx_;
  const core::RawVector<float>& x_;
  std::int64_t d_;
};

/// The first levels of the tree, by a sample: node t has the children 2 t and 2 t + 1, the root is 1.
struct Plane {
  std::int64_t column = 0;
  float value = 0;
};

std::vector<Plane> first_planes(const KdOrder& kd, Point n) {
  constexpr int kPlanes = 1 << kSampleLevels;
  std::vector<Plane> planes(kPlanes);
  std::vector<Point> sample(kSample);
  KdOrder::Room room;
  for (Point i = 0; i < kSample; ++i) sample[i] = static_cast<Point>(static_cast<std::int64_t>(i) * n / kSample);
  for (int t = 1; t < kPlanes; ++t) {
    const int level = std::bit_width(static_cast<unsigned>(t)) - 1;
    const Point count = kSample >> level;
    Point* points = sample.data() + static_cast<std::ptrdiff_t>(t - (1 << level)) * count;
    planes[t].column = kd.widest_column(points, count);
    kd.halve(points, count, planes[t].column, room);
    planes[t].value = kd.at(points[count / 2], planes[t].column);
  }
  return planes;
}

/// Puts the points in the order of the first planes' parts; returns where each begins.
std::vector<Point> divide_first(const Context& ctx, const KdOrder& kd, std::vector<Point>& order) {
  const auto n = static_cast<Point>(order.size());
  if (n < kFewPoints) {
    std::iota(order.begin(), order.end(), 0);
    return {0, n};
  }
  const std::vector<Plane> planes = first_planes(kd, n);
  const std::size_t parts = planes.size();
  const std::int64_t tasks = (n + kTaskPoints - 1) / kTaskPoints;
  std::vector<std::uint8_t> part_of(order.size());
  std::vector<Point> next(static_cast<std::size_t>(tasks) * parts, 0);  // of each task and part: counts, then places
  const auto range = [&](std::int64_t task, const auto& body) {
    const auto end = static_cast<Point>(std::min<std::int64_t>(n, (task + 1) * kTaskPoints));
    for (auto i = static_cast<Point>(task * kTaskPoints); i < end; ++i) body(i, &next[task * parts]);
  };
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
    range(task, [&](Point i, Point* counts) {
      std::size_t t = 1;
      while (t < parts) t = 2 * t + (kd.at(i, planes[t].column) < planes[t].value ? 0 : 1);
      part_of[i] = static_cast<std::uint8_t>(t - parts);
      ++counts[t - parts];
    });
  });
  std::vector<Point> first = {0};
  Point place = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    for (std::int64_t task = 0; task < tasks; ++task) {
      place += std::exchange(next[task * parts + part], place);
    }
    first.push_back(place);
  }
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
    range(task, [&](Point i, Point* places) { order[places[part_of[i]]++] = i; });
  });
  return first;
}

}  // namespace

Cells kd_cells(const Context& ctx, const core::RawVector<float>& coordinates, std::int64_t d) {
  const KdOrder kd(ctx, coordinates, d);
  Cells cells;
  cells.order.resize(coordinates.size() / static_cast<std::size_t>(d));
  const std::vector<Point> first = divide_first(ctx, kd, cells.order);
  std::vector<std::vector<Point>> ends(first.size() - 1);
  core::parallel_for(ctx, static_cast<std::int64_t>(ends.size()), [&](std::int64_t part, int /*worker*/) {
    KdOrder::Room room;
    kd.divide(cells.order.data() + first[part], first[part + 1] - first[part], first[part], ends[part], room);
  });
  cells.first = {0};
  for (const std::vector<Point>& part : ends) cells.first.insert(cells.first.end(), part.begin(), part.end());
  return cells;
}

Adjacency adjacency_of(const Context& ctx, const Pattern& pattern) {
  const LocalRows& a = pattern.a;
  const Incidence& in = pattern.in;
  const Point n = a.points;
  const std::int64_t tasks = (n + kTaskPoints - 1) / kTaskPoints;
  std::vector<std::vector<Point>> parts(static_cast<std::size_t>(tasks));
  std::vector<std::vector<Point>> seen_by(static_cast<std::size_t>(ctx.threads()));
  Adjacency lists;
  lists.first.assign(static_cast<std::size_t>(n) + 1, 0);
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
      lists.first[j + 1] = static_cast<std::int64_t>(part.size() - begin);
    }
  });
  for (Point j = 0; j < n; ++j) lists.first[j + 1] += lists.first[j];
  lists.neighbors.reserve(static_cast<std::size_t>(lists.first.back()));
  for (std::vector<Point>& part : parts) {
    lists.neighbors.insert(lists.neighbors.end(), part.begin(), part.end());
    std::vector<Point>().swap(part);
  }
  return lists;
}

LocalRows renumbered(const Context& ctx, const LocalRows& a, const std::vector<Point>& order) {
  const auto n = static_cast<Point>(order.size());
  const std::int64_t tasks = (n + kTaskPoints - 1) / kTaskPoints;
  const auto for_each_point = [&](std::int64_t task, const auto& body) {
    const auto end = static_cast<Point>(std::min<std::int64_t>(n, (task + 1) * kTaskPoints));
    for (auto i = static_cast<Point>(task * kTaskPoints); i < end; ++i) body(i);
  };
  LocalRows b;
  b.points = n;
  b.width = a.width;
  b.cols.resize(order.size() * static_cast<std::size_t>(a.width));
  b.first.resize(order.size() + 1);
  core::RawVector<Point> now(static_cast<std::size_t>(a.points));
  std::vector<std::int64_t> before(static_cast<std::size_t>(tasks) + 1, 0);  // rows, of each task
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
    for_each_point(task, [&](Point i) {
      now[order[i]] = i;
      before[task + 1] += a.first[order[i] + 1] - a.first[order[i]];
    });
  });
  std::partial_sum(before.begin(), before.end(), before.begin());
  b.first.back() = before.back();
  if (!a.values.empty()) b.values.resize(static_cast<std::size_t>(b.rows() * a.width));
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
    std::int64_t row = before[task];
    for_each_point(task, [&](Point i) {
      const Point old = order[i];
      b.first[i] = row;
      for (std::int64_t c = 0; c < a.width; ++c) b.cols[i * a.width + c] = now[a.cols[old * a.width + c]];
      if (!a.values.empty()) {
        std::copy(a.values.begin() + a.first[old] * a.width, a.values.begin() + a.first[old + 1] * a.width,
                  b.values.begin() + row * a.width);
      }
      row += a.first[old + 1] - a.first[old];
    });
  });
  return b;
}

}  // namespace vicinal::solver
