// Reading, widening, normalising and packing of table rows. See block.hpp.
#include "cpu/block.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/distance.hpp"
#include "core/table_access.hpp"

namespace vicinal::cpu {
namespace {

std::int64_t element_size(Element element) {
  switch (element) {
    case Element::uint8:
      return 1;
    case Element::float32:
      return 4;
    case Element::float64:
      break;
  }
  return 8;
}

}  // namespace

RowReading RowReading::of(const TableView& table, Metric metric) {
  if (metric == Metric::cosine) return {Element::float64, true, false};
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(table.data()) % static_cast<std::uintptr_t>(size_of(table.dtype())) == 0;
  const bool plain = !table.is_block_source() && table.col_stride() == 1 && table.memory() != Memory::cuda && aligned;
  if (metric == Metric::minkowski) return {Element::float64, false, plain && table.dtype() == DType::float64};
  switch (table.dtype()) {
    case DType::uint8:
      return {Element::uint8, false, plain};
    case DType::float32:
      return {Element::float32, false, plain};
    case DType::float16:
    case DType::bfloat16:
      return {Element::float32, false, false};
    case DType::float64:
      break;
  }
  return {Element::float64, false, plain};
}

RowBlock::RowBlock(const kernels::NearestTask& task, const SimdKernels& simd, std::int64_t capacity, bool screened)
    : task_(task),
      index_(*task.index),
      simd_(simd),
      reading_(RowReading::of(task.index->table, task.metric)),
      screened_(screened),
      d_(task.index->table.cols()) {
  distinct_.reserve(static_cast<std::size_t>(capacity));
  if (!reading_.borrow) elements_.reserve(capacity * d_ * element_size(reading_.element));
}

std::uint64_t RowBlock::bytes(const kernels::NearestTask& task, std::int64_t capacity) {
  const TableView& table = task.index->table;
  const RowReading reading = RowReading::of(table, task.metric);
  std::int64_t per_row = table.cols() * 4 + 64;  // packed, terms, pointers
  if (!reading.borrow) per_row += table.cols() * element_size(reading.element);
  if (table.is_block_source()) per_row += table.cols() * size_of(table.dtype());
  return static_cast<std::uint64_t>(per_row) * static_cast<std::uint64_t>(capacity + kMaxTileRows);
}

void RowBlock::assign(std::int64_t first, std::int64_t count) {
  distinct_.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) distinct_[i] = first + i;
  read_source();
}

void RowBlock::assign(std::span<const std::int64_t> distinct) {
  distinct_.assign(distinct.begin(), distinct.end());
  read_source();
}

void RowBlock::read_source() {
  rows_.resize(distinct_.size());
  zero_.assign(distinct_.size(), 0);
  norms_.assign(distinct_.size(), 0);
  if (screened_) {
    packed_.reserve(padded() * d_);
    start_.reserve(padded());
    rho_.reserve(padded());
    kappa_.reserve(padded());
  }
  const TableView& table = index_.table;
  if (!table.is_block_source()) return;
  // Block sources are never grouped: a distinct row is a table row. Neighbouring rows are asked for in one call.
  const std::int64_t row_bytes = d_ * vicinal::size_of(table.dtype());
  raw_.resize(static_cast<std::size_t>(size() * row_bytes));
  for (std::int64_t i = 0; i < size();) {
    std::int64_t j = i + 1;
    while (j < size() && distinct_[j] == distinct_[j - 1] + 1) ++j;
    core::copy_rows(table, distinct_[i], distinct_[i] + (j - i), raw_.data() + i * row_bytes);
    i = j;
  }
  raw_view_ = TableView(raw_.data(), table.dtype(), size(), d_, d_);
}

void RowBlock::prepare_panel(std::int64_t panel, const Screen* screen, const double* centre,
                             std::vector<double>& scratch) {
  const std::int64_t width = simd_.tile_rows;
  const std::int64_t begin = panel * width;
  const std::int64_t end = std::min(size(), begin + width);
  const TableView& table = index_.table;
  const bool wide_needed = screened_ || !reading_.borrow;
  scratch.resize(static_cast<std::size_t>(d_));
  float* packed = screened_ ? packed_.data() + panel * width * d_ : nullptr;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t row = index_.grouped() ? index_.distinct[distinct_[i]] : distinct_[i];
    if (wide_needed) {
      if (table.is_block_source()) {
        core::widen_rows(raw_view_, i, i + 1, scratch.data());
      } else {
        core::widen_rows(table, row, row + 1, scratch.data());
      }
    }
    if (reading_.normalise) zero_[i] = core::normalize_row(scratch.data(), d_, scratch.data()) ? 0 : 1;
    if (reading_.borrow) {
      rows_[i] =
          static_cast<const std::byte*>(table.data()) + row * table.row_stride() * vicinal::size_of(table.dtype());
    } else {
      std::byte* to = elements_.data() + i * d_ * element_size(reading_.element);
      rows_[i] = to;
      switch (reading_.element) {
        case Element::uint8:
          std::transform(scratch.begin(), scratch.end(), reinterpret_cast<std::uint8_t*>(to),
                         [](double x) { return static_cast<std::uint8_t>(x); });
          break;
        case Element::float32:
          std::transform(scratch.begin(), scratch.end(), reinterpret_cast<float*>(to),
                         [](double x) { return static_cast<float>(x); });
          break;
        case Element::float64:
          std::copy(scratch.begin(), scratch.end(), reinterpret_cast<double*>(to));
          break;
      }
    }
    if (!screened_) continue;
    const RoundedRow rounded = round_row(scratch.data(), centre, screen->scale(), d_, packed + (i - begin), width);
    RowTerms terms = screen->row_terms(rounded);
    // A row of zeros has no direction: its cosine distance is 1 whatever the product says, so it always survives.
    // So does one longer than the scale promises (a saved index may lie): the bound counts on finite sums.
    if (zero_[i] != 0 || !(rounded.rounded_sq <= static_cast<double>(d_))) {
      terms = {std::numeric_limits<float>::infinity(), 0, 0};
    }
    start_[i] = terms.start;
    rho_[i] = terms.rho;
    kappa_[i] = terms.kappa;
    norms_[i] = std::sqrt(rounded.rounded_sq);
  }
  if (!screened_) return;
  for (std::int64_t i = end; i < begin + width; ++i) {  // lanes beyond the last row: masked by the kernel, but read
    start_[i] = rho_[i] = kappa_[i] = 0;
    for (std::int64_t j = 0; j < d_; ++j) packed[j * width + (i - begin)] = 0;
  }
}

void RowBlock::summarise() {
  double sum = 0;
  for (const double norm : norms_) sum += norm;
  typical_norm_ = size() > 0 ? sum / static_cast<double>(size()) : 0;
}

}  // namespace vicinal::cpu
