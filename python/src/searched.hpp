// What a search looks in: an index that Python holds, or a table.
#pragma once

#include <limits>
#include <memory>
#include <optional>

#include "call.hpp"

namespace vicinal::python {

/// An index and what it borrows from.
struct HeldIndex {
  Index index;
  std::shared_ptr<const void> storage;
};

class Searched {
 public:
  Searched(Call& call, nanobind::handle value) : index_(call.native<HeldIndex>(value)) {
    if (index_ == nullptr) table_ = call.table("table", value);
    call.check_filter(rows());
  }
  /// Calls `search` with the index or with the table: the library's functions take either.
  template <class Search>
  void visit(const Search& search) const {
    if (index_ != nullptr) {
      search(index_->index);
    } else {
      search(table_.view);
    }
  }
  [[nodiscard]] std::int64_t rows() const { return index_ != nullptr ? index_->index.rows() : table_.view.rows(); }
  /// About how many operations a search takes at most, for `Call::run`.
  [[nodiscard]] double operations(const std::optional<Input>& queries, Metric metric) const {
    const TableView& table = index_ != nullptr ? index_->index.table() : table_.view;
    const TableView& query_table = queries ? queries->view : table;
    if (table.is_block_source() || query_table.is_block_source()) return std::numeric_limits<double>::infinity();
    const double keys = static_cast<double>(table.rows()) * static_cast<double>(query_table.rows());
    return keys * static_cast<double>(table.cols()) * (metric == Metric::minkowski ? 100 : 1);
  }
  /// An index of it, made now where there is none.
  [[nodiscard]] Index index(const Context& ctx) const {
    return index_ != nullptr ? index_->index : Index(ctx, table_.view, {.packed = Packing::never});
  }

 private:
  std::shared_ptr<const HeldIndex> index_;
  Input table_;
};

/// Queries, or nothing: then a table is searched within itself.
inline std::optional<Input> optional_table(Call& call, const char* name, nanobind::handle value) {
  if (value.is_none()) return std::nullopt;
  return call.table(name, value);
}

/// A table whose rows are in memory: what comes in blocks is copied.
inline Input in_memory(const Context& ctx, const Input& table) {
  if (!table.view.is_block_source()) return table;
  const auto copy = std::make_shared<const Index>(ctx, table.view, IndexOptions{.copy = true});
  return {copy->table(), copy};
}

}  // namespace vicinal::python
