// Keys of pairs (contract clause 1), from rows as QueryBatch and RowBlock hold them: what every method of brute force
// ends with.
#pragma once

#include <cstdint>

#include "backend/nearest.hpp"
#include "cpu/nearest/block.hpp"
#include "cpu/nearest/collector.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {

class PairKeys {
 public:
  PairKeys(const Context& ctx, const kernels::NearestTask& task, const Candidates& candidates);

  /// Of a query (QueryBatch::row) and `count` rows (RowBlock::rows).
  void sums(const double* x, const void* const* rows, std::int64_t count, double* out) const;
  /// Whether sums are keys as they are.
  [[nodiscard]] bool are_sums() const noexcept {
    return task_.metric != Metric::cosine && task_.metric != Metric::inner_product && task_.metric != Metric::hamming;
  }
  /// The key that a sum makes; `zero`: of cosine, one of the two is a row of zeros.
  [[nodiscard]] double key_of(double sum, bool zero) const noexcept;
  /// An overflow is an error, but only of a pair that could be neighbors: throws `bad_data` naming one of them.
  void refuse_overflow(std::int64_t query, std::int64_t distinct) const;

 private:
  const Context& ctx_;
  const kernels::NearestTask& task_;
  const Candidates& candidates_;
  const SimdKernels& simd_;
  Element element_;
  std::int64_t d_;
};

}  // namespace vicinal::cpu
