// Rows of the table made ready for one round of the search: element pointers for the exact keys and, for the screens,
// packed panels with their terms. Without rows that the index keeps (packed_table.hpp), one block at a time exists, so
// no second copy of the table does (contract clause 7).
#pragma once

#include <cstdint>
#include <vector>

#include "backend/nearest.hpp"
#include "core/aligned.hpp"
#include "cpu/nearest/packed_table.hpp"
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

class RowBlock {
 public:
  RowBlock(const kernels::NearestTask& task, const SimdKernels& simd, std::int64_t capacity,
           std::span<const Screen> screens);
  ~RowBlock() { give_up(); }
  RowBlock(const RowBlock&) = delete;
  RowBlock& operator=(const RowBlock&) = delete;

  /// Takes distinct rows first, first + 1, ..., first + count - 1. Reads a block source here, on the calling thread.
  void assign(std::int64_t first, std::int64_t count);
  /// Takes a list of distinct rows (ascending).
  void assign(std::span<const std::int64_t> distinct);

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(distinct_.size()); }
  [[nodiscard]] std::int64_t panels() const noexcept { return (size() + simd_.tile_rows - 1) / simd_.tile_rows; }
  /// Before panels are prepared.
  void reserve_rows();
  /// Takes the memory in which any rows are packed for every screen.
  void reserve_screens();
  /// Gives up what `begin_packing` claimed and nothing has finished.
  void give_up() noexcept;
  /// Materialises the rows of one panel for keys; panels are independent.
  void prepare_panel(std::int64_t panel, std::vector<double>& scratch);

  /// Before a screen meets the block: whether its panels are to be packed. `kept`: where the index keeps the rows of
  /// that screen, or null. A block that another search packs there is packed in this one's own memory.
  bool begin_packing(std::size_t screen, KeptRows* kept);
  /// Packs one panel; panels are independent.
  void pack_panel(std::int64_t panel, std::size_t screen, std::vector<double>& scratch);
  /// After every panel.
  void finish_packing(std::size_t screen);

  [[nodiscard]] const std::int64_t& distinct(std::int64_t i) const noexcept { return distinct_[i]; }
  /// The elements of rows whose panels were prepared.
  [[nodiscard]] const void* const* rows() const noexcept { return rows_.data(); }
  [[nodiscard]] bool is_zero(std::int64_t i) const noexcept { return zero_[i] != 0; }
  [[nodiscard]] const PackedRows& packed(std::size_t screen) const noexcept { return packed_[screen]; }

  /// Whether keys read the table's own memory.
  [[nodiscard]] bool borrows() const noexcept { return reading_.borrow; }
  /// Of a block that borrows: the elements of row i, whose panel need not be prepared.
  [[nodiscard]] const void* borrowed(std::int64_t i) const noexcept;
  /// Bytes of a row's elements.
  [[nodiscard]] std::int64_t element_bytes() const noexcept;
  /// Materialises row i alone, whose panel need not be prepared, in `to` [element_bytes]. Returns whether it is a row
  /// of zeros, for cosine. `scratch` [d].
  bool materialise(std::int64_t i, double* scratch, std::byte* to) const;

  /// Bytes a block of that capacity takes.
  static std::uint64_t bytes(const kernels::NearestTask& task, std::int64_t capacity,
                             std::span<const ScreenType> screens);

 private:
  // Memory of this block for the rows of one screen.
  struct Own {
    core::AlignedArray<std::byte> panels;
    core::AlignedArray<float> start;
    core::AlignedArray<std::int32_t> base;
    core::AlignedArray<float> rho;
    core::AlignedArray<float> kappa;
    std::vector<double> norms;  // |y~|
  };
  // Where the rows of one screen are packed to at present.
  struct Packing {
    PackedPlace place;
    KeptRows* kept = nullptr;        // whose block is claimed
    const KeptRows* from = nullptr;  // that has the rows of a sample, where its blocks are ready
  };

  void read_source();
  /// Takes memory for the rows of one screen.
  void reserve_own(std::size_t screen, std::int64_t rows);
  /// Row i as float64, of length one for cosine: then whether it is not a row of zeros.
  bool widen(std::int64_t i, double* to) const;
  void narrow(const double* row, std::byte* to) const;
  /// Copies a panel whose rows are those of a panel that is kept; false where there is none.
  bool copy_panel(std::int64_t panel, std::size_t screen);
  /// Packs the finer image of row i of the block.
  static void pack_finer(const Screen& screen, const double* row, bool zero, std::byte* images, std::int64_t i);
  [[nodiscard]] std::int64_t table_row(std::int64_t i) const noexcept {
    return index_.grouped() ? index_.distinct[distinct_[i]] : distinct_[i];
  }

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
  std::int64_t first_ = -1;         // distinct row that a stretch of rows begins with; -1: rows of a list
  std::vector<PackedRows> packed_;  // one a screen, and so the others
  std::vector<Packing> packing_;
  std::vector<Own> own_;
};

}  // namespace vicinal::cpu
