#include "cpu/nearest/tree/left_rows.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <span>

#include "core/context_state.hpp"
#include "core/in_steps.hpp"
#include "core/infinity.hpp"
#include "core/poll.hpp"
#include "core/table_access.hpp"
#include "cpu/nearest/cost.hpp"
#include "cpu/nearest/gathered.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/nearest.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kLeftRowsAtOnce = 16384;
constexpr std::int64_t kNearRowsAtOnce = 2048;  // more have more leaves around them
constexpr std::int64_t kRunRows = 128;          // near rows that share a box
constexpr std::size_t kKeptScreens = 2;         // the coarsest, whose rows are packed once for all searches
constexpr std::int64_t kPointsToAsk = 512;
constexpr std::int64_t kPointsOfNear = 2048;
constexpr double kShareOfNear = 1.0 / 3;  // of the time that a tree takes for a near row; 1,000,000 rows of 16 columns
constexpr std::int64_t kMinTableRows = 8192;
constexpr std::int64_t kMinTableColumns = 8;  // in fewer, boxes keep rows apart
constexpr std::int64_t kMaxTableColumns = 4096;

/// The search of rows of the task by screens, of as many as are searched for at once.
kernels::NearestTask by_screens(const Context& ctx, const kernels::NearestTask& task) {
  const TableView& table = task.index->table;
  kernels::NearestTask some = task;
  some.method = Method::fused;
  some.tree = nullptr;
  some.queries = TableView(table.data(), table.dtype(), std::min(table.rows(), kLeftRowsAtOnce), table.cols(),
                           table.row_stride(), table.col_stride());
  some.self = false;
  some.any_order = false;
  some.kept_screens = static_cast<int>(std::min(kKeptScreens, screen_types(some, simd_kernels(ctx.isa())).size()));
  return some;
}

/// Points that a tree ranks in the time in which screens compare a row with the whole table.
std::int64_t points_of_table(const Context& ctx, const kernels::NearestTask& some) {
  const bool bytes = screen_types(some, simd_kernels(ctx.isa())).front() == ScreenType::int8;
  const kernels::Costs costs = cpu::costs(ctx, some, bytes);
  return static_cast<std::int64_t>(costs.brute / static_cast<double>(some.queries.rows()) / costs.tree_row);
}

std::int64_t near_of(std::int64_t points_of_far) {
  return std::min(points_of_far / 4, kPointsOfNear);
}
std::int64_t asked_of(std::int64_t points_of_far) {
  return std::min(points_of_far / 8, kPointsToAsk);
}

}  // namespace

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
  const std::uint64_t runs = kNearRowsAtOnce / kRunRows * static_cast<std::uint64_t>(2 * table.cols() + 8);
  const kernels::NearestTask some = by_screens(ctx, task);
  const std::vector<kernels::PackedNeed> packed = packed_needs(ctx, some);
  kernels::NearestTask one_row = some;  // of which rows are ranked one by one, whatever their type
  one_row.queries = some.queries.slice(0, 1);
  std::uint64_t bytes = nearest_scratch(ctx, some) + nearest_scratch(ctx, one_row) + runs * sizeof(double);
  for (int screen = 0; screen < some.kept_screens; ++screen) bytes += packed[static_cast<std::size_t>(screen)].bytes;
  return bytes + rows * (2 + 4 * sizeof(std::int64_t)) +
         static_cast<std::uint64_t>(some.queries.rows() * (row_bytes + 16 * task.k + 32));
}

kernels::LeftToScreens LeftRows::costs(const Context& ctx, const kernels::NearestTask& task) {
  if (!serve(ctx, task)) return {};
  const std::int64_t far = points_of_table(ctx, by_screens(ctx, task));
  return {static_cast<double>(near_of(far)), static_cast<double>(asked_of(far)), kShareOfNear,
          static_cast<double>(far)};
}

LeftRows::LeftRows(const Context& ctx, const kernels::NearestTask& task, const Tree& tree, const TreeKeys& keys,
                   bool in_tree_order)
    : ctx_(ctx),
      quiet_(core::ContextAccess::context(std::make_shared<core::ContextAccess::State>(
          core::ContextAccess::state(ctx), core::ContextAccess::state(ctx).memory_limit))),
      task_(task),
      by_screens_(by_screens(ctx, task)),
      tree_(tree),
      keys_(keys),
      in_tree_order_(in_tree_order),
      points_of_far_(points_of_table(ctx, by_screens_)),
      points_of_near_(near_of(points_of_far_)),
      points_to_ask_(asked_of(points_of_far_)),
      left_(static_cast<std::size_t>(task.index->table.rows()), Left::none) {
  by_screens_.index = &ordered_;
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

void LeftRows::search(kernels::NearestResult& result, const std::function<void(std::int64_t)>& found) {
  search_all(Left::near, kNearRowsAtOnce, result, found);
  search_all(Left::far, kLeftRowsAtOnce, result, found);
}

void LeftRows::search_all(Left which, std::int64_t rows_at_once, kernels::NearestResult& result,
                          const std::function<void(std::int64_t)>& found) {
  core::Poll poll(ctx_);
  std::vector<std::int64_t> points;
  points.reserve(static_cast<std::size_t>(std::min(std::ssize(left_), rows_at_once)));
  const auto search_those = [&] {
    if (points.empty()) return;
    search_some(points, which == Left::near, result);
    found(std::ssize(points));
    points.clear();
  };
  for (std::int64_t point = 0; point < std::ssize(left_); ++point) {
    poll.step();
    if (left_[static_cast<std::size_t>(point)] != which) continue;
    points.push_back(point);
    if (std::ssize(points) == rows_at_once) search_those();
  }
  search_those();
}

void LeftRows::search_some(std::span<const std::int64_t> points, bool are_near, kernels::NearestResult& result) {
  if (!ordered_.grouped()) order_table();
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
  if (are_near) {
    bound_runs(queries.view(), limits);
    take_leaves_around();
  } else {
    core::resize_in_steps(ctx_, around_, std::ssize(left_));
    std::iota(around_.begin(), around_.end(), std::int64_t{0});
  }
  some.some_rows = around_;
  std::vector<std::int64_t> ids(points.size() * static_cast<std::size_t>(k));
  std::vector<double> distances(ids.size());
  std::vector<std::int64_t> unused;
  SearchStats stats;
  kernels::NearestResult lists{ids, distances, unused, unused, stats};
  nearest(quiet_, some, lists);
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
  core::resize_in_steps(ctx_, ordered_.member_offsets, std::ssize(order) + 1);
  std::iota(ordered_.member_offsets.begin(), ordered_.member_offsets.end(), std::int64_t{0});
  pack_rows(quiet_, by_screens_);
}

/// Boxes around near rows, of which each has some that follow each other.
void LeftRows::bound_runs(const TableView& rows, std::span<const double> limits) {
  const auto d = static_cast<std::size_t>(rows.cols());
  runs_.clear();
  std::vector<double> x(d);
  for (std::int64_t i = 0; i < rows.rows(); ++i) {
    if (i % kRunRows == 0) {
      runs_.push_back({std::vector<double>(d, kInfinity), std::vector<double>(d, -kInfinity), -kInfinity});
    }
    Run& run = runs_.back();
    core::widen_rows(rows, i, i + 1, x.data());
    for (std::size_t j = 0; j < d; ++j) {
      run.low[j] = std::min(run.low[j], x[j]);
      run.high[j] = std::max(run.high[j], x[j]);
    }
    run.reach = std::max(run.reach, limits[static_cast<std::size_t>(i)]);
  }
}

/// The leaves that are within reach of some box, as whole panels, which are copied rather than packed again.
void LeftRows::take_leaves_around() {
  const std::int64_t n = task_.index->table.rows();
  const std::int64_t width = simd_kernels(ctx_.isa()).tile_rows;
  taken_.assign(static_cast<std::size_t>((n + width - 1) / width), 0);
  std::vector<std::int64_t> nodes = {tree_.child(0).at};
  while (!nodes.empty()) {
    const std::int64_t node = nodes.back();
    nodes.pop_back();
    ctx_.check_cancelled();
    alignas(64) double keys[kTreeWidth];
    const std::uint32_t lanes = tree_.lanes(node);
    std::uint32_t near = 0;
    for (const Run& run : runs_) {
      near |= keys_.boxes_of_box(run.low.data(), run.high.data(), tree_.boxes(node), run.reach, keys) & lanes;
      if (near == lanes) break;
    }
    for (; near != 0; near &= near - 1) {
      const Tree::Child& child = tree_.child(Tree::child_of(node, std::countr_zero(near)));
      if (child.size == 0) {
        nodes.push_back(child.at);
        continue;
      }
      const std::int64_t first = child.first / width;
      const std::int64_t last = (child.first + child.size - 1) / width;
      std::fill_n(taken_.begin() + first, last - first + 1, std::uint8_t{1});
    }
  }
  around_.clear();
  for (std::int64_t panel = 0; panel < std::ssize(taken_); ++panel) {
    if (taken_[static_cast<std::size_t>(panel)] == 0) continue;
    for (std::int64_t at = panel * width; at < std::min(n, (panel + 1) * width); ++at) around_.push_back(at);
  }
}

}  // namespace vicinal::cpu
