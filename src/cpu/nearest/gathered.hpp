// Some rows of a table as a table of their own: queries of a search that not all rows ask for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cpu {

/// Rows copied one after the other, in their table's type.
class Gathered {
 public:
  void take(const Context& ctx, const TableView& table, std::span<const std::int64_t> rows) {
    const std::int64_t row_bytes = table.cols() * size_of(table.dtype());
    const auto size = static_cast<std::int64_t>(rows.size());
    bytes_.resize(static_cast<std::size_t>(size * row_bytes));
    core::parallel_for(ctx, (size + 255) / 256, [&](std::int64_t task, int /*worker*/) {
      for (std::int64_t i = task * 256; i < std::min(size, (task + 1) * 256); ++i) {
        const std::int64_t row = rows[static_cast<std::size_t>(i)];
        core::copy_rows(table, row, row + 1, bytes_.data() + i * row_bytes);
      }
    });
    view_ = TableView(bytes_.data(), table.dtype(), size, table.cols(), table.cols());
  }
  [[nodiscard]] const TableView& view() const noexcept { return view_; }

 private:
  std::vector<std::byte> bytes_;
  TableView view_;
};

}  // namespace vicinal::cpu
