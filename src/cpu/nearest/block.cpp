// Reading, widening, normalizing and packing of table rows. See block.hpp.
#include "cpu/nearest/block.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
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
      packed_(screens.size()),
      packing_(screens.size()),
      own_(screens.size()) {
  distinct_.reserve(static_cast<std::size_t>(capacity));
  rows_.reserve(static_cast<std::size_t>(capacity));
  zero_.reserve(static_cast<std::size_t>(capacity));
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
  give_up();
  first_ = first;
  distinct_.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) distinct_[i] = first + i;
  read_source();
}

void RowBlock::assign(std::span<const std::int64_t> distinct) {
  give_up();
  first_ = -1;
  distinct_.assign(distinct.begin(), distinct.end());
  read_source();
}

void RowBlock::give_up() noexcept {
  for (Packing& packing : packing_) {
    if (packing.kept != nullptr) packing.kept->give_up(first_ / packing.kept->block());
    packing = {};
  }
}

void RowBlock::read_source() {
  rows_.assign(distinct_.size(), nullptr);
  zero_.assign(distinct_.size(), 0);
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

bool RowBlock::widen(std::int64_t i, double* to) const {
  const TableView& table = index_.table;
  if (table.is_block_source()) {
    core::widen_rows(raw_view_, i, i + 1, to);
  } else {
    const std::int64_t row = table_row(i);
    core::widen_rows(table, row, row + 1, to);
  }
  return !reading_.normalise || core::normalize_row(to, d_, to);
}

std::int64_t RowBlock::element_bytes() const noexcept {
  return d_ * element_size(reading_.element);
}

const void* RowBlock::borrowed(std::int64_t i) const noexcept {
  const TableView& table = index_.table;
  return static_cast<const std::byte*>(table.data()) +
         table_row(i) * table.row_stride() * vicinal::size_of(table.dtype());
}

void RowBlock::narrow(const double* row, std::byte* to) const {
  switch (reading_.element) {
    case Element::uint8:
      std::transform(row, row + d_, reinterpret_cast<std::uint8_t*>(to),
                     [](double x) { return static_cast<std::uint8_t>(x); });
      break;
    case Element::float32:
      std::transform(row, row + d_, reinterpret_cast<float*>(to), [](double x) { return static_cast<float>(x); });
      break;
    case Element::float64:
      std::copy(row, row + d_, reinterpret_cast<double*>(to));
      break;
  }
}

bool RowBlock::materialise(std::int64_t i, double* scratch, std::byte* to) const {
  const bool zero = !widen(i, scratch);
  narrow(scratch, to);
  return zero;
}

void RowBlock::prepare_panel(std::int64_t panel, std::vector<double>& scratch) {
  const std::int64_t begin = panel * simd_.tile_rows;
  const std::int64_t end = std::min(size(), begin + simd_.tile_rows);
  scratch.resize(static_cast<std::size_t>(d_));
  for (std::int64_t i = begin; i < end; ++i) {
    if (reading_.borrow) {
      rows_[i] = borrowed(i);
      continue;
    }
    std::byte* to = elements_.data() + i * element_bytes();
    rows_[i] = to;
    zero_[i] = materialise(i, scratch.data(), to) ? 1 : 0;
  }
}

void RowBlock::reserve_rows() {
  if (!reading_.borrow) elements_.reserve(static_cast<std::int64_t>(distinct_.capacity()) * element_bytes());
}

void RowBlock::reserve_own(std::size_t screen, std::int64_t rows) {
  Own& own = own_[screen];
  const std::int64_t padded = (rows + simd_.tile_rows - 1) / simd_.tile_rows * simd_.tile_rows;
  own.panels.reserve(padded * screens_[screen].row_bytes());
  own.rho.reserve(padded);
  own.kappa.reserve(padded);
  if (screens_[screen].type() == ScreenType::int8) {
    own.base.reserve(padded);
  } else {
    own.start.reserve(padded);
  }
}

void RowBlock::reserve_screens() {
  for (std::size_t screen = 0; screen < screens_.size(); ++screen) {
    own_[screen].norms.reserve(distinct_.capacity());
    reserve_own(screen, static_cast<std::int64_t>(distinct_.capacity()));
  }
}

bool RowBlock::begin_packing(std::size_t screen, KeptRows* kept) {
  Packing& packing = packing_[screen];
  packing = {};
  if (kept != nullptr && first_ >= 0) {
    const std::int64_t block = first_ / kept->block();
    if (kept->is_ready(block)) {
      packed_[screen] = kept->rows(block);
      return false;
    }
    if (kept->claim(block)) {
      packing.kept = kept;
      packing.place = kept->place(block);
    }
  }
  Own& own = own_[screen];
  own.norms.assign(distinct_.size(), 0);
  if (packing.kept == nullptr) {
    packing.from = kept;
    reserve_own(screen, size());
    packing.place = {own.panels.data(), own.start.data(), own.base.data(), own.rho.data(), own.kappa.data()};
  }
  const PackedPlace& place = packing.place;
  packed_[screen] = {place.panels, place.start, place.base, place.rho, place.kappa};
  return true;
}

bool RowBlock::copy_panel(std::int64_t panel, std::size_t screen) {
  const KeptRows* const from = packing_[screen].from;
  const std::int64_t width = simd_.tile_rows;
  const std::int64_t begin = panel * width;
  const std::int64_t count = std::min(size() - begin, width);
  if (from == nullptr || distinct_[begin] % width != 0 ||
      distinct_[begin + count - 1] != distinct_[begin] + count - 1) {
    return false;
  }
  const std::int64_t block = distinct_[begin] / from->block();
  if (!from->is_ready(block)) return false;
  const PackedRows rows = from->rows(block);
  const std::int64_t row = distinct_[begin] - block * from->block();
  const std::int64_t row_bytes = screens_[screen].row_bytes();
  const PackedPlace& to = packing_[screen].place;
  std::copy_n(rows.panels + row * row_bytes, width * row_bytes, to.panels + begin * row_bytes);
  if (rows.start != nullptr) std::copy_n(rows.start + row, width, to.start + begin);
  if (rows.base != nullptr) std::copy_n(rows.base + row, width, to.base + begin);
  std::copy_n(rows.rho + row, width, to.rho + begin);
  std::copy_n(rows.kappa + row, width, to.kappa + begin);
  std::fill_n(own_[screen].norms.begin() + begin, count, rows.typical_norm);
  return true;
}

void RowBlock::pack_panel(std::int64_t panel, std::size_t screen, std::vector<double>& scratch) {
  if (copy_panel(panel, screen)) return;
  const std::int64_t width = simd_.tile_rows;
  const std::int64_t begin = panel * width;
  const std::int64_t end = std::min(size(), begin + width);
  const Screen& rounding = screens_[screen];
  const PackedPlace& place = packing_[screen].place;
  const bool whole = rounding.type() == ScreenType::int8;
  std::byte* to = place.panels + begin * rounding.row_bytes();
  scratch.resize(static_cast<std::size_t>(d_));
  for (std::int64_t i = begin; i < end; ++i) {
    const bool ready = rows_[i] != nullptr && !reading_.borrow && reading_.element == Element::float64;
    const bool zero = ready ? zero_[i] != 0 : !widen(i, scratch.data());
    const double* const row = ready ? static_cast<const double*>(rows_[i]) : scratch.data();
    const RoundedRow rounded = rounding.pack(row, Screen::Side::row, to, i - begin, width);
    // A row of zeros has no direction: its cosine distance is 1 whatever the product says, so it always survives.
    const RowTerms terms = zero ? Screen::always(rounded) : rounding.row_terms(rounded);
    // What may overflow is not multiplied, so that the score is infinite and not a NaN, which has no order.
    if (!whole && std::isinf(terms.start)) rounding.pack_nothing(to, i - begin, width);
    if (whole) {
      place.base[i] = terms.base;
    } else {
      place.start[i] = terms.start;
    }
    place.rho[i] = terms.rho;
    place.kappa[i] = terms.kappa;
    own_[screen].norms[i] = std::sqrt(rounded.rounded_sq);
    if (place.finer != nullptr) pack_finer(*rounding.finer(), row, zero, place.finer, i);
  }
  for (std::int64_t i = end; i < begin + width; ++i) {  // lanes beyond the last row: masked by the kernel, but read
    if (whole) {
      place.base[i] = 0;
    } else {
      place.start[i] = 0;
    }
    place.rho[i] = place.kappa[i] = 0;
    rounding.pack_nothing(to, i - begin, width);
  }
}

void RowBlock::pack_finer(const Screen& screen, const double* row, bool zero, std::byte* images, std::int64_t i) {
  const std::int64_t bytes = FinerTerms::image_bytes(screen.columns());
  std::byte* const image = images + i * bytes;
  std::memset(image, 0, static_cast<std::size_t>(bytes));
  const RoundedRow rounded = screen.pack(row, Screen::Side::row, image, 0, 1);
  const RowTerms terms = zero ? Screen::always(rounded) : screen.row_terms(rounded);
  const FinerTerms last = {terms.base, terms.rho, terms.kappa};
  std::memcpy(image + bytes - sizeof(FinerTerms), &last, sizeof(FinerTerms));
}

void RowBlock::finish_packing(std::size_t screen) {
  PackedRows& packed = packed_[screen];
  double sum = 0;
  double least_rho = std::numeric_limits<double>::infinity();
  double least_kappa = least_rho;
  for (std::int64_t i = 0; i < size(); ++i) {
    sum += own_[screen].norms[i];
    if (packed.always(i)) continue;
    least_rho = std::min(least_rho, static_cast<double>(packed.rho[i]));
    least_kappa = std::min(least_kappa, static_cast<double>(packed.kappa[i]));
  }
  packed.typical_norm = size() > 0 ? sum / static_cast<double>(size()) : 0;
  packed.least_rho = std::isfinite(least_rho) ? least_rho : 0;
  packed.least_kappa = std::isfinite(least_kappa) ? least_kappa : 0;
  Packing& packing = packing_[screen];
  if (packing.kept != nullptr) packing.kept->publish(first_ / packing.kept->block(), packed);
  packing.kept = nullptr;
}

}  // namespace vicinal::cpu
