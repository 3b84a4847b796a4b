// Sparse matrices by compressed rows, as SciPy has them, as tables whose rows are made dense block by block. Entries of
// a row may come in any order; those of the same place are added in theirs, as `toarray` does.
#include <algorithm>
#include <utility>

#include "buffer.hpp"
#include "table_input.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// Borrowed arrays, one-dimensional and contiguous.
struct Csr {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::shared_ptr<const Buffer> values;   // of uint8, float32 or float64
  std::shared_ptr<const Buffer> indices;  // [entries] columns, of int32 or int64
  std::shared_ptr<const Buffer> starts;   // [rows + 1] of the same type
};

[[noreturn]] void refuse_matrix(const std::string& name, const std::string& what) {
  throw Error(ErrorCode::bad_data, name + ": the sparse matrix is damaged: " + what);
}

template <class T>
const T* elements_of(const Buffer& buffer) {
  return static_cast<const T*>(buffer.data());
}

template <class Index>
void check_starts(const Csr& csr) {
  const std::int64_t entries = std::min(csr.indices->size(0), csr.values->size(0));
  if (csr.starts->size(0) != csr.rows + 1) refuse_matrix(csr.name, "indptr has not a number more than it has rows");
  const Index* const starts = elements_of<Index>(*csr.starts);
  if (starts[0] < 0 || starts[csr.rows] > entries || !std::is_sorted(starts, starts + csr.rows + 1)) {
    refuse_matrix(csr.name, "indptr does not ascend within its " + std::to_string(entries) + " entries");
  }
}

template <class Value, class Index>
void fill_rows(const Csr& csr, std::int64_t begin, std::int64_t end, Value* row) {
  const Value* const values = elements_of<Value>(*csr.values);
  const Index* const indices = elements_of<Index>(*csr.indices);
  const Index* const starts = elements_of<Index>(*csr.starts);
  const std::int64_t entries = std::min(csr.indices->size(0), csr.values->size(0));
  std::fill_n(row, (end - begin) * csr.cols, Value{0});
  for (std::int64_t i = begin; i < end; ++i, row += csr.cols) {
    // An index borrows the matrix, which its owner may have changed since it was checked.
    const std::int64_t first = starts[i];
    const std::int64_t last = starts[i + 1];
    if (first < 0 || last > entries) refuse_matrix(csr.name, "indptr does not ascend within its entries");
    for (std::int64_t at = first; at < last; ++at) {
      const std::int64_t column = indices[at];
      if (column < 0 || column >= csr.cols) {
        refuse_matrix(csr.name, "row " + std::to_string(i) + " has an entry in column " + std::to_string(column) +
                                    " of " + std::to_string(csr.cols));
      }
      row[column] = static_cast<Value>(row[column] + values[at]);
    }
  }
}

template <class Index>
BlockSource source_of(const std::shared_ptr<const Csr>& csr, DType dtype) {
  check_starts<Index>(*csr);
  return [csr, dtype](std::int64_t begin, std::int64_t end, void* rows) {
    Call::current().count_copied((end - begin) * csr->cols * size_of(dtype));
    if (dtype == DType::uint8)
      return fill_rows<std::uint8_t, Index>(*csr, begin, end, static_cast<std::uint8_t*>(rows));
    if (dtype == DType::float32) return fill_rows<float, Index>(*csr, begin, end, static_cast<float*>(rows));
    return fill_rows<double, Index>(*csr, begin, end, static_cast<double*>(rows));
  };
}

}  // namespace

Input csr_table(nb::handle value, const char* name) {
  const nb::tuple parts = nb::cast<nb::tuple>(value);
  auto csr = std::make_shared<Csr>();
  csr->name = name;
  csr->rows = nb::cast<std::int64_t>(parts[0]);
  csr->cols = nb::cast<std::int64_t>(parts[1]);
  csr->values = Buffer::of(parts[2]);
  csr->indices = Buffer::of(parts[3]);
  csr->starts = Buffer::of(parts[4]);
  const std::string_view format = csr->values->format();
  const DType dtype = format == "f" ? DType::float32 : format == "d" ? DType::float64 : DType::uint8;
  BlockSource source =
      csr->indices->item_size() == 4 ? source_of<std::int32_t>(csr, dtype) : source_of<std::int64_t>(csr, dtype);
  return {TableView::blocks(dtype, csr->rows, csr->cols, std::move(source)), csr};
}

}  // namespace vicinal::python
