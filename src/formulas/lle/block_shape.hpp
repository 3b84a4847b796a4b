// How large a point's block of A is, by variant of locally linear embedding (contract clause 17): for the host and
// devices.
#pragma once

#include <cstdint>

#include "core/order.hpp"
#include "vicinal/lle.hpp"

namespace vicinal::solver {

/// Whether a block's first column is the point's own; the others are its neighbors'.
inline bool has_own_column(LleVariant variant) {
  return variant == LleVariant::standard || variant == LleVariant::modified;
}

inline std::int64_t block_width(LleVariant variant, std::int64_t k) {
  return k + (has_own_column(variant) ? 1 : 0);
}

/// Rows of a block; of `modified` the most.
inline std::int64_t most_block_rows(LleVariant variant, std::int64_t k, std::int64_t dim) {
  switch (variant) {
    case LleVariant::standard:
      return 1;
    case LleVariant::modified:
      return k - 1;
    case LleVariant::hessian:
      return dim * (dim + 1) / 2;
    default:
      return k - 1 - dim;
  }
}

/// Of `modified`: what the values after the first `kept` are to those, 0 where there are none.
VICINAL_HD inline double share_left_out(const double* squares, std::int64_t count, std::int64_t kept) {
  double head = 0;
  double tail = 0;
  for (std::int64_t c = 0; c < count; ++c) (c < kept ? head : tail) += squares[c];
  return head > 0 ? tail / head : 0;
}

}  // namespace vicinal::solver
