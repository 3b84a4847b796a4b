// Searches for the lightest edge from a row to a row of another component: in a kd-tree whose boxes know components, or
// by the screens of the fused search with components as a filter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/density.hpp"
#include "cpu/density/components.hpp"
#include "cpu/density/places.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// What is known of the edges of each row to rows of other components, beside those of its list.
struct RowBounds {
  core::RawVector<double> floor;  ///< [n] no other edge is lighter
  core::RawVector<std::int64_t>
      other;                          ///< [n] the row at the lightest one, or -1: not known. If it has
                                      ///< joined the row's component, the key is still not above that of any other edge
  core::RawVector<double> other_key;  ///< [n] its key

  static std::uint64_t bytes(std::int64_t rows) { return static_cast<std::uint64_t>(rows) * 24; }
};

/// What all searches look at. Rows are named by their places here, except in edges.
struct Growth {
  const kernels::SpanningTask& task;
  const Places& places;
  std::span<const double> core_keys;  ///< [n], or empty
  Components components;
  LightestEdges edges;
  RowBounds bounds;
  core::RawVector<std::int64_t> group_labels;  ///< [groups] the component of all members, or -1: several; or empty

  [[nodiscard]] std::int64_t group_label(std::int64_t group) const noexcept {
    return group_labels.empty() ? components.label(group) : group_labels[static_cast<std::size_t>(group)];
  }
  [[nodiscard]] double core(std::int64_t row) const noexcept {
    return core_keys.empty() ? -kInfinity : core_keys[static_cast<std::size_t>(row)];
  }
  [[nodiscard]] double key(double core_a, double core_b, double pair_key) const noexcept {
    return std::max({core_a, core_b, divided(pair_key)});
  }
  [[nodiscard]] double divided(double pair_key) const noexcept {
    return task.divisor == 1 ? pair_key : pair_key / task.divisor;
  }
  [[nodiscard]] kernels::TreeEdge edge(double key, std::int64_t i, std::int64_t j) const noexcept {
    return edge_of(key, places.row(i), places.row(j));
  }
};

/// One row's search while it runs: equal keys by the smaller row, which is the order of its edges.
class Pursuit {
 public:
  Pursuit() = default;
  Pursuit(const Growth& growth, std::int64_t row)
      : row_(row), label_(growth.components.label(row)), core_(growth.core(row)) {}

  [[nodiscard]] std::int64_t label() const noexcept { return label_; }
  [[nodiscard]] double core() const noexcept { return core_; }
  /// The largest key of a pair that is of use; minus infinity: none is. Not below the exact number.
  [[nodiscard]] double limit(const Growth& growth) const noexcept {
    const double limit = growth.edges.limit(label_);
    if (core_ > limit) return -kInfinity;
    if (growth.task.divisor == 1) return limit;
    return std::nextafter(limit, kInfinity) * growth.task.divisor;
  }
  void offer(Growth& growth, double pair_key, std::int64_t group);
  /// Leaves what was found with the row and its component.
  void finish(Growth& growth) const;

 private:
  std::int64_t row_ = 0;
  std::int64_t label_ = 0;
  double core_ = 0;
  double key_ = kInfinity;
  std::int64_t other_ = -1;
};

class OtherRows {
 public:
  virtual ~OtherRows() = default;
  /// Components have changed.
  virtual void relabel() = 0;
  /// Finds the lightest edge of each of these rows, unless it is heavier than one of its component. In a tree they
  /// ascend.
  virtual void search(std::span<const std::int64_t> rows) = 0;
};

/// Counts the pairs of rows whose keys it computes.
class OtherRowsInTree : public OtherRows {
 public:
  /// Only for rows of components whose limits are not above `max_core`, until components change: rows with larger core
  /// keys have no edge of use to them, and the searches leave them out.
  virtual void leave_out(double max_core) = 0;
  [[nodiscard]] virtual std::int64_t pairs() const = 0;
};

std::unique_ptr<OtherRowsInTree> other_rows_in_tree(const Context& ctx, Growth& growth);
std::unique_ptr<OtherRows> other_rows_by_screens(const Context& ctx, Growth& growth);
/// Whether rows that are kept in a tree can be compared by screens, too.
bool has_screens(const Context& ctx, const kernels::SpanningTask& task);
std::uint64_t other_rows_in_tree_bytes(const Context& ctx, const kernels::SpanningTask& task);
std::uint64_t other_rows_by_screens_bytes(const Context& ctx, const kernels::SpanningTask& task);

}  // namespace vicinal::cpu
