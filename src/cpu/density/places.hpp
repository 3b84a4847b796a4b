// The order in which a spanning tree keeps its rows: that of a kd-tree's leaves, so that rows that are near each other
// lie near each other in memory, too; or the table's own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/nearest.hpp"
#include "core/poll.hpp"
#include "core/raw_vector.hpp"

namespace vicinal::cpu {

/// Places of rows. Groups are the distinct rows, in the same order: their members are equal rows, ascending.
class Places {
 public:
  /// Rows where they are in the table. Borrows the index.
  explicit Places(const kernels::Prepared& index) : index_(index) {}
  /// Rows in the order of a tree's leaves. Borrows the index and the order of its distinct rows. O(n).
  Places(const Context& ctx, const kernels::Prepared& index, std::span<const std::int64_t> order)
      : index_(index), in_tree_(true), rows_(order) {
    core::Poll poll(ctx);
    const auto n = static_cast<std::size_t>(index.table.rows());
    if (index.grouped()) {
      offsets_.reserve(order.size() + 1);
      grouped_rows_.reserve(n);
      for (const std::int64_t distinct : order) {
        offsets_.push_back(std::ssize(grouped_rows_));
        for (std::int64_t at = index.member_offsets[distinct]; at < index.member_offsets[distinct + 1]; ++at) {
          poll.step();
          grouped_rows_.push_back(index.members[at]);
        }
      }
      offsets_.push_back(std::ssize(grouped_rows_));
      rows_ = grouped_rows_;
      numbers_.resize(n);
      for (std::size_t place = 0; place < n; ++place) {
        poll.step();
        numbers_[place] = static_cast<std::int64_t>(place);
      }
    }
    places_.resize(n);
    for (std::size_t place = 0; place < n; ++place) {
      poll.step();
      places_[static_cast<std::size_t>(rows_[place])] = static_cast<std::int64_t>(place);
    }
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  /// With rows in the order of a tree, and equal ones among them.
  static std::uint64_t bytes(std::int64_t rows) { return static_cast<std::uint64_t>(rows) * 4 * sizeof(std::int64_t); }

  [[nodiscard]] bool in_tree() const noexcept { return in_tree_; }
  [[nodiscard]] std::int64_t row(std::int64_t place) const noexcept {
    return in_tree_ ? rows_[static_cast<std::size_t>(place)] : place;
  }
  [[nodiscard]] std::int64_t place(std::int64_t row) const noexcept {
    return in_tree_ ? places_[static_cast<std::size_t>(row)] : row;
  }
  /// Whether a group may have several rows; otherwise its number is the place of its row.
  [[nodiscard]] bool grouped() const noexcept { return index_.grouped(); }
  [[nodiscard]] std::int64_t groups() const noexcept { return index_.distinct_rows(); }
  /// Places of the rows of a group. Of one row: borrows the argument, which must outlive it.
  [[nodiscard]] std::span<const std::int64_t> members(const std::int64_t& group) const noexcept {
    if (!index_.grouped()) return {&group, 1};
    const std::vector<std::int64_t>& offsets = in_tree_ ? offsets_ : index_.member_offsets;
    const std::int64_t* const members = in_tree_ ? numbers_.data() : index_.members.data();
    const std::int64_t begin = offsets[static_cast<std::size_t>(group)];
    return {members + begin, static_cast<std::size_t>(offsets[static_cast<std::size_t>(group) + 1] - begin)};
  }
  std::span<const std::int64_t> members(std::int64_t&&) const = delete;
  /// Only in a tree: the place of the first row of a group; of `groups()`: the number of rows.
  [[nodiscard]] std::int64_t first_place(std::int64_t group) const noexcept {
    return index_.grouped() ? offsets_[static_cast<std::size_t>(group)] : group;
  }

 private:
  const kernels::Prepared& index_;
  bool in_tree_ = false;
  std::span<const std::int64_t> rows_;      // [n] of each place
  core::RawVector<std::int64_t> places_;    // [n] of each row
  std::vector<std::int64_t> grouped_rows_;  // what `rows_` borrows where there are equal rows
  std::vector<std::int64_t> offsets_;       // [groups + 1]
  core::RawVector<std::int64_t> numbers_;   // [n] 0, 1, ...
};

}  // namespace vicinal::cpu
