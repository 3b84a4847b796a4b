// TableView: borrowed n x d rows. Element type and memory space are run-time fields, so one
// function serves every kind of input (contract clause 1: every type widens exactly to float64).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "vicinal/dtype.hpp"

namespace vicinal {

/// Writes rows [begin, end) of a table to `rows`, row-major and contiguous in the table's dtype. It is called only on
/// the thread that called the library. It may be called several times for the same rows, and must then write the same
/// values. It may throw.
using BlockSource = std::function<void(std::int64_t begin, std::int64_t end, void* rows)>;

/// A borrowed table of n rows and d columns: strided memory, or a block source (a function that produces rows).
///
/// The view owns no data (only a copy of the block source's function) and must not outlive the data. Strides are
/// counted in elements and may be negative or zero; element (i, j) is data[i * row_stride + j * col_stride].
class VICINAL_API TableView {
 public:
  TableView() = default;
  TableView(const void* data, DType dtype, std::int64_t n, std::int64_t d, std::int64_t row_stride,
            std::int64_t col_stride = 1, Memory memory = Memory::host);
  TableView(const std::uint8_t* data, std::int64_t n, std::int64_t d) : TableView(data, DType::uint8, n, d, d) {}
  TableView(const float16* data, std::int64_t n, std::int64_t d) : TableView(data, DType::float16, n, d, d) {}
  TableView(const bfloat16* data, std::int64_t n, std::int64_t d) : TableView(data, DType::bfloat16, n, d, d) {}
  TableView(const float* data, std::int64_t n, std::int64_t d) : TableView(data, DType::float32, n, d, d) {}
  TableView(const double* data, std::int64_t n, std::int64_t d) : TableView(data, DType::float64, n, d, d) {}

  /// A table that is produced block by block, for data that does not fit in memory.
  static TableView blocks(DType dtype, std::int64_t n, std::int64_t d, BlockSource source);

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t cols() const noexcept { return cols_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] Memory memory() const noexcept { return memory_; }
  [[nodiscard]] const void* data() const noexcept { return data_; }
  [[nodiscard]] std::int64_t row_stride() const noexcept { return row_stride_; }
  [[nodiscard]] std::int64_t col_stride() const noexcept { return col_stride_; }
  [[nodiscard]] bool is_block_source() const noexcept { return source_ != nullptr; }
  [[nodiscard]] const BlockSource& source() const noexcept { return *source_; }

  /// Rows [begin, end) as a view of their own (a block source stays one). Throws `invalid_argument` outside [0, n].
  [[nodiscard]] TableView slice(std::int64_t begin, std::int64_t end) const;

 private:
  const void* data_ = nullptr;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t row_stride_ = 0;
  std::int64_t col_stride_ = 1;
  DType dtype_ = DType::float32;
  Memory memory_ = Memory::host;
  std::shared_ptr<const BlockSource> source_;
};

/// A borrowed set of row ids as bits: row i is in the set if bit i % 64 of word i / 64 is set.
using Bitmap = std::span<const std::uint64_t>;

}  // namespace vicinal
