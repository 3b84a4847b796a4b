// See row_reader.hpp.
#include "cpu/kmeans/row_reader.hpp"

#include <algorithm>

#include "core/table_access.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kPartBytes = std::int64_t{32} << 20;
constexpr std::int64_t kAligned = 4096;  // rows; a multiple of what any loop cuts parts into

bool is_borrowed(const TableView& table) {
  if (!core::is_row_contiguous(table) || table.row_stride() < 0) return false;
  if (table.dtype() != DType::float32 && table.dtype() != DType::float64) return false;
  return reinterpret_cast<std::uintptr_t>(table.data()) % static_cast<std::uintptr_t>(size_of(table.dtype())) == 0;
}

std::int64_t rows_a_part(const TableView& table) {
  const std::int64_t row = table.cols() * size_of(table.dtype());
  const std::int64_t rows = std::max<std::int64_t>(kAligned, kPartBytes / row / kAligned * kAligned);
  return std::min(rows, table.rows());
}

}  // namespace

Element row_element(const TableView& table) {
  // A part of a block source is contiguous.
  const bool float32 = table.dtype() == DType::float32 && (table.is_block_source() || is_borrowed(table));
  return float32 ? Element::float32 : Element::float64;
}

void RowReader::open(const TableView& table, std::int64_t begin, std::int64_t end) {
  begin_ = begin;
  if (is_borrowed(table)) {
    step_ = table.row_stride() * size_of(table.dtype());
    first_ = static_cast<const std::byte*>(table.data()) + begin * step_;
    return;
  }
  widened_.reserve((end - begin) * table.cols());
  core::widen_rows(table, begin, end, widened_.data());
  step_ = table.cols() * static_cast<std::int64_t>(sizeof(double));
  first_ = reinterpret_cast<const std::byte*>(widened_.data());
}

void RowReader::gather(const TableView& table, std::int64_t first, std::span<const std::int32_t> rows,
                       const void** to) {
  if (is_borrowed(table)) {
    const auto* const data = static_cast<const std::byte*>(table.data());
    const std::int64_t step = table.row_stride() * size_of(table.dtype());
    for (std::size_t i = 0; i < rows.size(); ++i) to[i] = data + (first + rows[i]) * step;
    return;
  }
  const std::int64_t d = table.cols();
  widened_.reserve(static_cast<std::int64_t>(rows.size()) * d);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double* const values = widened_.data() + static_cast<std::int64_t>(i) * d;
    core::widen_rows(table, first + rows[i], first + rows[i] + 1, values);
    to[i] = values;
  }
}

void RowReader::prefetch(const TableView& table, std::int64_t row) {
  constexpr std::int64_t kLine = 64;
  constexpr std::int64_t kMaxBytes = 1024;  // the processor goes on by itself
  if (!is_borrowed(table)) return;
  const std::int64_t size = size_of(table.dtype());
  const auto* const at = static_cast<const std::byte*>(table.data()) + row * table.row_stride() * size;
  const std::int64_t bytes = std::min(table.cols() * size, kMaxBytes);
  for (std::int64_t byte = 0; byte < bytes; byte += kLine) __builtin_prefetch(at + byte);
}

void for_each_part(const Context& ctx, const TableView& table,
                   const std::function<void(const TableView& part, std::int64_t first)>& body) {
  if (!table.is_block_source()) return body(table, 0);
  const std::int64_t rows = rows_a_part(table);
  core::AlignedArray<std::byte> raw(rows * table.cols() * size_of(table.dtype()));
  for (std::int64_t first = 0; first < table.rows(); first += rows) {
    ctx.check_cancelled();
    const std::int64_t count = std::min(rows, table.rows() - first);
    core::copy_rows(table, first, first + count, raw.data());
    body(TableView(raw.data(), table.dtype(), count, table.cols(), table.cols()), first);
  }
}

std::uint64_t part_bytes(const TableView& table) {
  if (!table.is_block_source()) return 0;
  return static_cast<std::uint64_t>(rows_a_part(table) * table.cols() * size_of(table.dtype()));
}

}  // namespace vicinal::cpu
