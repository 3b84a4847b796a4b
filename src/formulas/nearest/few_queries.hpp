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
#pragma once

#include <cstdint>

#include "vicinal/dtype.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::core {

inline constexpr std::int64_t kFewQueries = 16;
inline constexpr std::int64_t kFewQueriesOfBytes = 8;  // more are served sooner by products of bytes
inline constexpr std::int64_t kFewQueriesMaxK = 1024;
inline constexpr std::int64_t kFewQueriesMaxCols = 65536;

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

}  // namespace vicinal::core
