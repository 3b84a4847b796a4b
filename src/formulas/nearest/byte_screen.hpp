// The int8 screen of byte tables on a matrix unit, and why it may drop a row (contract clause 3): it is exact. Shared
// by the kernels and by the tests.
//
// x' = x - 128 and y' = y - 128 are whole numbers in [-128, 127], and a matrix unit adds their products exactly in 32
// bits: P = x'.y'. Keys of bytes are whole numbers below 2^53, and so is every number on the way to them: the
// contract's float64 arithmetic is exact as well. A row brings `start`, from which its sums begin, a query its `own`:
//   distances: key = |x'|^2 - (2 P - |y'|^2);  start = -ceil(|y'|^2 / 2);  sum = start + P = floor((2 P - |y'|^2) / 2);
//              own = |x'|^2
//   product:   key = -(P + 128 sum y' + 128 sum x' + 2^14 d);  start = 128 sum y';  sum = start + P;
//              own = -128 sum x' - 2^14 d
// An answer has key <= L, and because keys are whole key <= floor(L). So its sum is at least
//   distances: floor((own - floor(L)) / 2)     product: own - floor(L),
// and a row below that may be dropped, ties kept. The threshold is rounded down to float32, scores are rounded up.
// |P| <= 2^14 d and |start| <= 2^14 d: no sum on the way leaves 32 bits for d <= 2^15.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/half.hpp"
#include "vicinal/dtype.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::core {

/// With fewer columns a float16 row takes no more room than a byte row with its start.
inline constexpr std::int64_t kMinByteColumns = 12;
inline constexpr std::int64_t kLargestByteColumns = std::int64_t{1} << 15;
/// The start of what is no row: below every sum.
inline constexpr std::int32_t kNoByteRow = -(std::int32_t{1} << 30) - (std::int32_t{1} << 29);

/// Whether a device multiplies such rows as bytes. compiled_for: what its kernels were compiled for, such as 80.
constexpr bool byte_screen_serves(DType table, DType queries, Metric metric, std::int64_t d,
                                  int compiled_for) noexcept {
  return table == DType::uint8 && queries == DType::uint8 &&
         (metric == Metric::euclidean || metric == Metric::sqeuclidean || metric == Metric::inner_product) &&
         d >= kMinByteColumns && d <= kLargestByteColumns && compiled_for >= 80;
}

/// Columns of a packed row, two bytes each: d bytes and zeros up to whole steps of 32.
VICINAL_HD constexpr std::int64_t byte_columns(std::int64_t d) noexcept {
  return (d + 31) / 32 * 16;
}

/// Sums over the moved columns of a row or a query.
struct ByteSums {
  std::int32_t sum = 0;
  std::int32_t squares = 0;
};

/// What a row's sums begin with.
VICINAL_HD constexpr std::int32_t byte_start(bool product, ByteSums row) noexcept {
  return product ? 128 * row.sum : -((row.squares + 1) / 2);
}

/// What a query adds to its threshold.
VICINAL_HD constexpr double byte_own(bool product, ByteSums query, std::int64_t d) noexcept {
  return product ? -128.0 * query.sum - 16384.0 * static_cast<double>(d) : static_cast<double>(query.squares);
}

/// A row may be dropped when its sum is below this. `key`: no answer has a larger one; infinity: nothing is known.
VICINAL_HD inline float byte_threshold(bool product, double own, double key) noexcept {
  if (!(key <= 0x1.fffffffffffffp1023)) return -HUGE_VALF;
  return float_down(std::floor((own - std::floor(key)) / (product ? 1 : 2)));
}

}  // namespace vicinal::core
