// Rows of the table made ready for one round of the search: element pointers for the exact keys and, for the screen,
// the screens, packed panels with their terms. One block at a time exists, so no second copy of the table does
// (contract clause 7).
#pragma once

#include <cstdint>
#include <vector>

#include "backend/nearest.hpp"
#include "core/aligned.hpp"
#include "cpu/nearest/screen.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {

/// How the rows of a task are read for keys. Cosine rows are brought to length one, minkowski's widened; float16 and
/// bfloat16 become float32; uint8, float32 and float64 rows in memory are used where they lie.
struct RowReading {
  Element element;
  bool normalise;
  bool borrow;  // keys read the table's own memory

  static RowReading of(const TableView& table, Metric metric);
};

/// The rows of a block as one screen sees them.
struct PackedRows {
  core::AlignedArray<std::byte> panels;  // [panels][words, tile_rows] of 32 bits
  core::AlignedArray<float> start;       // [padded rows], and so the others
  core::AlignedArray<std::int32_t> base;
  core::AlignedArray<float> rho;
  core::AlignedArray<float> kappa;
  std::vector<double> norms;  // |y~|
  double typical_norm = 0;
  double least_rho = 0;  // over the rows that the screen judges
  double least_kappa = 0;
};

class RowBlock {
 public:
  RowBlock(const kernels::NearestTask& task, const SimdKernels& simd, std::int64_t capacity,
           std::span<const Screen> screens);

  /// Takes distinct rows first, first + 1, ..., first + count - 1. Reads a block source here, on the calling thread.
  void assign(std::int64_t first, std::int64_t count);
  /// Takes a list of distinct rows (ascending).
  void assign(std::span<const std::int64_t> distinct);

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(distinct_.size()); }
  [[nodiscard]] std::int64_t panels() const noexcept { return (size() + simd_.tile_rows - 1) / simd_.tile_rows; }
  /// Materialises the rows of one panel for keys; panels are independent.
  void prepare_panel(std::int64_t panel, std::vector<double>& scratch);
  /// Packs one panel for a screen; after every panel, `summarise`.
  void pack_panel(std::int64_t panel, std::size_t screen, std::vector<double>& scratch);
  void summarise(std::size_t screen);

  [[nodiscard]] const std::int64_t& distinct(std::int64_t i) const noexcept { return distinct_[i]; }
  [[nodiscard]] const void* const* rows() const noexcept { return rows_.data(); }
  [[nodiscard]] bool is_zero(std::int64_t i) const noexcept { return zero_[i] != 0; }
  [[nodiscard]] const PackedRows& packed(std::size_t screen) const noexcept { return packed_[screen]; }

  /// Bytes a block of that capacity takes.
  static std::uint64_t bytes(const kernels::NearestTask& task, std::int64_t capacity,
                             std::span<const ScreenType> screens);

 private:
  void read_source();
  /// Row i as float64, of length one for cosine.
  void widen(std::int64_t i, double* to);

  const kernels::NearestTask& task_;
  const kernels::Prepared& index_;
  const SimdKernels& simd_;
  std::span<const Screen> screens_;
  RowReading reading_;
  std::int64_t d_;
  std::vector<std::int64_t> distinct_;
  std::vector<const void*> rows_;
  std::vector<std::uint8_t> zero_;  // rows of zeros, for cosine
  std::vector<std::byte> raw_;      // what a block source delivered
  TableView raw_view_;
  core::AlignedArray<std::byte> elements_;
  std::vector<PackedRows> packed_;  // one a screen
};

}  // namespace vicinal::cpu
