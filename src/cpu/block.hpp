// Rows of the table made ready for one round of the search: element pointers for the exact keys and, for the screen,
// float32 panels with their terms. One block at a time exists, so no second copy of the table does (contract clause 7).
#pragma once

#include <cstdint>
#include <vector>

#include "core/aligned.hpp"
#include "cpu/screen.hpp"
#include "cpu/simd/kernels.hpp"
#include "kernels.hpp"

namespace vicinal::cpu {

/// How the rows of a task are read for keys. Cosine rows are brought to length one, minkowski's widened; float16 and
/// bfloat16 become float32; uint8, float32 and float64 rows in memory are used where they lie.
struct RowReading {
  Element element;
  bool normalise;
  bool borrow;  // keys read the table's own memory

  static RowReading of(const TableView& table, Metric metric);
};

class RowBlock {
 public:
  /// screened: rows are also packed for the screen.
  RowBlock(const kernels::NearestTask& task, const SimdKernels& simd, std::int64_t capacity, bool screened);

  /// Takes distinct rows first, first + 1, ..., first + count - 1. Reads a block source here, on the calling thread.
  void assign(std::int64_t first, std::int64_t count);
  /// Takes a list of distinct rows (ascending).
  void assign(std::span<const std::int64_t> distinct);

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(distinct_.size()); }
  [[nodiscard]] std::int64_t panels() const noexcept { return (size() + simd_.tile_rows - 1) / simd_.tile_rows; }
  /// Materialises one panel and, when screened, packs it; panels are independent.
  void prepare_panel(std::int64_t panel, const Screen* screen, const double* centre, std::vector<double>& scratch);
  /// After every panel: a typical row length, for the choice of the screen's form.
  void summarise();

  [[nodiscard]] const std::int64_t& distinct(std::int64_t i) const noexcept { return distinct_[i]; }
  [[nodiscard]] const void* const* rows() const noexcept { return rows_.data(); }
  [[nodiscard]] bool is_zero(std::int64_t i) const noexcept { return zero_[i] != 0; }
  [[nodiscard]] double typical_norm() const noexcept { return typical_norm_; }
  [[nodiscard]] const float* start() const noexcept { return start_.data(); }
  [[nodiscard]] const float* rho() const noexcept { return rho_.data(); }
  [[nodiscard]] const float* kappa() const noexcept { return kappa_.data(); }
  [[nodiscard]] const float* panel(std::int64_t p) const noexcept { return packed_.data() + p * simd_.tile_rows * d_; }

  /// Bytes a block of that capacity takes.
  static std::uint64_t bytes(const kernels::NearestTask& task, std::int64_t capacity);

 private:
  void read_source();
  [[nodiscard]] std::int64_t padded() const noexcept { return panels() * simd_.tile_rows; }

  const kernels::NearestTask& task_;
  const kernels::Prepared& index_;
  const SimdKernels& simd_;
  RowReading reading_;
  bool screened_;
  std::int64_t d_;
  std::vector<std::int64_t> distinct_;
  std::vector<const void*> rows_;
  std::vector<std::uint8_t> zero_;  // rows of zeros, for cosine
  std::vector<double> norms_;       // |y~| of each row
  std::vector<std::byte> raw_;      // what a block source delivered
  TableView raw_view_;
  core::AlignedArray<std::byte> elements_;
  core::AlignedArray<float> packed_;  // [panels][d, tile_rows]
  core::AlignedArray<float> start_;
  core::AlignedArray<float> rho_;
  core::AlignedArray<float> kappa_;
  double typical_norm_ = 0;
};

}  // namespace vicinal::cpu
