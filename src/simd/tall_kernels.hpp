// The inner loops of tall matrices of few columns (solver/tall.cpp, solver/rows.cpp), compiled once for each
// instruction set. Rows lie side by side. Sums run over rows, or over columns, in ascending order; only whether a
// product is rounded before it is added differs (clause 17).
#pragma once

#include <cstdint>

#include "vicinal/context.hpp"

namespace vicinal::cpu {

struct TallKernels {
  /// sums[r, c] += a[i, r] b[i, c], over the rows i < n of a [n, wide_a] and b [n, wide_b].
  void (*inner)(std::int64_t n, const double* a, std::int64_t wide_a, const double* b, std::int64_t wide_b,
                double* sums);
  /// y = x c, for x [n, wide_x], c [wide_x, wide_y]; y is not x.
  void (*product)(std::int64_t n, const double* x, std::int64_t wide_x, const double* c, double* y,
                  std::int64_t wide_y);
  /// y -= x c.
  void (*subtract)(std::int64_t n, const double* x, std::int64_t wide_x, const double* c, double* y,
                   std::int64_t wide_y);
  /// out [wide] = sum_j values[j] rows[j][..], for j < count.
  void (*combine)(std::int64_t count, const double* values, const double* const* rows, std::int64_t wide, double* out);
  /// Reflects the rows of [r; strip] so that column j of the strip counts as 0; what is left there is anything. r [q,
  /// q] is a triangle, strip [q, kFoldedRows] has its columns side by side.
  void (*reflect)(double* r, double* strip, std::int64_t q, std::int64_t j);
};
inline constexpr std::int64_t kFoldedRows = 64;

/// The table for an instruction set in use (never `automatic`).
const TallKernels& tall_kernels(Isa isa);

}  // namespace vicinal::cpu
