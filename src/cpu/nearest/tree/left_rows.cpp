#include "cpu/nearest/tree/left_rows.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <span>
#include <string_view>

#include "core/context_state.hpp"
#include "core/in_steps.hpp"
#include "core/poll.hpp"
#include "core/table_access.hpp"
#include "cpu/nearest/cost.hpp"
#include "cpu/nearest/gathered.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/nearest.hpp"
#include "cpu/nearest/tree/search.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kMinTableRows = 8192;
constexpr std::int64_t kMinTableColumns = 8;  // in fewer, boxes keep rows apart
constexpr std::int64_t kMaxTableColumns = 4096;
constexpr std::int64_t kPointsBefore = 512;
constexpr std::int64_t kPointsOfNear = 2048;
constexpr std::int64_t kShareOfFar = 8;         // a far row has that part of the table within reach, or more
constexpr double kMaxLimits = 4;                // of the middle one of near rows, that a near row may have
constexpr double kScreensGain = 0.6;            // of the time of a search by screens: limits are known, rows are packed
constexpr double kShareOfNear = 1.0 / 3;        // of the time in the tree; measured: 1,000,000 rows of 16 columns
constexpr std::int64_t kMinLeftRows = 256;      // fewer are not worth packing the table
constexpr std::int64_t kMaxFarRows = 16384;     // of a search
constexpr std::int64_t kMaxNearRows = 2048;     // a larger search has more leaves within reach
constexpr std::int64_t kMaxNearPoints = 65536;  // from the first near row of a search to its last one
constexpr std::int64_t kMaxRunRows = 128;
constexpr std::int64_t kMaxRunPoints = 1024;
constexpr std::int64_t kMaxQueryBytes = std::int64_t{64} << 20;
constexpr std::size_t kKeptScreens = 2;  // the coarsest, whose rows are packed once for all searches

/// The search of rows of the task by screens, with as many queries as it has at most.
kernels::NearestTask by_screens(const Context& ctx, const kernels::NearestTask& task) {
  const TableView& table = task.index->table;
  const std::int64_t fitting = std::max(kMaxNearRows, kMaxQueryBytes / (table.cols() * size_of(table.dtype())));
  kernels::NearestTask some = task;
  some.method = Method::fused;
  some.tree = nullptr;
  some.queries = TableView(table.data(), table.dtype(), std::min({table.rows(), kMaxFarRows, fitting}), table.cols(),
                           table.row_stride(), table.col_stride());
  some.self = false;
  some.same_rows = false;
  some.any_order = false;
  some.pruned = false;
  some.kept_screens = static_cast<int>(std::min(kKeptScreens, screen_types(some, simd_kernels(ctx.isa())).size()));
  return some;
}

std::int64_t screens_points(const Context& ctx, const kernels::NearestTask& some) {
  const bool bytes = screen_types(some, simd_kernels(ctx.isa())).front() == ScreenType::int8;
  return tree_rows_of_screens(ctx.isa(), some, bytes);
}
std::int64_t near_points(std::int64_t screens_points) {
  return std::min(screens_points / 4, kPointsOfNear);
}
std::int64_t points_before_look(std::int64_t screens_points) {
  return std::min(screens_points / 8, kPointsBefore);
}

}  // namespace

void take_leaves(const Context& ctx, const Tree& tree, const TreeKeys& keys, std::span<const RowRun> runs,
                 std::int64_t width, std::vector<std::int64_t>& places) {
  const std::int64_t n = std::ssize(tree.shape().order);
  places.clear();
  std::int64_t panel = 0;  // that is taken next, or a later one
  std::vector<std::int64_t> children = {0};
  while (!children.empty()) {
    const Tree::Child& child = tree.child(children.back());
    children.pop_back();
    if (child.size > 0) {
      panel = std::max(panel, child.first / width);
      for (; panel <= (child.first + child.size - 1) / width; ++panel) {
        for (std::int64_t at = panel * width; at < std::min(n, (panel + 1) * width); ++at) places.push_back(at);
      }
      continue;
    }
    ctx.check_cancelled();
    alignas(64) double box_keys[kTreeWidth];
    const std::uint32_t lanes = tree.lanes(child.at);
    std::uint32_t near = 0;
    for (const RowRun& run : runs) {
      near |= keys.boxes_of_box(run.low.data(), run.high.data(), tree.boxes(child.at), run.limit, box_keys) & lanes;
      if (near == lanes) break;
    }
    while (near != 0) {  // the first child is taken first
      const int lane = std::bit_width(near) - 1;
      near ^= std::uint32_t{1} << lane;
      children.push_back(Tree::child_of(child.at, lane));
    }
  }
}

bool LeftRows::serve(const Context& ctx, const kernels::NearestTask& task) {
  const TableView& table = task.index->table;
  return table.rows() >= kMinTableRows && table.cols() >= kMinTableColumns && table.cols() <= kMaxTableColumns &&
         !table.is_block_source() && !task.index->grouped() && task.exclude.empty() &&
         by_screens(ctx, task).kept_screens > 0;
}

std::uint64_t LeftRows::bytes(const Context& ctx, const kernels::NearestTask& task) {
  if (!serve(ctx, task)) return 0;
  const TableView& table = task.index->table;
  const auto rows = static_cast<std::uint64_t>(table.rows());
  const std::int64_t row_bytes = table.cols() * size_of(table.dtype());
  constexpr std::int64_t kMaxRuns = kMaxNearRows / kMaxRunRows + kMaxNearPoints / kMaxRunPoints + 1;
  const std::uint64_t runs = kMaxRuns * static_cast<std::uint64_t>(2 * table.cols() + 16) * sizeof(double);
  const kernels::NearestTask some = by_screens(ctx, task);
  kernels::NearestTask one_row = some;  // of which rows are ranked one by one, whatever their type
  one_row.queries = some.queries.slice(0, 1);
  std::uint64_t bytes = nearest_scratch(ctx, some) + nearest_scratch(ctx, one_row) + runs;
  const std::vector<kernels::PackedNeed> packed = packed_needs(ctx, some);
  for (int screen = 0; screen < some.kept_screens; ++screen) bytes += packed[static_cast<std::size_t>(screen)].bytes;
  return bytes + rows * (1 + 4 * sizeof(std::int64_t)) +
         static_cast<std::uint64_t>(some.queries.rows() * (row_bytes + 16 * task.k + 32));
}

kernels::LeftToScreens LeftRows::costs(const Context& ctx, const kernels::NearestTask& task) {
  if (!serve(ctx, task)) return {};
  const std::int64_t far = screens_points(ctx, by_screens(ctx, task));
  return {static_cast<double>(near_points(far)), static_cast<double>(points_before_look(far)), kShareOfNear,
          static_cast<double>(far)};
}

LeftRows::LeftRows(const Context& ctx, const kernels::NearestTask& task, const Tree& tree, const TreeKeys& keys,
                   bool in_tree_order)
    : ctx_(ctx),
      part_ctx_(ctx),
      task_(task),
      by_screens_(by_screens(ctx, task)),
      tree_(tree),
      keys_(keys),
      in_tree_order_(in_tree_order),
      points_of_screens_(screens_points(ctx, by_screens_)),
      points_of_near_(near_points(points_of_screens_)),
      points_before_(points_before_look(points_of_screens_)),
      reaches_(static_cast<std::size_t>(task.index->table.rows()), Reach::unknown) {
  const core::ContextAccess::State& all = core::ContextAccess::state(ctx);
  const auto state = std::make_shared<core::ContextAccess::State>(all, all.memory_limit);
  if (state->progress) {
    state->progress = [this](std::string_view stage, double done) {
      if (stage == "search") (*report_)((num_found_ + done * num_searched_) / num_left_);
    };
  }
  part_ctx_ = core::ContextAccess::context(state);
}

Reach LeftRows::reach_of(const double* x, double limit, std::int64_t compared) const {
  const std::int64_t much = std::max(points_of_screens_, std::ssize(reaches_) / kShareOfFar);
  const std::int64_t points = points_within(x, limit, compared + much) - compared;
  if (points > much) return Reach::far;
  return points > (near_pays_ ? points_of_near_ : points_of_screens_) ? Reach::near : Reach::few;
}

void LeftRows::try_near(std::int64_t point, const double* x, double limit, std::int64_t compared) {
  const std::int64_t n = std::ssize(reaches_);
  const std::int64_t first = point / kMaxNearRows * kMaxNearRows;
  std::vector<std::int64_t> points;
  std::vector<std::int64_t> rows;
  for (std::int64_t at = first; at < std::min(n, first + kMaxNearRows); ++at) {
    points.push_back(at);
    rows.push_back(row(at));
  }
  const std::vector<double> limits(points.size(), limit);
  Gathered around;
  around.take(ctx_, task_.queries, rows);
  bound_runs(around.view(), points, limits);
  around_.reserve(static_cast<std::size_t>(n));
  take_leaves(ctx_, tree_, keys_, runs_, simd_kernels(ctx_.isa()).tile_rows, around_);
  const auto share = static_cast<double>(around_.size()) / static_cast<double>(n);
  screens_points_ += kScreensGain * share * static_cast<double>(points_of_screens_);
  tree_points_ += static_cast<double>(points_within(x, limit, n) - compared);
}

void LeftRows::decide() noexcept {
  near_pays_ = screens_points_ < tree_points_;
  if (!near_pays_) points_before_ = std::max(points_before_, points_of_screens_ / 8);
}

std::int64_t LeftRows::points_within(const double* x, double limit, std::int64_t most) const {
  std::int64_t stack[(Tree::kMaxDepth + 2) * kTreeWidth];
  int size = 0;
  stack[size++] = tree_.child(0).at;
  std::int64_t within = 0;
  while (size > 0 && within <= most) {
    const std::int64_t node = stack[--size];
    ctx_.check_cancelled();
    alignas(64) double keys[kTreeWidth];
    std::uint32_t near = keys_.boxes(x, tree_.boxes(node), limit, keys) & tree_.lanes(node);
    for (; near != 0; near &= near - 1) {
      const Tree::Child& child = tree_.child(Tree::child_of(node, std::countr_zero(near)));
      if (child.size > 0) {
        within += child.size;
      } else {
        stack[size++] = child.at;
      }
    }
  }
  return within;
}

void LeftRows::search(kernels::NearestResult& result, const std::function<void(double)>& report) {
  report_ = &report;
  core::Poll poll(ctx_);
  std::int64_t count = 0;
  for (const Reach reach : reaches_) {
    poll.step();
    if (reach != Reach::unknown) ++count;
  }
  if (count == 0) return;
  num_left_ = static_cast<double>(count);
  num_found_ = 0;
  if (count < kMinLeftRows) {
    for (Reach& reach : reaches_) {
      poll.step();
      if (reach != Reach::unknown) reach = Reach::few;
    }
    return search_all(Reach::few, kMinLeftRows, result);
  }
  order_table();
  search_all(Reach::near, kMaxNearRows, result);
  search_all(Reach::far, by_screens_.queries.rows(), result);
}

void LeftRows::search_all(Reach reach, std::int64_t max_rows, kernels::NearestResult& result) {
  core::Poll poll(ctx_);
  std::vector<std::int64_t> points;
  points.reserve(static_cast<std::size_t>(std::min(std::ssize(reaches_), max_rows)));
  const auto search_points = [&] {
    if (points.empty()) return;
    if (reach == Reach::near) part_from_far(points, result);
    num_searched_ = static_cast<double>(points.size());
    search_some(points, reach, result);
    num_found_ += num_searched_;
    (*report_)(num_found_ / num_left_);
    points.clear();
  };
  for (std::int64_t point = 0; point < std::ssize(reaches_); ++point) {
    poll.step();
    if (reaches_[static_cast<std::size_t>(point)] != reach) continue;
    if (reach == Reach::near && !points.empty() && point - points.front() >= kMaxNearPoints) search_points();
    points.push_back(point);
    if (std::ssize(points) == max_rows) search_points();
  }
  search_points();
}

/// Rows that reach much farther than most of those around them, such as noise in a cluster, are far: the leaves within
/// their reach would be compared with all of the others, too.
void LeftRows::part_from_far(std::vector<std::int64_t>& points, const kernels::NearestResult& result) {
  const auto limit_of = [&](std::int64_t point) {
    return result.distances[static_cast<std::size_t>(place(point) * task_.k)];
  };
  std::vector<double> limits(points.size());
  std::transform(points.begin(), points.end(), limits.begin(), limit_of);
  const auto middle = limits.begin() + std::ssize(limits) / 2;
  std::nth_element(limits.begin(), middle, limits.end());
  std::erase_if(points, [&](std::int64_t point) {
    const bool is_far = limit_of(point) > kMaxLimits * *middle;
    if (is_far) reaches_[static_cast<std::size_t>(point)] = Reach::far;
    return is_far;
  });
}

/// Few rows are searched for in the tree.
void LeftRows::search_some(std::span<const std::int64_t> points, Reach reach, kernels::NearestResult& result) {
  const std::int64_t k = task_.k;
  std::vector<std::int64_t> rows;
  std::vector<double> limits;
  rows.reserve(points.size());
  limits.reserve(points.size());
  for (const std::int64_t point : points) {
    rows.push_back(row(point));
    limits.push_back(result.distances[static_cast<std::size_t>(place(point) * k)]);
  }
  Gathered queries;
  queries.take(ctx_, task_.queries, rows);
  kernels::NearestTask some = by_screens_;
  some.queries = queries.view();
  some.exclude = rows;  // not their own neighbors
  some.max_keys = limits;
  if (reach == Reach::few) {
    some.method = Method::kdtree;
    some.tree = &tree_;
  } else {
    some.index = &ordered_;
    if (reach == Reach::near) {
      bound_runs(queries.view(), points, limits);
      const std::int64_t width = simd_kernels(ctx_.isa()).tile_rows;  // panels are copied, not packed again
      take_leaves(ctx_, tree_, keys_, runs_, width, around_);
    } else {
      core::number_in_steps(ctx_, around_, std::ssize(reaches_));
    }
    some.some_rows = around_;
  }
  std::vector<std::int64_t> ids(points.size() * static_cast<std::size_t>(k));
  std::vector<double> distances(ids.size());
  std::vector<std::int64_t> unused;
  SearchStats stats;
  kernels::NearestResult lists{ids, distances, unused, unused, stats};
  if (reach == Reach::few) {
    nearest_in_tree(part_ctx_, some, lists);
  } else {
    nearest(part_ctx_, some, lists);
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::int64_t to = place(points[i]) * k;
    std::copy_n(ids.data() + static_cast<std::int64_t>(i) * k, k, result.ids.data() + to);
    std::copy_n(distances.data() + static_cast<std::int64_t>(i) * k, k, result.distances.data() + to);
  }
  result.stats.survivors += stats.survivors;
  result.stats.escalated += stats.escalated;
  result.stats.uncertified += stats.uncertified;
}

/// The table in the order of the tree, packed for the coarsest screens.
void LeftRows::order_table() {
  const kernels::Prepared& all = *task_.index;
  const std::vector<std::int64_t>& order = tree_.shape().order;
  ordered_.table = all.table;
  ordered_.centre = all.centre;
  ordered_.largest = all.largest;
  for (std::vector<std::int64_t>* rows : {&ordered_.members, &ordered_.distinct}) {
    core::resize_in_steps(ctx_, *rows, std::ssize(order));
    core::copy_in_steps(ctx_, order, rows->data());
  }
  core::number_in_steps(ctx_, ordered_.member_offsets, std::ssize(order) + 1);
  kernels::NearestTask all_rows = by_screens_;
  all_rows.index = &ordered_;
  pack_rows(part_ctx_, all_rows);
  around_.reserve(order.size());
}

/// Boxes around the rows of a search. Those of a run are few and close to each other.
void LeftRows::bound_runs(const TableView& rows, std::span<const std::int64_t> points, std::span<const double> limits) {
  const auto d = static_cast<std::size_t>(rows.cols());
  runs_.clear();
  std::vector<double> x(d);
  for (std::int64_t i = 0; i < rows.rows(); ++i) {
    const std::int64_t point = points[static_cast<std::size_t>(i)];
    if (runs_.empty() || runs_.back().rows == kMaxRunRows || point - runs_.back().first >= kMaxRunPoints) {
      runs_.push_back({std::vector<double>(d, kInfinity), std::vector<double>(d, -kInfinity), -kInfinity, point});
    }
    RowRun& run = runs_.back();
    core::widen_rows(rows, i, i + 1, x.data());
    for (std::size_t j = 0; j < d; ++j) {
      run.low[j] = std::min(run.low[j], x[j]);
      run.high[j] = std::max(run.high[j], x[j]);
    }
    run.limit = std::max(run.limit, limits[static_cast<std::size_t>(i)]);
    ++run.rows;
  }
}

}  // namespace vicinal::cpu
