// The key of a pair of rows (contract clause 1), written once, scalar, for host and device. Rows are float64,
// contiguous, d >= 0 columns. Every function is IEEE arithmetic in one fixed order, so vector code that keeps the eight
// accumulators apart gives the same bits. Cost O(d) without allocation. Must be compiled without contraction
// (-ffp-contract=off, -fmad=false), without fast math and without flushing subnormals to zero.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/order.hpp"
#include "core/power.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::core {

/// Accumulators of a sum: column j goes to accumulator j % 8.
inline constexpr std::int64_t kLanes = 8;

/// The contract's tree over the eight accumulators.
VICINAL_HD inline double sum_of_lanes(const double* a) noexcept {
  return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/// Sum of squared differences.
VICINAL_HD inline double euclidean_key(const double* x, const double* y, std::int64_t d) noexcept {
  double a[kLanes] = {};
  for (std::int64_t j = 0; j < d; ++j) {
    const double t = x[j] - y[j];
    a[j % kLanes] = std::fma(t, t, a[j % kLanes]);
  }
  return sum_of_lanes(a);
}

/// Sum of absolute differences.
VICINAL_HD inline double manhattan_key(const double* x, const double* y, std::int64_t d) noexcept {
  double a[kLanes] = {};
  for (std::int64_t j = 0; j < d; ++j) a[j % kLanes] += std::fabs(x[j] - y[j]);
  return sum_of_lanes(a);
}

/// Largest absolute difference.
VICINAL_HD inline double chebyshev_key(const double* x, const double* y, std::int64_t d) noexcept {
  double largest = 0;
  for (std::int64_t j = 0; j < d; ++j) {
    const double t = std::fabs(x[j] - y[j]);
    if (t > largest) largest = t;
  }
  return largest;
}

/// Sum of absolute differences to the power p, finite and >= 1; the root is not taken.
VICINAL_HD inline double minkowski_key(const double* x, const double* y, std::int64_t d, double p) noexcept {
  double a[kLanes] = {};
  for (std::int64_t j = 0; j < d; ++j) a[j % kLanes] += power(std::fabs(x[j] - y[j]), p);
  return sum_of_lanes(a);
}

/// Minus the inner product.
VICINAL_HD inline double inner_product_key(const double* x, const double* y, std::int64_t d) noexcept {
  double a[kLanes] = {};
  for (std::int64_t j = 0; j < d; ++j) a[j % kLanes] = std::fma(x[j], y[j], a[j % kLanes]);
  return 0.0 - sum_of_lanes(a);
}

/// Share of columns whose values differ; d >= 1.
VICINAL_HD inline double hamming_key(const double* x, const double* y, std::int64_t d) noexcept {
  std::int64_t differ = 0;
  for (std::int64_t j = 0; j < d; ++j) differ += x[j] != y[j] ? 1 : 0;
  return static_cast<double>(differ) / static_cast<double>(d);
}

/// 2^e for e in [-1074, 1023], exactly.
VICINAL_HD inline double power_of_two(int e) noexcept {
  const std::uint64_t bits = e >= -1022 ? static_cast<std::uint64_t>(e + 1023) << 52 : std::uint64_t{1} << (e + 1074);
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Brings the elements of one row to length one.
struct UnitScale {
  double scale;   ///< with `rest` the power of two that brings the row's largest magnitude to [1, 2)
  double rest;    ///< 2^-e may lie beyond the largest float: then in two steps, both exact because they only enlarge
  double length;  ///< of the row after that; 0 for a row of zeros

  [[nodiscard]] VICINAL_HD double operator()(double x) const noexcept {
    return length == 0 ? 0 : x * scale * rest / length;
  }
};

/// The scale of the row x(0), ..., x(d - 1).
template <class Row>
VICINAL_HD inline UnitScale unit_scale(const Row& x, std::int64_t d) noexcept {
  double largest = 0;
  for (std::int64_t j = 0; j < d; ++j) {
    const double t = std::fabs(x(j));
    if (t > largest) largest = t;
  }
  if (largest == 0) return {0, 0, 0};
  const int e = std::ilogb(largest);
  const double scale = power_of_two(-e > 1023 ? 1023 : -e);
  const double rest = power_of_two(-e > 1023 ? -e - 1023 : 0);
  double a[kLanes] = {};
  for (std::int64_t j = 0; j < d; ++j) {
    const double v = x(j) * scale * rest;
    a[j % kLanes] = std::fma(v, v, a[j % kLanes]);
  }
  return {scale, rest, std::sqrt(sum_of_lanes(a))};
}

/// Brings a row to length one for `cosine_key_normalized`; `out` may be `x`. False, and zeros, for a row of zeros.
VICINAL_HD inline bool normalize_row(const double* x, std::int64_t d, double* out) noexcept {
  const UnitScale unit = unit_scale([x](std::int64_t j) { return x[j]; }, d);
  for (std::int64_t j = 0; j < d; ++j) out[j] = unit(x[j]);
  return unit.length != 0;
}

/// The cosine key of two rows that `normalize_row` made; `x_zero`, `y_zero`: it returned false.
VICINAL_HD inline double cosine_key_normalized(const double* xn, bool x_zero, const double* yn, bool y_zero,
                                               std::int64_t d) noexcept {
  return x_zero || y_zero ? 1.0 : 0.5 * euclidean_key(xn, yn, d);
}

/// The distance reported for a key (contract clause 2).
VICINAL_HD inline double reported_distance(Metric metric, double key, double p) noexcept {
  if (metric == Metric::euclidean) return std::sqrt(key);
  if (metric == Metric::minkowski) return power(key, 1.0 / p);
  return key;
}

}  // namespace vicinal::core
