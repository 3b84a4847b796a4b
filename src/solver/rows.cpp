// See rows.hpp.
#include "solver/rows.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/parallel.hpp"
#include "simd/tall_kernels.hpp"

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

void sort_columns(const Context& ctx, LocalRows& a) {
  const auto width = static_cast<std::size_t>(a.width);
  for_each_chunk(ctx, a.points, [&](Point begin, Point end, std::int64_t /*task*/, int /*worker*/) {
    std::vector<std::pair<Point, std::int32_t>> columns(width);  // and where each stands
    std::vector<double> row(width);
    for (Point i = begin; i < end; ++i) {
      Point* cols = a.cols.data() + i * a.width;
      for (std::size_t c = 0; c < width; ++c) columns[c] = {cols[c], static_cast<std::int32_t>(c)};
      std::sort(columns.begin(), columns.end());
      for (std::size_t c = 0; c < width; ++c) cols[c] = columns[c].first;
      for (std::int64_t r = a.first[i]; r < a.first[i + 1]; ++r) {
        double* values = a.values.data() + r * a.width;
        std::copy_n(values, width, row.begin());
        for (std::size_t c = 0; c < width; ++c) values[c] = row[columns[c].second];
      }
    }
  });
}

// Lists are counted, then filled by all threads as they come, and put in order: what each thread adds to a list
// ascends, so that little is left to do.
Incidence blocks_of(const Context& ctx, const LocalRows& a) {
  const Point n = a.points;
  Incidence in;
  in.first.resize(static_cast<std::size_t>(n) + 1);
  in.blocks.resize(a.cols.size());
  core::RawVector<Point> count(static_cast<std::size_t>(n));  // of each point's blocks, then those that are not listed
  for_each_chunk(ctx, n, [&](Point begin, Point end, std::int64_t /*task*/, int /*worker*/) {
    std::fill(count.begin() + begin, count.begin() + end, 0);
  });
  for_each_chunk(ctx, n, [&](Point begin, Point end, std::int64_t /*task*/, int /*worker*/) {
    for (std::int64_t e = begin * a.width; e < end * a.width; ++e) {
      std::atomic_ref<Point>(count[a.cols[e]]).fetch_add(1, std::memory_order_relaxed);
    }
  });
  std::vector<std::int64_t> before(static_cast<std::size_t>((n + kTaskPoints - 1) / kTaskPoints) + 1, 0);
  for_each_chunk(ctx, n, [&](Point begin, Point end, std::int64_t task, int /*worker*/) {
    before[task + 1] = std::accumulate(count.begin() + begin, count.begin() + end, std::int64_t{0});
  });
  std::partial_sum(before.begin(), before.end(), before.begin());
  in.first.back() = before.back();
  for_each_chunk(ctx, n, [&](Point begin, Point end, std::int64_t task, int /*worker*/) {
    std::int64_t place = before[task];
    for (Point j = begin; j < end; ++j) {
      in.first[j] = place;
      place += count[j];
    }
  });
  for_each_chunk(ctx, n, [&](Point begin, Point end, std::int64_t /*task*/, int /*worker*/) {
    for (Point i = begin; i < end; ++i) {
      for (std::int64_t e = i * a.width; e < (i + 1) * a.width; ++e) {
        const Point left = std::atomic_ref<Point>(count[a.cols[e]]).fetch_sub(1, std::memory_order_relaxed);
        in.blocks[in.first[a.cols[e] + 1] - left] = i;
      }
    }
  });
  for_each_chunk(ctx, n, [&](Point begin, Point end, std::int64_t /*task*/, int /*worker*/) {
    for (Point j = begin; j < end; ++j) {
      const auto first = in.blocks.begin() + in.first[j];
      const auto last = in.blocks.begin() + in.first[j + 1];
      if (!std::is_sorted(first, last)) std::sort(first, last);
    }
  });
  return in;
}

Incidence incidence_of(const Context& ctx, const LocalRows& a) {
  Incidence in = blocks_of(ctx, a);
  in.at.resize(in.blocks.size());
  for_each_chunk(ctx, a.points, [&](Point begin, Point end, std::int64_t /*task*/, int /*worker*/) {
    for (Point j = begin; j < end; ++j) {
      for (std::int64_t e = in.first[j]; e < in.first[j + 1]; ++e) {
        const Point* cols = a.cols.data() + in.blocks[e] * a.width;
        std::int32_t at = 0;
        for (std::int32_t c = 1; c < a.width; ++c) at += cols[c] == j ? c : 0;  // no branch, which nobody could guess
        in.at[e] = at;
      }
    }
  });
  return in;
}

void apply_blocks(const Context& ctx, const LocalRows& a, const Vectors& x, Point begin, Point end, double* out) {
  const cpu::TallKernels& kernels = cpu::tall_kernels(ctx.isa());
  std::vector<const double*> rows(static_cast<std::size_t>(a.width));
  for (Point i = begin; i < end; ++i) {
    const Point* cols = a.cols.data() + i * a.width;
    for (std::int64_t j = 0; j < a.width; ++j) rows[j] = x.row(cols[j]);
    for (std::int64_t r = a.first[i]; r < a.first[i + 1]; ++r, out += x.width) {
      kernels.combine(a.width, a.values.data() + r * a.width, rows.data(), x.width, out);
    }
  }
}

void apply(const Context& ctx, const LocalRows& a, const Vectors& x, Vectors& y) {
  for_each_chunk(ctx, a.points, [&](Point begin, Point end, std::int64_t /*task*/, int /*worker*/) {
    apply_blocks(ctx, a, x, begin, end, y.row(a.first[begin]));
  });
}

void apply_transposed(const Context& ctx, const LocalRows& a, const Incidence& in, const Vectors& x, Vectors& y) {
  const cpu::TallKernels& kernels = cpu::tall_kernels(ctx.isa());
  for_each_chunk(ctx, a.points, [&](Point begin, Point end, std::int64_t /*task*/, int /*worker*/) {
    std::vector<double> values;
    std::vector<const double*> rows;
    for (Point j = begin; j < end; ++j) {
      values.clear();
      rows.clear();
      for (std::int64_t e = in.first[j]; e < in.first[j + 1]; ++e) {
        const Point i = in.blocks[e];
        for (std::int64_t r = a.first[i]; r < a.first[i + 1]; ++r) {
          values.push_back(a.values[r * a.width + in.at[e]]);
          rows.push_back(x.row(r));
        }
      }
      kernels.combine(std::ssize(values), values.data(), rows.data(), x.width, y.row(j));
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
