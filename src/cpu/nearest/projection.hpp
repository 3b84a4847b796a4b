// Images of rows in few columns: what a screen of an index with pruned rows compares (docs/design/search.md).
//
// c: a center; z = x - c; P: p axes [p, d] in float64; Q: the matrix with orthonormal rows that is nearest to P. With
// epsilon >= |P P' - I| (Frobenius, measured, its rounding added) below 1, P = (P P')^(1/2) Q and |P - Q| <= epsilon.
// The exact image f(x) = (Q z, |z - Q'Q z|) has p + 1 columns. By the triangle inequality in what Q leaves, and by
// Cauchy and Schwarz,
//   |f(x) - f(y)| <= |x - y|   and   f(x).f(y) >= (x - c).(y - c)   and   |f(x)| = |x - c|.
// So a row that is out of reach in the image is out of reach. `map` computes P z in float64, and the last column from
// |z|^2 - |P z|^2. Its error, of vectors of length |z|: e = epsilon + sqrt(p) (d + 8) 2^-51 + 2^-51 for P z instead of
// Q z; for the last column's square at most delta = (d + p + 24) 2^-51 + 3 e, and |sqrt(a) - sqrt(b)| <= sqrt(|a - b|).
// Together at most eta |z| with eta = e + sqrt(delta) (1 + 2^-20) + 2^-50. Products that vanish add less than 2^-500.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simd/kernels.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cpu {

class Projection {
 public:
  static constexpr std::int64_t kMaxAxes = 255;

  /// axes [p, d], nearly orthonormal, p <= kMaxAxes; center [d]; `longest`: of rows that are that long after centring,
  /// or shorter. Takes O(p^2 d); a cancel of `ctx`, if there is one, stops that.
  Projection(std::span<const double> axes, std::vector<double> centre, double longest, const SimdKernels& simd,
             const Context* ctx = nullptr);
  static std::uint64_t bytes(std::int64_t axes, std::int64_t d);

  /// Whether the axes are near enough to orthonormal ones for the bound.
  [[nodiscard]] bool serves() const noexcept;
  [[nodiscard]] std::int64_t cols() const noexcept { return d_; }
  /// Of an image.
  [[nodiscard]] std::int64_t columns() const noexcept { return p_ + 1; }
  [[nodiscard]] double longest() const noexcept { return longest_; }

  /// Writes a row's image to `to` [columns]. Returns |x - c|, or infinity if it is not finite.
  double map(const double* row, double* to) const;
  /// How far the image of a row may be from the exact one; `length` is what `map` returned.
  [[nodiscard]] double error(double length) const noexcept;
  /// By how much the distance of two images may exceed that of their rows, of which one is at most `longest`.
  [[nodiscard]] double distance_slack(double length) const noexcept;
  /// By how much the product of two images may be below that of their rows.
  [[nodiscard]] double product_slack(double length) const noexcept;

 private:
  std::int64_t d_;
  std::int64_t p_;
  std::vector<double> axes_;  // [p, d]
  std::vector<double> centre_;
  double longest_;
  KeysFn products_;
  double residual_;  // epsilon
  double relative_;  // eta
};

}  // namespace vicinal::cpu
