// TableView's door: sizes and pointers are checked once here, so that nothing below has to.
#include "vicinal/table.hpp"

#include <string>
#include <utility>

namespace vicinal {
namespace {

void check_shape(std::int64_t n, std::int64_t d, DType dtype) {
  if (n < 0 || d < 0) {
    throw Error(ErrorCode::invalid_argument, "table: rows and columns must not be negative, but the shape is [" +
                                                 std::to_string(n) + ", " + std::to_string(d) + "]");
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(n, d, &bytes) || __builtin_mul_overflow(bytes, size_of(dtype), &bytes)) {
    throw Error(ErrorCode::invalid_argument,
                "table: the shape [" + std::to_string(n) + ", " + std::to_string(d) + "] has more than 2^63 bytes");
  }
}

}  // namespace

TableView::TableView(const void* data, DType dtype, std::int64_t n, std::int64_t d, std::int64_t row_stride,
                     std::int64_t col_stride, Memory memory)
    : data_(data),
      rows_(n),
      cols_(d),
      row_stride_(row_stride),
      col_stride_(col_stride),
      dtype_(dtype),
      memory_(memory) {
  check_shape(n, d, dtype);
  if (data == nullptr && n > 0 && d > 0) {
    throw Error(ErrorCode::invalid_argument, "table: data is a null pointer, but the shape is [" + std::to_string(n) +
                                                 ", " + std::to_string(d) + "]");
  }
}

TableView TableView::blocks(DType dtype, std::int64_t n, std::int64_t d, BlockSource source) {
  check_shape(n, d, dtype);
  if (!source) throw Error(ErrorCode::invalid_argument, "table: the block source is empty");
  TableView view;
  view.rows_ = n;
  view.cols_ = d;
  view.row_stride_ = d;
  view.dtype_ = dtype;
  view.source_ = std::make_shared<const BlockSource>(std::move(source));
  return view;
}

TableView TableView::slice(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || end < begin || end > rows_) {
    throw Error(ErrorCode::invalid_argument, "table: rows [" + std::to_string(begin) + ", " + std::to_string(end) +
                                                 ") are not within its " + std::to_string(rows_) + " rows");
  }
  TableView view = *this;
  view.rows_ = end - begin;
  if (is_block_source()) {
    if (begin > 0) {
      view.source_ = std::make_shared<const BlockSource>(
          [source = source_, begin](std::int64_t from, std::int64_t to, void* rows) {
            (*source)(begin + from, begin + to, rows);
          });
    }
  } else if (view.rows_ > 0 && data_ != nullptr) {
    view.data_ = static_cast<const std::byte*>(data_) + begin * row_stride_ * size_of(dtype_);
  }
  return view;
}

}  // namespace vicinal
