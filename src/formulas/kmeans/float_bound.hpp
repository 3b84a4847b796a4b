// The bound of the float32 screen of k-means, and why the label it gives is float64's (contract clauses 3 and 12): one
// program for host and device, which say what their numbers are (`Arithmetic`).
//
// Notation. X = s x - m and C_k = s c_k - m, exact reals, for a row x and a center c_k; s a power of two, m any fixed
// float32 vector. x~ and c~_k: their roundings to float32. u = 2^-24. n = |x~|^2, h_k = |c~_k|^2 / 2, S_k = x~.c~_k -
// h_k, so that |x~ - c~_k|^2 = n - 2 S_k. rho_x = u (1 + 2^-10) |x~| + tau, rho_k the same of c~_k: |X - x~| <= rho_x
// and |C_k - c~_k| <= rho_k, because each element is rounded once in float32 (before that in float64 at most twice) and
// tau = 2^-120 covers subnormal results (d <= 2^18 columns, each off by 2^-149).
//
// The kernel starts at `start_k`, adds d products and then g e_k, with e_k >= |c~_k|; 2 (d + 1) roundings at most. Its
// result P_k differs from the real start_k + x~.c~_k + g e_k by no more than
//   A_k = (5/4) u (d + 2) (h_k + |x~||c~_k| + g e_k) + 2^-120,
// since (d + 16) 2^-23 <= 1/32. With B = (5/4) u (d + 4), N the least length of a center, R = (17/16) (|x~| + N),
//   g       = (B |x~| + 2 u (1 + 2^-10) (|x~| + N)) (1 + 2 B)      (rounded up)
//   f_k     = B h_k + 2^-100,  start_k = -h_k + f_k                  (rounded up)
// P_k >= S_k + R rho_k + rho_k^2 / 2 for every k, and S_k >= P_k - 2 (g e_k + f_k). (R tau < 2^-100 / 4, as lengths are
// below 2^40.)
//
// Let b have the largest P. S = P_b - 2 (g e_b + f_b) <= S_b, delta = sqrt(n - 2 S) >= |x~ - c~_b|, and U = delta +
// rho_x
// + rho_b >= s |x - c_b|. A center whose key is not above that of c_b has s |x - c_k| <= U (1 + m'), m' = (d + 8) 2^-51
// for the roundings of two keys. Then |x~ - c~_k| <= U (1 + m') + rho_x + rho_k, and where U (1 + m') + rho_x <= R
// (tested),
//   P_k >= S_k + R rho_k + rho_k^2 / 2 >= (n - (U (1 + m') + rho_x)^2) / 2 = S - w (delta + w / 2) =: t,
//   w = U (1 + m') + rho_x - delta = 2 rho_x + rho_b + m' U.
// So a k with P_k < t may be left out, and where the second largest P is below t, b is the label: no other center has a
// key as small, whatever its id. Centers that are equal bit for bit are one center here, that of the smallest id.
//
// The same P give the bounds of Hamerly's method: s |x - c_b| <= U, and for all others s |x - c_k| >= sqrt(n - 2 P_2)
// - rho_x - max rho, P_2 the second largest P. When centers move, the first grows by the center's own shift, the
// second shrinks by the largest shift of another one; while U (1 + 2^-20) is below it, the label cannot change.
// Arithmetic on these quantities is float32; factors 1 +- 2^-20 and allowances of 2^-21 of what is subtracted cover its
// roundings, some five a line.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/order.hpp"

namespace vicinal::core {

// ---- of a table: its frame

inline constexpr double kLloydUnit = 0x1p-24 * (1 + 0x1p-10);
inline constexpr double kLloydTiny = 0x1p-120;
/// Centers whose |c~|^2 is above leave every row to keys.
inline constexpr double kMaxLloydSquares = 0x1p80;

/// Whether the screen serves tables of d columns whose largest |value - center| is `largest`: within this range keys
/// neither overflow nor lose their relative accuracy where bounds of 2^-149 still count.
inline bool lloyd_serves(std::int64_t d, double largest) noexcept {
  return d <= std::int64_t{1} << 17 && largest >= 0x1p-300 && largest <= 0x1p500;
}
/// s, so that |X| <= 1 in each column.
inline double lloyd_scale(double largest) noexcept {
  return std::ldexp(1.0, -std::ilogb(largest) - 2);
}
/// B, and m of keys.
constexpr double lloyd_beta(std::int64_t d) noexcept {
  return 1.25 * 0x1p-24 * static_cast<double>(d + 4) * (1 + 0x1p-20);
}
constexpr double lloyd_key_margin(std::int64_t d) noexcept {
  return static_cast<double>(d + 8) * 0x1p-51;
}

// ---- of a center

/// To be rounded up to float32.
struct LloydCentre {
  double start;
  double length;     ///< e
  double allowance;  ///< 2 f, less what start has of it: start's own rounding is in it
};
/// squares: |c~|^2.
VICINAL_HD inline LloydCentre lloyd_centre(double squares, double beta) noexcept {
  const double allowance = beta * squares * 0.5 + 0x1p-100;
  return {(allowance - squares * 0.5) + squares * 0x1p-32, std::sqrt(squares) * (1 + 0x1p-30),
          allowance + squares * 0x1p-23};
}

// ---- of a row

/// The numbers that the bound is made of, each on its safe side.
struct LloydBound {
  float beta = 0;        ///< B
  float unit = 0;        ///< u (1 + 2^-10)
  float tiny = 0;        ///< tau
  float key_margin = 0;  ///< m
  float least_norm = 0;  ///< N: of the center nearest to the origin
  float most_rho = 0;    ///< of all centers
};

/// What is known of a row after all centers: P_b and the allowances of b.
template <class V>
struct LloydRow {
  V norm;  ///< |x~|^2 as it was added up
  V g;
  V best;
  V e;
  V f;
};
template <class V>
struct LloydDecision {
  V threshold;  ///< t, or -infinity: every center's upper bound reaches it that may be nearest
  V upper;      ///< U
  V rho_point;
};

// These cover the roundings of a line; what is subtracted allows for `kLloydUlps` of itself.
inline constexpr float kLloydUp = 1 + 0x1p-20F;
inline constexpr float kLloydDown = 1 - 0x1p-20F;
inline constexpr float kLloydUlps = 0x1p-21F;

// Arithmetic: the type `Value` of float32 numbers with + - *, made from a float, and fma (rounded once or twice), sqrt,
// abs, max and at_most(a, b, value, otherwise).

/// |x~| at most.
template <class Arithmetic, class V = typename Arithmetic::Value>
[[gnu::always_inline]] VICINAL_HD inline V lloyd_length(const LloydBound& of, V norm_up) {
  return Arithmetic::sqrt(norm_up) * V(kLloydUp) + V(of.tiny);
}

/// g: what the length of a center is multiplied with.
template <class Arithmetic, class V = typename Arithmetic::Value>
[[gnu::always_inline]] VICINAL_HD inline V lloyd_factor(const LloydBound& of, V norm) {
  const V length = lloyd_length<Arithmetic>(of, norm * V(1 + 2 * of.beta));
  const V reach = length + V(of.least_norm);
  const V g = Arithmetic::fma(V(of.beta), length, V(2 * of.unit) * reach);
  return g * (V(1 + 2 * of.beta) * V(kLloydUp));
}

/// Every line is one of the proof's inequalities.
template <class Arithmetic, class V = typename Arithmetic::Value>
[[gnu::always_inline]] VICINAL_HD inline LloydDecision<V> lloyd_decision(const LloydBound& of, const LloydRow<V>& row) {
  const V up(kLloydUp);
  const V ulps(kLloydUlps);
  const V two(2.0F);
  const V norm_up = row.norm * V(1 + 2 * of.beta);
  const V length = lloyd_length<Arithmetic>(of, norm_up);
  const V allowed = V(2.01F) * Arithmetic::fma(row.g, row.e, row.f);
  const V score = (row.best - allowed) - ulps * Arithmetic::abs(row.best);  // S_b at least
  const V slack = ulps * Arithmetic::fma(two, Arithmetic::abs(score), norm_up);
  const V squared = Arithmetic::max(norm_up - two * score, V(0.0F)) + slack;
  const V delta = Arithmetic::sqrt(squared) * up;  // |x~ - c~_b| at most
  const V rho_point = Arithmetic::fma(V(of.unit), length, V(of.tiny));
  const V rho_best = Arithmetic::fma(V(of.unit), row.e, V(of.tiny));
  const V upper = (delta + (rho_point + rho_best)) * (up * up);  // U
  const V margin = V(of.key_margin) * upper;
  const V w = (Arithmetic::fma(two, rho_point, rho_best) + margin) * up;
  const V loss = w * Arithmetic::fma(V(0.5F), w, delta) * up;
  const V threshold = (score - loss) - ulps * (Arithmetic::abs(score) + loss);
  // R must have been large enough: it was taken before U was known.
  const V reach = V(1.0625F) * ((length + V(of.least_norm)) * V(kLloydDown));
  const V none(-__builtin_inff());
  return {Arithmetic::at_most(upper + rho_point, reach, threshold, none), upper, rho_point};
}

/// The lower bound of s |x - c_k| for all k but b: sqrt(n - 2 P_2) - rho_x - max rho at most, and 0 at least.
template <class Arithmetic, class V = typename Arithmetic::Value>
[[gnu::always_inline]] VICINAL_HD inline V lloyd_lower(const LloydBound& of, V norm, V rho_point, V second) {
  const V two(2.0F);
  const V norm_down = norm * V(1 - 2 * of.beta);
  const V second_slack = V(kLloydUlps) * Arithmetic::fma(two, Arithmetic::abs(second), norm);
  const V beyond = (norm_down - two * second) - second_slack;
  const V rho_most = rho_point + V(of.most_rho);
  const V lower = Arithmetic::sqrt(Arithmetic::max(beyond, V(0.0F))) * V(kLloydDown) - rho_most * V(kLloydUp);
  return Arithmetic::max(lower * V(kLloydDown), V(0.0F));
}

}  // namespace vicinal::core
