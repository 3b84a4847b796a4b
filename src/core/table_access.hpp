// Reading a TableView: exact widening to float64, dense copies of row ranges. The only code that knows dtypes and
// strides.
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/table.hpp"

namespace vicinal::core {

/// The value of one binary16 / bfloat16 number, exactly.
float widen(float16 x) noexcept;
float widen(bfloat16 x) noexcept;

/// Copies rows [begin, end) as float64, row-major and contiguous, into out[(end - begin) * d].
/// A block source is called once. Host and pinned memory only.
void widen_rows(const TableView& table, std::int64_t begin, std::int64_t end, double* out);

/// Copies rows [begin, end) contiguously in the table's own dtype.
void copy_rows(const TableView& table, std::int64_t begin, std::int64_t end, void* out);

/// True for host rows whose elements follow each other (col_stride 1, row_stride >= d or one row).
bool is_row_contiguous(const TableView& table) noexcept;

}  // namespace vicinal::core
