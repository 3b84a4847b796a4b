// Rows of a table in the form that the loops of k-means read: float32 or float64, each row contiguous. Where they lie
// so already they are used in place; all else is widened block by block, and a block source is read in parts, on the
// calling thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "simd/kernels.hpp"
#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cpu {

/// What kernels read: float32 where the table's rows can be borrowed as that, else float64.
Element row_element(const TableView& table);

/// The rows of one block, at a worker.
class RowReader {
 public:
  /// Rows [begin, end) of a table in memory.
  void open(const TableView& table, std::int64_t begin, std::int64_t end);
  /// Some rows of a table in memory, counted from row `first`: where they lie. What the call
  /// before this one widened is lost.
  void gather(const TableView& table, std::int64_t first, std::span<const std::int32_t> rows, const void** to);
  /// Asks the caches for a row of a table in memory that is soon to be read. Nothing where rows are widened.
  static void prefetch(const TableView& table, std::int64_t row);
  /// Row i of the table, begin <= i < end, after `open`.
  [[nodiscard]] const void* row(std::int64_t i) const noexcept { return first_ + (i - begin_) * step_; }

 private:
  core::AlignedArray<double> widened_;
  const std::byte* first_ = nullptr;
  std::int64_t begin_ = 0;
  std::int64_t step_ = 0;  // bytes
};

/// Calls body(part, first) for parts of the table in memory that cover it in order; row i of the table is row i - first
/// of its part. A table in memory is one part.
void for_each_part(const Context& ctx, const TableView& table,
                   const std::function<void(const TableView& part, std::int64_t first)>& body);

/// Bytes that a part of a block source takes; 0 for a table in memory.
std::uint64_t part_bytes(const TableView& table);

}  // namespace vicinal::cpu
