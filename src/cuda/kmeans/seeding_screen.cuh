// The screen of k-means++, and why a key that it rules out is not below a row's least key (contract clauses 3 and 12).
// Rows are rounded to bytes with a scale of their own; drawn centers are rows, too, so that the product of two packed
// rows says how far apart they are.
//
// X = s (x - m) for a row x, exact, s a power of two with |X_j| < 2 for all columns, m the table's center; q_x its
// bytes and a its scale: a q_x is what X is rounded to, e_x >= |X - a q_x|. For rows x and c with bytes q_x and q_c the
// sums P = q_x q_c and Q = |q|^2 are integers below 2^31, and
//   D^2 = |a q_x - b q_c|^2 = a^2 Q_x + b^2 Q_c - 2 a b P,   s |x - c| >= D - e_x - e_c.
// The key of the two rows is a sum of d squares that are not negative, with fewer than d / 8 + 8 relative errors of
// 2^-53 each and d absolute ones of 2^-1074. So it is not below a row's least key M where
//   D >= r_x + e_c,  r_x = s sqrt(M) (1 + 2^-20) + e_x,
// up to the absolute errors, which are far below kTiny: s^2 2^-1074 d < 2^-400.
//
// In float32: with E = a^2 Q_x + b^2 Q_c, |2 a b P| <= E. Both squares are rounded once, and so are their sum, a b, P
// and the two steps of the comparison's left side: errors of 8 2^-24 E in all, for which 2^-20 E is taken off. The
// right side's five roundings are within its factor 1 + 2^-20. What underflows is within kTiny.
#pragma once

#include "cuda/kmeans/seeding.hpp"

namespace vicinal::cuda::kmeans {

/// Of a drawn row, for the comparison; `error` NaN: nothing passes.
struct SeedTrial {
  float scale;  ///< -2 b
  float square;
  float error;
};

__device__ __forceinline__ bool may_be_nearer(const SeedFacts& row, const SeedTrial& trial, int product) {
  constexpr float kLess = 1 - 0x1p-20F;
  constexpr float kMore = 1 + 0x1p-20F;
  constexpr float kTiny = 0x1p-100F;
  const float squares = __fmul_rn(__fadd_rn(row.square, trial.square), kLess);
  const float apart = __fmaf_rn(__fmul_rn(row.scale, trial.scale), static_cast<float>(product), squares);
  const float reach = __fadd_rn(row.reach, trial.error);
  return apart < __fmaf_rn(__fmul_rn(reach, kMore), reach, kTiny);
}

/// r_x of a row with that least key; NaN for a key that none is below.
__device__ __forceinline__ float reach_of(const SeedView& v, double key, float error) {
  constexpr float kMore = 1 + 0x1p-19F;
  if (key == 0) return NAN;
  const float square = __double2float_ru(__dmul_ru(key, v.square_scale));
  return v.screened ? __fadd_ru(__fmul_ru(__fsqrt_ru(square), kMore), error) : INFINITY;
}

}  // namespace vicinal::cuda::kmeans
