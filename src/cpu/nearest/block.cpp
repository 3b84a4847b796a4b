// Reading, widening, normalizing and packing of table rows. See block.hpp.
#include "cpu/nearest/block.hpp"

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

RowBlock::RowBlock(const kernels::NearestTask& task, const SimdKernels& simd, std::int64_t capacity,
                   std::span<const Screen> screens)
    : task_(task),
      index_(*task.index),
      simd_(simd),
      screens_(screens),
      reading_(RowReading::of(task.index->table, task.metric)),
      d_(task.index->table.cols()),
      packed_(screens.size()) {
  distinct_.reserve(static_cast<std::size_t>(capacity));
  if (!reading_.borrow) elements_.reserve(capacity * d_ * element_size(reading_.element));
}

std::uint64_t RowBlock::bytes(const kernels::NearestTask& task, std::int64_t capacity,
                              std::span<const ScreenType> screens) {
  const TableView& table = task.index->table;
  const RowReading reading = RowReading::of(table, task.metric);
  std::int64_t per_row = 24;  // pointers
  for (const ScreenType screen : screens) per_row += Screen::row_bytes(screen, table.cols()) + 24;
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
  const std::int64_t padded = panels() * simd_.tile_rows;
  for (std::size_t s = 0; s < screens_.size(); ++s) {
    PackedRows& packed = packed_[s];
    packed.panels.reserve(padded * Screen::row_bytes(screens_[s].type(), d_));
    packed.start.reserve(padded);
    packed.base.reserve(padded);
    packed.rho.reserve(padded);
    packed.kappa.reserve(padded);
    packed.norms.assign(distinct_.size(), 0);
  }
  const TableView& table = index_.table;
  if (!table.is_block_source()) return;
  // Block sources are never grouped: a distinct row is a table row. Neighboring rows are asked for in one call.
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

void RowBlock::widen(std::int64_t i, double* to) {
  const TableView& table = index_.table;
  if (table.is_block_source()) {
    core::widen_rows(raw_view_, i, i + 1, to);
  } else {
    const std::int64_t row = index_.grouped() ? index_.distinct[distinct_[i]] : distinct_[i];
    core::widen_rows(table, row, row + 1, to);
  }
  if (reading_.normalise) zero_[i] = core::normalize_row(to, d_, to) ? 0 : 1;
}

void RowBlock::prepare_panel(std::int64_t panel, std::vector<double>& scratch) {
  const std::int64_t begin = panel * simd_.tile_rows;
  const std::int64_t end = std::min(size(), begin + simd_.tile_rows);
  const TableView& table = index_.table;
  scratch.resize(static_cast<std::size_t>(d_));
  for (std::int64_t i = begin; i < end; ++i) {
    if (reading_.borrow) {
      const std::int64_t row = index_.grouped() ? index_.distinct[distinct_[i]] : distinct_[i];
      rows_[i] =
          static_cast<const std::byte*>(table.data()) + row * table.row_stride() * vicinal::size_of(table.dtype());
      continue;
    }
    widen(i, scratch.data());
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
}

void RowBlock::pack_panel(std::int64_t panel, std::size_t screen, std::vector<double>& scratch) {
  const std::int64_t width = simd_.tile_rows;
  const std::int64_t begin = panel * width;
  const std::int64_t end = std::min(size(), begin + width);
  const Screen& rounding = screens_[screen];
  PackedRows& packed = packed_[screen];
  std::byte* to = packed.panels.data() + begin * Screen::row_bytes(rounding.type(), d_);
  scratch.resize(static_cast<std::size_t>(d_));
  for (std::int64_t i = begin; i < end; ++i) {
    const double* row = scratch.data();
    if (!reading_.borrow && reading_.element == Element::float64) {
      row = static_cast<const double*>(rows_[i]);
    } else {
      widen(i, scratch.data());
    }
    const RoundedRow rounded = rounding.pack(row, Screen::Side::row, to, i - begin, width);
    // A row of zeros has no direction: its cosine distance is 1 whatever the product says, so it always survives.
    const RowTerms terms = zero_[i] != 0 ? Screen::always(rounded) : rounding.row_terms(rounded);
    // What may overflow is not multiplied, so that the score is infinite and not a NaN, which has no order.
    if (rounding.type() != ScreenType::int8 && std::isinf(terms.start)) rounding.pack_nothing(to, i - begin, width);
    packed.start[i] = terms.start;
    packed.base[i] = terms.base;
    packed.rho[i] = terms.rho;
    packed.kappa[i] = terms.kappa;
    packed.norms[i] = std::sqrt(rounded.rounded_sq);
  }
  for (std::int64_t i = end; i < begin + width; ++i) {  // lanes beyond the last row: masked by the kernel, but read
    packed.start[i] = packed.rho[i] = packed.kappa[i] = 0;
    packed.base[i] = 0;
    rounding.pack_nothing(to, i - begin, width);
  }
}

void RowBlock::summarise(std::size_t screen) {
  PackedRows& packed = packed_[screen];
  double sum = 0;
  double least_rho = std::numeric_limits<double>::infinity();
  double least_kappa = least_rho;
  for (std::int64_t i = 0; i < size(); ++i) {
    sum += packed.norms[i];
    if (packed.start[i] == std::numeric_limits<float>::infinity()) continue;  // survives always
    least_rho = std::min(least_rho, static_cast<double>(packed.rho[i]));
    least_kappa = std::min(least_kappa, static_cast<double>(packed.kappa[i]));
  }
  packed.typical_norm = size() > 0 ? sum / static_cast<double>(size()) : 0;
  packed.least_rho = std::isfinite(least_rho) ? least_rho : 0;
  packed.least_kappa = std::isfinite(least_kappa) ? least_kappa : 0;
}

}  // namespace vicinal::cpu
