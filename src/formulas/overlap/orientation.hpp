// On which side of a line a point lies, exactly (contract clauses 3 and 15): a float64 determinant where its bound
// decides (Shewchuk 1997), else its sign from an exact sum of exact products.
#pragma once

#include <cmath>

#include "core/exact_sum.hpp"
#include "formulas/overlap/plane.hpp"

namespace vicinal::geo {

inline constexpr int kUnsure = 2;  // of sides that a float64 determinant does not tell

/// As `orientation`, or kUnsure; for the device too.
constexpr int quick_orientation(const Point& p, const Point& q, const Point& r) noexcept {
  const double left = (p.x - r.x) * (q.y - r.y);
  const double right = (p.y - r.y) * (q.x - r.x);
  const double determinant = left - right;
  constexpr double kBound = (3 + 16 * 0x1p-53) * 0x1p-53;
  const double bound = kBound * ((left < 0 ? -left : left) + (right < 0 ? -right : right));
  return determinant > bound ? 1 : -determinant > bound ? -1 : kUnsure;
}

/// Adds x * y to a sum, exactly: the rounded product and what rounding took from it.
inline void add_product(core::ExactSum& sum, double x, double y) noexcept {
  const double product = x * y;
  sum.add(product);
  sum.add(std::fma(x, y, -product));
}

/// +1 where p, q, r turn to the left, -1 to the right, 0 on a line. For coordinates within a layer's limits.
inline int orientation(const Point& p, const Point& q, const Point& r) noexcept {
  if (r == p || r == q || p == q) return 0;
  const int quick = quick_orientation(p, q, r);
  if (quick != kUnsure) return quick;
  core::ExactSum sum;
  add_product(sum, p.x, q.y);
  add_product(sum, -p.y, q.x);
  add_product(sum, q.x, r.y);
  add_product(sum, -q.y, r.x);
  add_product(sum, r.x, p.y);
  add_product(sum, -r.y, p.x);
  const double exact = sum.rounded();
  return exact > 0 ? 1 : exact < 0 ? -1 : 0;
}

}  // namespace vicinal::geo
