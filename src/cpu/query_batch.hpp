// The queries of one round: float64 rows for the exact keys, float32 panels and terms for the screen.
#pragma once

#include <cstdint>
#include <vector>

#include "core/aligned.hpp"
#include "cpu/screen.hpp"
#include "cpu/simd/kernels.hpp"
#include "kernels.hpp"

namespace vicinal::cpu {

class QueryBatch {
 public:
  QueryBatch(const kernels::NearestTask& task, const SimdKernels& simd, const Screen* screen, const double* centre);

  /// Reads queries [begin, end) and packs them.
  void load(const Context& ctx, std::int64_t begin, std::int64_t end);

  [[nodiscard]] std::int64_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::int64_t size() const noexcept { return end_ - begin_; }
  /// Query begin() + i as float64, zero beyond d up to a multiple of 8.
  [[nodiscard]] const double* row(std::int64_t i) const noexcept { return wide_.data() + i * padded_d_; }
  [[nodiscard]] bool is_zero(std::int64_t i) const noexcept { return zero_[i] != 0; }
  [[nodiscard]] const QueryTerms& terms(std::int64_t i) const noexcept { return terms_[i]; }
  [[nodiscard]] const float* panel(std::int64_t p) const noexcept {
    return packed_.data() + p * simd_.tile_queries * d_;
  }

  /// Bytes one query takes.
  static std::uint64_t bytes_a_query(const kernels::NearestTask& task, bool screened);

 private:
  const kernels::NearestTask& task_;
  const SimdKernels& simd_;
  const Screen* screen_;
  const double* centre_;
  std::int64_t d_;
  std::int64_t padded_d_;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  core::AlignedArray<double> wide_;   // [size, padded_d]
  core::AlignedArray<float> packed_;  // [panels][d, tile_queries]
  std::vector<QueryTerms> terms_;
  std::vector<std::uint8_t> zero_;
};

}  // namespace vicinal::cpu
