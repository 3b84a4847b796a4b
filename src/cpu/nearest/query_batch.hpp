// The queries of one round: float64 rows for the exact keys, packed panels and terms for each screen.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/nearest.hpp"
#include "core/aligned.hpp"
#include "cpu/nearest/screen.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {

class QueryBatch {
 public:
  QueryBatch(const kernels::NearestTask& task, const SimdKernels& simd, std::span<const Screen> screens);

  /// Reads queries [begin, end) and packs them.
  void load(const Context& ctx, std::int64_t begin, std::int64_t end);

  [[nodiscard]] std::int64_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::int64_t size() const noexcept { return end_ - begin_; }
  [[nodiscard]] std::int64_t tiles() const noexcept { return (size() + simd_.tile_queries - 1) / simd_.tile_queries; }
  /// Query begin() + i as float64, zero beyond d up to a multiple of 8.
  [[nodiscard]] const double* row(std::int64_t i) const noexcept { return wide_.data() + i * padded_d_; }
  [[nodiscard]] bool is_zero(std::int64_t i) const noexcept { return zero_[i] != 0; }
  [[nodiscard]] const QueryTerms& terms(std::size_t screen, std::int64_t i) const noexcept {
    return packed_[screen].terms[i];
  }
  [[nodiscard]] const std::byte* panel(std::size_t screen, std::int64_t tile) const noexcept {
    return packed_[screen].panels.data() + tile * simd_.tile_queries * packed_[screen].row_bytes;
  }

  /// Of the first screen's finer images: query i, packed, and its terms.
  [[nodiscard]] const std::byte* finer(std::int64_t i) const noexcept { return finer_.data() + i * finer_bytes_; }
  [[nodiscard]] const QueryTerms& finer_terms(std::int64_t i) const noexcept { return finer_terms_[i]; }

  /// Bytes one query takes.
  static std::uint64_t bytes_a_query(const kernels::NearestTask& task, std::span<const ScreenType> screens);

 private:
  void pack_finer(std::int64_t i);

  struct PackedQueries {
    std::int64_t row_bytes = 0;
    core::AlignedArray<std::byte> panels;  // [tiles][words, tile_queries] of 32 bits
    std::vector<QueryTerms> terms;
  };

  const kernels::NearestTask& task_;
  const SimdKernels& simd_;
  std::span<const Screen> screens_;
  std::int64_t d_;
  std::int64_t padded_d_;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  core::AlignedArray<double> wide_;  // [size, padded_d]
  std::vector<PackedQueries> packed_;
  std::vector<std::uint8_t> zero_;
  std::int64_t finer_bytes_ = 0;  // of a query; 0: the first screen has no finer one
  core::AlignedArray<std::byte> finer_;
  std::vector<QueryTerms> finer_terms_;
};

}  // namespace vicinal::cpu
