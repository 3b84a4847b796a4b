// The numeric factor. See factor.hpp.
//
// A front is two arrays: the node's panel, own + below rows by own columns, which is kept in five bytes a number or not
// at all, and what it takes from the rows below, a square that its parent adds in and that is then forgotten. Only
// lower triangles are meant; what stands above a diagonal is never read.
//
// Squares within a subtree that one worker takes lie on two stacks of that worker, which the next subtree uses again:
// on the one or the other as the node's depth is even or odd. Nodes come in postorder, so when a node is eliminated all
// its children, and nothing after them, are on top of the other stack; they leave when they have been added in.
#include "solver/factor.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/parallel.hpp"
#include "formulas/lle/pivot.hpp"
#include "simd/dense_kernels.hpp"

namespace vicinal::solver {
namespace {

using cpu::kDenseTile;
using cpu::kDenseWidth;

constexpr std::int64_t kSolveRows = 256;
constexpr std::int64_t kUpdatedColumns = 3 * kDenseWidth;
constexpr std::int64_t kSquare = 0;  // in place of a step: that of square_column

bool columns_ascend(const Context& ctx, const LocalRows& a) {
  std::atomic<bool> ascend = true;
  core::parallel_for(ctx, tiles_of(a.points, kTaskPoints), [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t i = task * kTaskPoints; i < std::min<std::int64_t>(a.points, (task + 1) * kTaskPoints); ++i) {
      const auto cols = a.cols.begin() + i * a.width;
      if (!std::is_sorted(cols, cols + a.width)) ascend = false;
    }
  });
  return ascend;
}

/// The work of one factor.
class Assembly {
 public:
  /// `high`, `low` [s.panel.back()], or null: panels are forgotten. `pivots` [n].
  Assembly(const Context& ctx, const LocalRows& a, const Incidence& in, const Symbolic& s, const Pencil& pencil,
           float* high, std::uint8_t* low, double* pivots)
      : ctx_(ctx),
        a_(a),
        in_(in),
        s_(s),
        pencil_(pencil),
        high_(high),
        low_(low),
        pivots_(pivots),
        kernels_(cpu::dense_kernels(ctx.isa())),
        ascending_(columns_ascend(ctx, a)),
        squares_(s_.nodes.size()),
        waiting_(s_.nodes.size()),
        rooms_(static_cast<std::size_t>(ctx.threads())) {}

  void run() {
    const std::size_t steps = s_.trees.size() + s_.top.size();
    core::parallel_for(ctx_, static_cast<std::int64_t>(s_.trees.size()), [&](std::int64_t task, int worker) {
      const auto [begin, end] = s_.trees[task];
      for (std::int32_t t = begin; t < end; ++t) eliminate(t, t + 1 < end, worker);
      if (worker == 0) ctx_.report("factor", static_cast<double>(task) / static_cast<double>(steps));
    });
    for (std::size_t i = 0; i < s_.top.size(); ++i) {
      eliminate(s_.top[i], false, 0);
      ctx_.report("factor", static_cast<double>(s_.trees.size() + i + 1) / static_cast<double>(steps));
    }
  }

 private:
  struct Front {
    std::int64_t own;
    std::int64_t below;
    std::int64_t height;  // own + below
    double* panel;        // [height, own]
    double* square;       // [square_room(below)]
    double* pivots;       // [own]
  };

  /// What a worker keeps from front to front.
  struct Room {
    std::vector<std::int32_t> place;                  // [n] of rows in the front
    std::array<core::AlignedArray<double>, 2> stack;  // squares of a subtree, by the depth's parity
    std::array<std::int64_t, 2> used{};
    core::AlignedArray<double> panel;  // of a front
    core::AlignedArray<double> packed;
  };

  // `stacked`: the node is not the root of a worker's subtree, nor above one.
  void eliminate(std::int32_t t, bool stacked, int worker) {
    Front f{s_.own(t), s_.below(t), s_.own(t) + s_.below(t), nullptr, nullptr, pivots_ + s_.nodes[t].begin};
    f.panel = panel_of(f.height * f.own, worker);
    f.square = squares_[t] = square_of(t, stacked, worker);
    assemble(t, f, worker);
    for (std::int64_t begin = 0; begin < f.own; begin += kUpdatedColumns) eliminate_columns(f, begin);
    update({.m = f.below,
            .n = f.below,
            .k = f.own,
            .a = f.panel + f.own,
            .a_step = f.height,
            .b = f.panel + f.own,
            .b_step = f.height,
            .scale = f.pivots,
            .c = f.square,
            .c_step = kSquare});
    if (high_ != nullptr) keep(f, s_.panel[t]);
  }

  void keep(const Front& f, std::int64_t at) const {
    core::parallel_for(ctx_, tiles_of(f.own, kDenseWidth), [&](std::int64_t task, int /*worker*/) {
      const std::int64_t begin = task * kDenseWidth * f.height;
      const std::int64_t end = std::min(f.own, (task + 1) * kDenseWidth) * f.height;
      kernels_.shorten(f.panel + begin, end - begin, high_ + at + begin, low_ + at + begin);
    });
  }

  double* panel_of(std::int64_t size, int worker) {
    core::AlignedArray<double>& panel = rooms_[worker].panel;
    panel.reserve(size);
    return panel.data();
  }

  double* square_of(std::int32_t t, bool stacked, int worker) {
    const std::int64_t size = square_room(s_.below(t));
    if (!stacked) {
      waiting_[t].reserve(size);
      return waiting_[t].data();
    }
    Room& room = rooms_[worker];
    const int parity = s_.depth[t] % 2;
    room.stack[parity].reserve(s_.most_stacked[parity]);
    double* const square = room.stack[parity].data() + room.used[parity];
    room.used[parity] += size;
    return square;
  }

  void forget_square(std::int32_t t, int worker) {
    if (squares_[t] == waiting_[t].data()) {
      waiting_[t] = core::AlignedArray<double>();
    } else {
      rooms_[worker].used[s_.depth[t] % 2] -= square_room(s_.below(t));
    }
  }

  // Of a child's rows in its parent.
  static std::vector<cpu::DenseRun> runs_of(const std::vector<Point>& rows, const std::vector<std::int32_t>& place) {
    std::vector<cpu::DenseRun> runs;
    for (std::int64_t i = 0; i < std::ssize(rows); ++i) {
      const std::int64_t at = place[rows[i]];
      if (!runs.empty() && at == runs.back().at + i - runs.back().begin) {
        ++runs.back().end;
      } else {
        runs.push_back({i, i + 1, at});
      }
    }
    return runs;
  }

  // Where each row of the front stands: own points first.
  std::vector<std::int32_t>& places_of(std::int32_t t, int worker) {
    std::vector<std::int32_t>& place = rooms_[worker].place;
    if (place.empty()) place.assign(static_cast<std::size_t>(a_.points), 0);
    std::int32_t next = 0;
    for (Point i = s_.nodes[t].begin; i < s_.nodes[t].end; ++i) place[i] = next++;
    for (const Point row : s_.rows[t]) place[row] = next++;
    return place;
  }

  void assemble(std::int32_t t, const Front& f, int worker) {
    const std::vector<std::int32_t>& place = places_of(t, worker);
    const Point begin = s_.nodes[t].begin;
    core::parallel_for(ctx_, tiles_of(f.own, kDenseWidth), [&](std::int64_t task, int /*worker*/) {
      for (std::int64_t j = task * kDenseWidth; j < std::min(f.own, (task + 1) * kDenseWidth); ++j) {
        double* column = f.panel + j * f.height;
        std::fill_n(column, f.height, 0.0);
        add_row_of_m(begin + static_cast<Point>(j), place, column);
      }
    });
    core::parallel_for(ctx_, tiles_of(f.below, kDenseWidth), [&](std::int64_t task, int /*worker*/) {
      // An update writes above the diagonal only within its tile.
      const std::int64_t from = task * kDenseWidth / kDenseTile * kDenseTile;
      for (std::int64_t j = task * kDenseWidth; j < std::min(f.below, (task + 1) * kDenseWidth); ++j) {
        std::fill_n(f.square + square_column(f.below, j) + from, f.below - from, 0.0);
      }
    });
    for (const std::int32_t child : s_.children[t]) {
      const auto size = static_cast<std::int64_t>(s_.rows[child].size());
      const double* from = squares_[child];
      const std::vector<cpu::DenseRun> runs = runs_of(s_.rows[child], place);
      core::parallel_for(ctx_, tiles_of(size, kDenseWidth), [&](std::int64_t task, int /*worker*/) {
        std::size_t of_column = 0;
        for (std::int64_t j = task * kDenseWidth; j < std::min(size, (task + 1) * kDenseWidth); ++j) {
          while (runs[of_column].end <= j) ++of_column;
          const std::int64_t at = runs[of_column].at + j - runs[of_column].begin;
          // Rows ascend in both, so that what is below the diagonal stays there.
          double* to = at < f.own ? f.panel + at * f.height : f.square + square_column(f.below, at - f.own) - f.own;
          kernels_.add(runs.data() + of_column, runs.data() + runs.size(), j, from + square_column(size, j), to);
        }
      });
      forget_square(child, worker);
    }
  }

  // Row `i` of M, from its diagonal on.
  void add_row_of_m(Point i, const std::vector<std::int32_t>& place, double* column) const {
    for (std::int64_t e = in_.first[i]; e < in_.first[i + 1]; ++e) {
      const Point block = in_.blocks[e];
      const std::int64_t at = in_.at[e];
      const Point* const cols = a_.cols.data() + block * a_.width;
      const double* const values = a_.values.data() + a_.first[block] * a_.width;
      const double* const end = a_.values.data() + a_.first[block + 1] * a_.width;
      for (std::int64_t c = ascending_ ? at : 0; c < a_.width; ++c) {
        if (cols[c] < i) continue;
        double sum = 0;
        for (const double* row = values; row != end; row += a_.width) sum += row[at] * row[c];
        column[place[cols[c]]] += sum;
      }
    }
    column[place[i]] -= pencil_.shift;
    if (i + 1 == a_.points) column[place[i]] += pencil_.ground;
  }

  // Columns [first, first + kUpdatedColumns) of a panel: what the columns before take from them, all at once, so that
  // rows are packed once for them; then block by block.
  void eliminate_columns(const Front& f, std::int64_t first) {
    const std::int64_t end = std::min(f.own, first + kUpdatedColumns);
    update_columns(f, 0, first, end);
    for (std::int64_t begin = first; begin < end; begin += kDenseWidth) eliminate_block(f, first, begin);
  }

  // What the columns [from, begin) take from the columns [begin, end).
  void update_columns(const Front& f, std::int64_t from, std::int64_t begin, std::int64_t end) {
    const double* rows = f.panel + from * f.height + begin;
    update({.m = f.height - begin,
            .n = end - begin,
            .k = begin - from,
            .a = rows,
            .a_step = f.height,
            .b = rows,
            .b_step = f.height,
            .scale = f.pivots + from,
            .c = f.panel + begin * f.height + begin,
            .c_step = f.height});
  }

  // Columns [begin, begin + kDenseWidth), from which only the columns [first, begin) have not taken yet: their own
  // block, and the rows below it.
  void eliminate_block(const Front& f, std::int64_t first, std::int64_t begin) {
    const std::int64_t width = std::min(kDenseWidth, f.own - begin);
    double* block = f.panel + begin * f.height + begin;
    update_columns(f, first, begin, begin + width);
    kernels_.eliminate({width, block, f.height, f.pivots + begin, kept_pivot});
    const std::int64_t left = f.height - begin - width;
    core::parallel_for(ctx_, tiles_of(left, kSolveRows), [&](std::int64_t task, int /*worker*/) {
      const std::int64_t from = task * kSolveRows;
      kernels_.solve({.m = std::min(kSolveRows, left - from),
                      .width = width,
                      .l = block,
                      .l_step = f.height,
                      .d = f.pivots + begin,
                      .p = block + width + from,
                      .p_step = f.height});
    });
  }

  // An update of any size, by tiles on and below the diagonal.
  void update(const cpu::DenseUpdate& all) {
    if (all.m == 0 || all.n == 0 || all.k == 0) return;
    const std::int64_t across = tiles_of(all.n, kDenseTile);
    core::parallel_for(ctx_, tiles_of(all.m, kDenseTile) * across, [&](std::int64_t task, int worker) {
      const std::int64_t i = task / across * kDenseTile;
      const std::int64_t j = task % across * kDenseTile;
      if (j > i) return;
      core::AlignedArray<double>& packed = rooms_[worker].packed;
      packed.reserve(cpu::kDenseRoom);
      cpu::DenseUpdate tile = all;
      tile.m = std::min(kDenseTile, all.m - i);
      tile.n = std::min(kDenseTile, all.n - j);
      tile.a += i;
      tile.b += j;
      tile.c += (all.c_step == kSquare ? square_column(all.m, j) : j * all.c_step) + i;
      if (all.c_step == kSquare) tile.c_step = all.m - j;
      tile.shift = i - j;
      tile.room = packed.data();
      kernels_.update(tile);
    });
  }

  const Context& ctx_;
  const LocalRows& a_;
  const Incidence& in_;
  const Symbolic& s_;
  Pencil pencil_;
  float* high_;
  std::uint8_t* low_;
  double* pivots_;
  const cpu::DenseKernels& kernels_;
  bool ascending_;  // the columns of all blocks: a row of M is then added up without looking at those before it
  std::vector<double*> squares_;                     // of each node
  std::vector<core::AlignedArray<double>> waiting_;  // squares that are not on a stack, of each node
  std::vector<Room> rooms_;                          // of each worker
};

std::int64_t negative_of(const std::vector<double>& pivots) {
  return std::count_if(pivots.begin(), pivots.end(), [](double pivot) { return pivot < 0; });
}

}  // namespace

Factor::Factor(const Context& ctx, const LocalRows& a, const Incidence& in, const Symbolic& s, const Pencil& pencil)
    : s_(s),
      high_(s.panel.back() + cpu::kFiveBytesMore),
      low_(s.panel.back() + cpu::kFiveBytesMore),
      pivots_(static_cast<std::size_t>(a.points)) {
  Assembly(ctx, a, in, s, pencil, high_.data(), low_.data(), pivots_.data()).run();
}

std::int64_t Factor::negative() const noexcept {
  return negative_of(pivots_);
}

std::int64_t negative_pivots(const Context& ctx, const LocalRows& a, const Incidence& in, const Symbolic& s,
                             const Pencil& pencil) {
  std::vector<double> pivots(static_cast<std::size_t>(a.points));
  Assembly(ctx, a, in, s, pencil, nullptr, nullptr, pivots.data()).run();
  return negative_of(pivots);
}

}  // namespace vicinal::solver
