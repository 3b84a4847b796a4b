// Rows of a table that a kd-tree would compare with more points than screens take time for are left to the screens
// (Method::fused): FAR rows, such as noise between clusters, have much of the table within reach and meet all of it;
// NEAR rows, such as those of a large cluster, meet the leaves that are within reach of some of the rows around them.
// The screens have the table in the order of its tree, so that the points of a leaf are rows that follow each other.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backend/nearest.hpp"
#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// Such rows of a table within itself, in the order of its tree.
class LeftRows {
 public:
  /// Whether rows of this task may be left to screens.
  static bool serve(const Context& ctx, const kernels::NearestTask& task);
  static std::uint64_t bytes(const Context& ctx, const kernels::NearestTask& task);
  /// Which rows are left, and what they cost.
  static kernels::LeftToScreens costs(const Context& ctx, const kernels::NearestTask& task);

  /// Borrows all.
  LeftRows(const Context& ctx, const kernels::NearestTask& task, const Tree& tree, const TreeKeys& keys,
           bool in_tree_order);

  /// A row that has met so many points of the tree counts those within its reach.
  [[nodiscard]] std::int64_t points_to_ask() const noexcept { return points_to_ask_; }
  /// With more of them it is a near row ...
  [[nodiscard]] std::int64_t points_of_near() const noexcept { return points_of_near_; }
  /// ... or a far one: so many points are ranked in the time in which screens compare a row with the whole table.
  [[nodiscard]] std::int64_t points_of_far() const noexcept { return points_of_far_; }
  /// Points in boxes within reach of x [d], or any larger number than `most`. Any thread.
  [[nodiscard]] std::int64_t points_within(const double* x, double limit, std::int64_t most) const;
  /// The row at this place of the tree's order, none of whose neighbors has a larger key than `limit`. Any thread, each
  /// once; the row's list is written by `search`.
  void add(std::int64_t point, bool is_far, double limit, kernels::NearestResult& result) noexcept {
    left_[static_cast<std::size_t>(point)] = is_far ? Left::far : Left::near;
    result.distances[static_cast<std::size_t>(place(point) * task_.k)] = limit;
  }
  /// Finds the lists of all that were added. `found` is called with the number of lists that are there.
  void search(kernels::NearestResult& result, const std::function<void(std::int64_t)>& found);

 private:
  enum class Left : std::uint8_t { none, near, far };
  /// Some rows that follow each other in the order of the tree.
  struct Run {
    std::vector<double> low;   // [d] of the rows
    std::vector<double> high;  // [d]
    double reach;              // of the row that reaches the farthest
  };

  [[nodiscard]] std::int64_t row(std::int64_t point) const noexcept {
    return tree_.shape().order[static_cast<std::size_t>(point)];
  }
  [[nodiscard]] std::int64_t place(std::int64_t point) const noexcept { return in_tree_order_ ? point : row(point); }
  void order_table();
  void search_all(Left which, std::int64_t rows_at_once, kernels::NearestResult& result,
                  const std::function<void(std::int64_t)>& found);
  void search_some(std::span<const std::int64_t> points, bool are_near, kernels::NearestResult& result);
  void bound_runs(const TableView& rows, std::span<const double> limits);
  void take_leaves_around();

  const Context& ctx_;
  Context quiet_;  // progress is that of all rows, which the caller reports
  const kernels::NearestTask& task_;
  kernels::NearestTask by_screens_;  // but for its queries
  const Tree& tree_;
  const TreeKeys& keys_;
  bool in_tree_order_;
  std::int64_t points_of_far_;
  std::int64_t points_of_near_;
  std::int64_t points_to_ask_;
  std::vector<Left> left_;            // [rows] in the order of the tree
  kernels::Prepared ordered_;         // the table in that order
  std::vector<Run> runs_;             // of the rows that are searched for
  std::vector<std::uint8_t> taken_;   // [panels of ordered_] whether a leaf within reach has points there
  std::vector<std::int64_t> around_;  // rows of those panels
};

}  // namespace vicinal::cpu
