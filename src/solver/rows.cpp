// See rows.hpp.
#include "solver/rows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/parallel.hpp"

namespace vicinal::solver {
namespace {

template <class Body>
void for_each_chunk(const Context& ctx, Point n, const Body& body) {
  const std::int64_t tasks = (n + kTaskPoints - 1) / kTaskPoints;
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int worker) {
    const auto begin = static_cast<Point>(task * kTaskPoints);
    body(begin, static_cast<Point>(std::min<std::int64_t>(n, (task + 1) * kTaskPoints)), task, worker);
  });
}

}  // namespace

// Entries are put together by ranges of columns first, so that each range is one task's. Every pass keeps the order of
// the blocks.
Incidence incidence_of(const Context& ctx, const LocalRows& a) {
  constexpr std::int64_t kMostRanges = 1024;
  struct Entry {
    Point col;
    Point block;
    std::int32_t at;
  };
  const Point n = a.points;
  const std::int64_t step = std::max(kTaskPoints, (n + kMostRanges - 1) / kMostRanges);
  const std::int64_t ranges = (n + step - 1) / step;
  std::vector<std::int64_t> next(static_cast<std::size_t>(ranges * ranges), 0);  // of each range of blocks and columns
  const auto for_each_entry = [&](std::int64_t task, const auto& body) {
    for (std::int64_t e = task * step * a.width; e < std::min<std::int64_t>(n, (task + 1) * step) * a.width; ++e) {
      body(a.cols[e], e);
    }
  };
  core::parallel_for(ctx, ranges, [&](std::int64_t task, int /*worker*/) {
    for_each_entry(task, [&](Point col, std::int64_t /*e*/) { ++next[task * ranges + col / step]; });
  });
  std::vector<std::int64_t> first = {0};
  for (std::int64_t range = 0; range < ranges; ++range) {
    std::int64_t place = first.back();
    for (std::int64_t task = 0; task < ranges; ++task) place += std::exchange(next[task * ranges + range], place);
    first.push_back(place);
  }
  core::Uncleared<Entry> entries(a.cols.size());
  core::parallel_for(ctx, ranges, [&](std::int64_t task, int /*worker*/) {
    for_each_entry(task, [&](Point col, std::int64_t e) {
      entries[next[task * ranges + col / step]++] = {col, static_cast<Point>(e / a.width),
                                                     static_cast<std::int32_t>(e % a.width)};
    });
  });
  Incidence in;
  in.first.assign(static_cast<std::size_t>(n) + 1, 0);
  in.blocks.resize(a.cols.size());
  in.at.resize(a.cols.size());
  core::parallel_for(ctx, ranges, [&](std::int64_t range, int /*worker*/) {
    const std::int64_t begin = range * step;
    const std::int64_t end = std::min<std::int64_t>(n, begin + step);
    std::vector<std::int64_t> place(static_cast<std::size_t>(end - begin) + 1, 0);
    for (std::int64_t e = first[range]; e < first[range + 1]; ++e) ++place[entries[e].col - begin + 1];
    place[0] = first[range];
    for (std::int64_t j = begin; j < end; ++j) in.first[j + 1] = place[j - begin + 1] += place[j - begin];
    for (std::int64_t e = first[range]; e < first[range + 1]; ++e) {
      const std::int64_t to = place[entries[e].col - begin]++;
      in.blocks[to] = entries[e].block;
      in.at[to] = entries[e].at;
    }
  });
  return in;
}

void apply_blocks(const LocalRows& a, const Vectors& x, Point begin, Point end, double* out) {
  const std::int64_t q = x.width;
  for (Point i = begin; i < end; ++i) {
    const Point* cols = a.cols.data() + i * a.width;
    for (std::int64_t r = a.first[i]; r < a.first[i + 1]; ++r, out += q) {
      const double* values = a.values.data() + r * a.width;
      for (std::int64_t c = 0; c < q; ++c) out[c] = 0;
      for (std::int64_t j = 0; j < a.width; ++j) {
        const double* from = x.row(cols[j]);
        for (std::int64_t c = 0; c < q; ++c) out[c] += values[j] * from[c];
      }
    }
  }
}

void apply(const Context& ctx, const LocalRows& a, const Vectors& x, Vectors& y) {
  for_each_chunk(ctx, a.points, [&](Point begin, Point end, std::int64_t /*task*/, int /*worker*/) {
    apply_blocks(a, x, begin, end, y.row(a.first[begin]));
  });
}

void apply_transposed(const Context& ctx, const LocalRows& a, const Incidence& in, const Vectors& x, Vectors& y) {
  const std::int64_t q = x.width;
  for_each_chunk(ctx, a.points, [&](Point begin, Point end, std::int64_t /*task*/, int /*worker*/) {
    for (Point j = begin; j < end; ++j) {
      double* out = y.row(j);
      for (std::int64_t c = 0; c < q; ++c) out[c] = 0;
      for (std::int64_t e = in.first[j]; e < in.first[j + 1]; ++e) {
        const Point i = in.blocks[e];
        for (std::int64_t r = a.first[i]; r < a.first[i + 1]; ++r) {
          const double value = a.values[r * a.width + in.at[e]];
          const double* from = x.row(r);
          for (std::int64_t c = 0; c < q; ++c) out[c] += value * from[c];
        }
      }
    }
  });
}

double norm_bound(const Context& ctx, const LocalRows& a, const Incidence& in) {
  const auto tasks = static_cast<std::size_t>((a.points + kTaskPoints - 1) / kTaskPoints);
  std::vector<double> by_row(tasks, 0);
  std::vector<double> by_col(tasks, 0);
  for_each_chunk(ctx, a.points, [&](Point begin, Point end, std::int64_t task, int /*worker*/) {
    for (Point j = begin; j < end; ++j) {
      for (std::int64_t r = a.first[j]; r < a.first[j + 1]; ++r) {
        double sum = 0;
        for (std::int64_t c = 0; c < a.width; ++c) sum += std::abs(a.values[r * a.width + c]);
        by_row[task] = std::max(by_row[task], sum);
      }
      double sum = 0;
      for (std::int64_t e = in.first[j]; e < in.first[j + 1]; ++e) {
        const Point i = in.blocks[e];
        for (std::int64_t r = a.first[i]; r < a.first[i + 1]; ++r) sum += std::abs(a.values[r * a.width + in.at[e]]);
      }
      by_col[task] = std::max(by_col[task], sum);
    }
  });
  return *std::max_element(by_row.begin(), by_row.end()) * *std::max_element(by_col.begin(), by_col.end());
}

}  // namespace vicinal::solver
