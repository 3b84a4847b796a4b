// Rows of a table that a kd-tree would compare with more points than screens take time for are left to the screens
// (Method::fused). FAR rows, such as noise between clusters, have much of the table within reach and are compared with
// all of it. NEAR rows, such as those of a large cluster, are compared with the leaves within reach of the rows around
// them. Where there are no clusters these leaves are most of the table; then fewer rows are left (LeftRows::decide).
// The screens have the table in the order of its tree, so that the points of a leaf are rows that follow each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backend/nearest.hpp"
#include "core/infinity.hpp"
#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// How many points are within reach of a row: so few that it stays in the tree, or more.
enum class Reach : std::uint8_t { unknown, few, near, far };

/// What was found out about rows that are close to each other: the reach of a row grows with the limit of its list.
class KnownReach {
 public:
  void note(double limit, Reach reach) noexcept {
    if (reach == Reach::few) max_few_ = std::max(max_few_, limit);
    if (reach == Reach::far) min_far_ = std::min(min_far_, limit);
    if (reach != Reach::near) return;
    min_near_ = std::min(min_near_, limit);
    max_near_ = std::max(max_near_, limit);
  }
  [[nodiscard]] Reach of(double limit) const noexcept {
    if (limit <= max_few_) return Reach::few;
    if (limit >= min_far_) return Reach::far;
    return min_near_ <= limit && limit <= max_near_ ? Reach::near : Reach::unknown;
  }

 private:
  double max_few_ = -kInfinity;
  double min_near_ = kInfinity;
  double max_near_ = -kInfinity;
  double min_far_ = kInfinity;
};

/// Some rows that follow each other in the order of a tree.
struct RowRun {
  std::vector<double> low;    // [d] smallest values
  std::vector<double> high;   // [d] largest values
  double limit = -kInfinity;  // the largest one of their lists
  std::int64_t first = 0;     // place of the first row in the order of the tree
  std::int64_t rows = 0;
};

/// Replaces `places` by those of the points of all leaves within reach of some run, and of the others that lie in one
/// panel of `width` points with one of them, ascending.
void take_leaves(const Context& ctx, const Tree& tree, const TreeKeys& keys, std::span<const RowRun> runs,
                 std::int64_t width, std::vector<std::int64_t>& places);

/// The rows of a table within itself that are left, in the order of the tree.
class LeftRows {
 public:
  /// Whether rows of this task may be left.
  static bool serve(const Context& ctx, const kernels::NearestTask& task);
  /// What an object and its searches take at most.
  static std::uint64_t bytes(const Context& ctx, const kernels::NearestTask& task);
  /// Which rows are left, and what they cost.
  static kernels::LeftToScreens costs(const Context& ctx, const kernels::NearestTask& task);

  /// Borrows all.
  LeftRows(const Context& ctx, const kernels::NearestTask& task, const Tree& tree, const TreeKeys& keys,
           bool in_tree_order);

  /// A row is looked at when it has been compared with so many points.
  [[nodiscard]] std::int64_t points_before() const noexcept { return points_before_; }
  /// Of a near row x [d], at this place of the tree's order, that has been compared with `compared` points: what it and
  /// the rows around it would cost in the tree, and by screens.
  void try_near(std::int64_t point, const double* x, double limit, std::int64_t compared);
  /// Near rows stay in the tree, as if they were few, if those that were tried cost less there. The leaves within reach
  /// of many rows are most of the table where rows are not in clusters.
  void decide() noexcept;
  /// The reach of a row x [d] that has been compared with `compared` points. Any thread.
  [[nodiscard]] Reach reach_of(const double* x, double limit, std::int64_t compared) const;
  /// Points in boxes within reach of x [d], or any larger number than `most`. Any thread.
  [[nodiscard]] std::int64_t points_within(const double* x, double limit, std::int64_t most) const;
  /// Leaves the row at this place of the tree's order, none of whose neighbors has a larger key than `limit`. Any
  /// thread, each row once. The row's list is written by `search`.
  void add(std::int64_t point, Reach reach, double limit, kernels::NearestResult& result) noexcept {
    reaches_[static_cast<std::size_t>(point)] = reach;
    result.distances[static_cast<std::size_t>(place(point) * task_.k)] = limit;
  }
  /// Finds the lists of all rows that were left. Calls `report` with the share of them that is found.
  void search(kernels::NearestResult& result, const std::function<void(double)>& report);

 private:
  [[nodiscard]] std::int64_t row(std::int64_t point) const noexcept {
    return tree_.shape().order[static_cast<std::size_t>(point)];
  }
  [[nodiscard]] std::int64_t place(std::int64_t point) const noexcept { return in_tree_order_ ? point : row(point); }
  void order_table();
  void search_all(Reach reach, std::int64_t max_rows, kernels::NearestResult& result);
  void part_from_far(std::vector<std::int64_t>& points, const kernels::NearestResult& result);
  void search_some(std::span<const std::int64_t> points, Reach reach, kernels::NearestResult& result);
  void bound_runs(const TableView& rows, std::span<const std::int64_t> points, std::span<const double> limits);

  const Context& ctx_;
  Context part_ctx_;  // reports what a search is of all rows that are left
  const kernels::NearestTask& task_;
  kernels::NearestTask by_screens_;  // but for its queries
  const Tree& tree_;
  const TreeKeys& keys_;
  bool in_tree_order_;
  std::int64_t points_of_screens_;  // that a tree ranks while screens compare a row with the whole table
  std::int64_t points_of_near_;     // of more, a row is near if that pays
  std::int64_t points_before_;
  bool near_pays_ = true;
  double tree_points_ = 0;            // of all near rows that were tried
  double screens_points_ = 0;         // points that a tree ranks in the time of the screens
  std::vector<Reach> reaches_;        // [rows] in the order of the tree, of those that are left
  kernels::Prepared ordered_;         // the table: `distinct` is the order of the tree, not ascending
  std::vector<RowRun> runs_;          // of the rows that are searched for
  std::vector<std::int64_t> around_;  // rows of `ordered_` that they are compared with
  double num_left_ = 0;
  double num_found_ = 0;
  double num_searched_ = 0;  // in the present search
  const std::function<void(double)>* report_ = nullptr;
};

}  // namespace vicinal::cpu
