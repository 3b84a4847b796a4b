// Solves with a factor: down the tree's panels to its root, a division, and up again. A subtree's task changes only
// rows of its own; what it takes from rows above is gathered beside them and added in the order of the tasks.
#include <algorithm>

#include "core/parallel.hpp"
#include "simd/dense_kernels.hpp"
#include "solver/factor.hpp"

namespace vicinal::solver {
namespace {

constexpr std::int64_t kBlock = 128;      // columns of a panel at a time
constexpr std::int64_t kFewRows = 256;    // below a block, which are not worth being divided
constexpr std::int64_t kChunkRows = 256;  // of a panel, a task
constexpr std::int64_t kChunkColumns = 16;

using cpu::FiveBytes;
using cpu::PanelProduct;

// One panel and the rows of x that belong to it, side by side in memory: own, then those below.
struct Step {
  const Context& ctx;
  const cpu::DenseKernels& kernels;
  FiveBytes panel;
  std::int64_t own;
  std::int64_t height;
  std::int64_t width;

  void down(double* x) const {
    for (std::int64_t begin = 0; begin < own; begin += kBlock) {
      ctx.check_cancelled();
      const std::int64_t end = std::min(own, begin + kBlock);
      const bool whole = height - end <= kFewRows;
      kernels.down_own(block(begin, whole ? height : end), x + begin * width);
      if (whole) continue;
      core::parallel_for(ctx, tiles_of(height - end, kChunkRows), [&](std::int64_t task, int /*worker*/) {
        const std::int64_t from = end + task * kChunkRows;
        kernels.down(
            {std::min(kChunkRows, height - from), end - begin, panel.from(begin * height + from), height, width},
            x + begin * width, x + from * width);
      });
    }
  }

  void up(double* x) const {
    for (std::int64_t begin = tiles_of(own, kBlock) * kBlock - kBlock; begin >= 0; begin -= kBlock) {
      ctx.check_cancelled();
      const std::int64_t end = std::min(own, begin + kBlock);
      const bool whole = height - end <= kFewRows;
      if (!whole) {
        core::parallel_for(ctx, tiles_of(end - begin, kChunkColumns), [&](std::int64_t task, int /*worker*/) {
          const std::int64_t from = begin + task * kChunkColumns;
          kernels.up(
              {height - end, std::min(kChunkColumns, end - from), panel.from(from * height + end), height, width},
              x + end * width, x + from * width);
        });
      }
      kernels.up_own(block(begin, whole ? height : end), x + begin * width);
    }
  }

 private:
  // The block of columns from `begin` on, its rows up to `end`.
  [[nodiscard]] PanelProduct block(std::int64_t begin, std::int64_t end) const {
    return {end - begin, std::min(kBlock, own - begin), panel.from(begin * height + begin), height, width};
  }
};

}  // namespace

void Factor::solve(const Context& ctx, Vectors& x) const {
  const cpu::DenseKernels& kernels = cpu::dense_kernels(ctx.isa());
  const std::int64_t q = x.width;
  const FiveBytes panels{high_.data(), low_.data()};
  const auto step = [&](std::int32_t t) {
    return Step{ctx, kernels, panels.from(s_.panel[t]), s_.own(t), s_.own(t) + s_.below(t), q};
  };
  const auto copy_row = [q](const double* from, double* to) {  // eight at a time without a call
    for (std::int64_t c = 0; c < q; c += 8) std::copy_n(from + c, 8, to + c);
  };
  // Gathered rows of a front: own ones come from x; those below, down: what is taken from them, up: their values.
  const auto scatter = [&](std::int32_t t, const double* from) {
    std::copy_n(from, s_.own(t) * q, x.row(s_.nodes[t].begin));
  };
  std::vector<std::vector<double>> taken(s_.trees.size());  // from rows above the tree
  struct Room {
    std::vector<double> rows;
    std::vector<std::int32_t> place;
  };
  std::vector<Room> rooms(static_cast<std::size_t>(ctx.threads()));

  const auto go_down = [&](std::int32_t t, Room& room, Point tree_end, double* outside) {
    const std::vector<Point>& below = s_.rows[t];
    room.rows.resize(static_cast<std::size_t>(std::max<std::int64_t>(1, (s_.own(t) + s_.below(t)) * q)));
    double* rows = room.rows.data();
    std::copy_n(x.row(s_.nodes[t].begin), s_.own(t) * q, rows);
    std::fill(room.rows.begin() + s_.own(t) * q, room.rows.end(), 0.0);
    step(t).down(rows);
    scatter(t, rows);
    rows += s_.own(t) * q;
    for (std::size_t i = 0; i < below.size(); ++i, rows += q) {
      double* to = below[i] < tree_end ? x.row(below[i]) : outside + room.place[below[i]] * q;
      for (std::int64_t c = 0; c < q; ++c) to[c] += rows[c];
    }
  };
  core::parallel_for(ctx, static_cast<std::int64_t>(s_.trees.size()), [&](std::int64_t task, int worker) {
    Room& room = rooms[worker];
    const auto [begin, end] = s_.trees[task];
    const std::vector<Point>& above = s_.rows[end - 1];
    if (room.place.empty()) room.place.assign(static_cast<std::size_t>(x.rows), 0);
    for (std::size_t i = 0; i < above.size(); ++i) room.place[above[i]] = static_cast<std::int32_t>(i);
    taken[task].assign(above.size() * static_cast<std::size_t>(q), 0.0);
    for (std::int32_t t = begin; t < end; ++t) go_down(t, room, s_.nodes[end - 1].end, taken[task].data());
  });
  for (std::size_t i = 0; i < s_.trees.size(); ++i) {
    const std::vector<Point>& above = s_.rows[s_.trees[i].second - 1];
    for (std::size_t r = 0; r < above.size(); ++r) {
      for (std::int64_t c = 0; c < q; ++c) x.row(above[r])[c] += taken[i][r * static_cast<std::size_t>(q) + c];
    }
  }
  const auto n = static_cast<Point>(x.rows);
  for (const std::int32_t t : s_.top) go_down(t, rooms[0], n, nullptr);

  core::parallel_for(ctx, tiles_of(x.rows, kTaskPoints), [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t i = task * kTaskPoints; i < std::min(x.rows, (task + 1) * kTaskPoints); ++i) {
      for (std::int64_t c = 0; c < q; ++c) x.row(i)[c] /= pivots_[i];
    }
  });

  const auto go_up = [&](std::int32_t t, Room& room) {
    const std::vector<Point>& below = s_.rows[t];
    room.rows.resize(static_cast<std::size_t>(std::max<std::int64_t>(1, (s_.own(t) + s_.below(t)) * q)));
    double* rows = room.rows.data();
    std::copy_n(x.row(s_.nodes[t].begin), s_.own(t) * q, rows);
    for (std::size_t i = 0; i < below.size(); ++i) {
      copy_row(x.row(below[i]), rows + (s_.own(t) + static_cast<std::int64_t>(i)) * q);
    }
    step(t).up(rows);
    scatter(t, rows);
  };
  for (auto t = s_.top.rbegin(); t != s_.top.rend(); ++t) go_up(*t, rooms[0]);
  core::parallel_for(ctx, static_cast<std::int64_t>(s_.trees.size()), [&](std::int64_t task, int worker) {
    for (std::int32_t t = s_.trees[task].second - 1; t >= s_.trees[task].first; --t) go_up(t, rooms[worker]);
  });
}

}  // namespace vicinal::solver
