// The inner loop of overlap areas (geo/overlap.hpp), compiled once for each instruction set. Every table gives the same
// bits: products and sums are rounded one by one, and lane i mod 8 has an accumulator of its own.
#pragma once

#include <cstdint>

#include "vicinal/context.hpp"

namespace vicinal::cpu {

inline constexpr std::int64_t kFewEights = 2;

/// Pieces of a region's boundary within a box, as heights above its floor: piece i spans [left, right] in x, is
/// `height` high at its left end and rises by `slope`; `sign` is +1 where the region lies below it, else -1; `weight`
/// is the length of border that a unit of its width stands for. Room for the next multiple of 8; pieces beyond `count`
/// are as wide as nothing. Where they are more than kFewEights eights, each eight lies within [first, last]; there is
/// room for a multiple of 8 of these, too.
struct OverlapPieces {
  const double* left;
  const double* right;
  const double* height;
  const double* slope;
  const double* sign;
  const double* weight;
  const double* first;
  const double* last;
  std::int64_t count;
};

struct OverlapSums {
  double area = 0;  ///< sum over pairs of sign_a sign_b integral of min(f_a, f_b) where both are
  double span = 0;  ///< sum over pairs of the widths of what both span: the scale of rounding
};

struct OverlapKernels {
  OverlapSums (*areas)(const OverlapPieces& a, const OverlapPieces& b);
  /// Sum over pairs of weight_a sign_b times the width over which f_a is below f_b, and the other way round. Where both
  /// run along each other every stretch counts once.
  double (*lengths)(const OverlapPieces& a, const OverlapPieces& b);
};

/// The table for an instruction set in use (never `automatic`).
const OverlapKernels& overlap_kernels(Isa isa);

}  // namespace vicinal::cpu
