// Which searches of a device read the table once, as it lies, for all their queries (cuda/nearest/few.cu), and the
// bound by which float32 sums drop rows there.
//
// LEMMA few_queries.bound. Values are float32 numbers, or narrower, which float32 holds. Let K be the contract's key
// of a pair, the float64 sum of d squared differences, and s a float32 sum of the same squares: each difference
// rounded, each square added by one fused operation, in any order in which no square passes more than N additions. All
// terms are at least 0, so that relative errors do not grow by cancellation. A difference has a relative error of at
// most u = 2^-24 (one below the normal range is exact), its square twice that and the product of both, and each
// addition one more: s <= S (1 + u)^(N + 2) + d 2^-149 for the exact sum S, where the last term is what squares below
// the normal range lose. K >= S (1 - (d + 2) 2^-53). With N <= d + 8 and d <= 2^16, (1 + u)^(N + 2) (1 + (d + 3) 2^-53)
// is at most 1 + (d + 12) 2^-23: (1 + u)^M <= 1 + 2 M u where M u <= 1. Hence K <= limit implies s <=
// few_queries_bound(limit, d). Where s overflows, so does the bound, or K is above the limit.
//
// LEMMA few_queries.products. Of more queries a matrix unit forms, of a row y and a query x, the sum a of the products
// of z = y - c and w = x - c, c being some float32 vector. u, K, S and d as above, K <= limit.
//   1. z and w are rounded: each is off by at most u / (1 - u) of itself. As sqrt(S) <= (1 + 2 u) (|w| + |z|), hence
//      |w - z|^2 <= S + 2^-22 (1 + 2^-20) (|w|^2 + |z|^2).
//   2. Factors are z and w cut to the 11 bits of tf32: |w.z - w~.z~| <= 2^-9 |w||z|.
//   3. The sum a is off by at most beta sum_i w_i p_i (half_screen.hpp; of Volta's model, the loosest, whatever the
//      device), which is at most beta steps (1 + 2^-9) |w||z|, in steps of 16 columns.
//   4. The norm n of z is a float32 sum of squares, none of which passes more than d / 4 + 7 additions: at most
//      |z|^2 (1 + (d / 8 + 5) 2^-23). Its root is rounded up.
// With |w - z|^2 = |z|^2 + |w|^2 - 2 w.z
//   n kept - factor sqrt(n) - 2 a <= bound, where kept = 1 - (d / 4 + 24) 2^-23,
//   factor >= 2 (2^-9 + beta steps (1 + 2^-9)) |w|, bound >= S - |w|^2 (1 - 2^-20) + d 2^-123.
// kept and the factor of |w|^2 leave more than 2^-21 (|w|^2 + |z|^2) beyond (1) and (4), and so more than 2^-20 |w||z|.
// That takes in what the product with kept and the two fused operations on the left round, and the root of n, off by
// less than 2^-16, times the factor, which is below 2^-6 |w|. Below the normal range a factor may count as nothing, or
// as 2^-126 in an alignment, n's root lacks sqrt(d) 2^-74, and a sum loses 2^-126 a step. The last is within half of
// d 2^-123; the others are below sqrt(d) 2^-79 (|w| + |z|) in all: within what is left of (|w|^2 + |z|^2) where |w| +
// |z| is above sqrt(d) 2^-57, and else below d 2^-136. A pair is dropped where the left side is above the bound; NaN
// keeps it, as of a row with an infinite n. Where n is finite, |z| < 2^64, and a query with |w| > 2^60 drops nothing:
// no product is infinite.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/half.hpp"
#include "formulas/nearest/half_screen.hpp"
#include "vicinal/dtype.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::core {

inline constexpr std::int64_t kFewQueries = 24;
inline constexpr std::int64_t kFewQueriesOfBytes = 8;  // more are served sooner by products of bytes
inline constexpr std::int64_t kFewQueriesMaxK = 1024;
inline constexpr std::int64_t kFewQueriesMaxCols = 65536;
inline constexpr std::int64_t kFewProductsMaxCols = 1024;
inline constexpr Accumulation kFewProductsSums = kVoltaSums;

/// Whether such a search of the k nearest is one of them. m: queries; d: columns.
constexpr bool few_queries_serve(Metric metric, DType table, DType queries, std::int64_t m, std::int64_t d,
                                 std::int64_t k) {
  const std::int64_t most = table == DType::uint8 ? kFewQueriesOfBytes : kFewQueries;
  if (m > most || k > kFewQueriesMaxK || d > kFewQueriesMaxCols) return false;
  if (metric != Metric::euclidean && metric != Metric::sqeuclidean) return false;
  return table != DType::float64 && queries != DType::float64;
}

/// No float32 sum of a pair whose key is at most `limit` is above this. To be rounded up to float32.
constexpr double few_queries_bound(double limit, std::int64_t d) {
  const auto columns = static_cast<double>(d);
  return limit * (1 + (columns + 12) * 0x1p-23) + columns * 0x1p-148;
}

/// What a row's norm is multiplied with.
constexpr double few_products_kept(std::int64_t d) {
  return 1 - (static_cast<double>(d) / 4 + 24) * 0x1p-23;
}

struct FewProductsBound {
  float factor;
  float bound;
};

/// Of a query whose norm |w|^2 is given; limits below 0 drop every pair.
VICINAL_HD inline FewProductsBound few_products_bound(double limit, double norm, std::int64_t d) noexcept {
  if (limit < 0) return {0, -HUGE_VALF};
  if (!(norm <= 0x1p120)) return {0, HUGE_VALF};
  const auto columns = static_cast<double>(d);
  const double steps = std::ceil(columns / kHalfStep);
  const double products = 0x1p-9 + half_beta(kFewProductsSums) * steps * (1 + 0x1p-9);
  const double sum = limit * (1 + (columns + 3) * 0x1p-53);
  return {-float_down(-2 * products * std::sqrt(norm)),
          -float_down(-(sum - norm * (1 - 0x1p-20) + columns * 0x1p-123))};
}

/// Whether the left side of the lemma drops a pair. norm, root: n of the row and its root, rounded up; product: a.
VICINAL_HD inline bool few_products_drop(const FewProductsBound& query, float kept, float norm, float root,
                                         float product) noexcept {
  return std::fma(-2.0F, product, std::fma(-query.factor, root, norm * kept)) > query.bound;
}

}  // namespace vicinal::core
