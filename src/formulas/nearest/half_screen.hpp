// The float16 screen of the tensor cores, and why it may drop a row (contract clause 3). Rows and queries are rounded
// to float16; five spare columns carry half the norm of the row and everything that the bound allows for, so that the
// product of the two is an upper bound of the score and a row is dropped by one comparison, `score < threshold`, which
// keeps NaN. Shared by the kernels and by the tests that emulate a tensor core; sums over a row are the caller's.
//
// Notation as in cpu/nearest/screen.hpp: X = s(x - c) and Y = s(y - c), exact, with s the power of two that brings the
// longest |y_c| into [2^13, 2^14); x~, y~ their roundings to float16; rho >= |Y - y~|; h = |y~|^2 / 2 of the ROUNDED
// row; U >= |X - Y| for every row that may be among the answers. A query may be longer than the rows: it is scaled by
// E = 2^e, e <= 0, besides, into |E X| < 2^14. Below, x~, X, rho_x and U are of that scaled query (x~ is the rounding
// of E X, U >= E |X - Y|, and so on), while Y, y~, h and rho_y are not: E times cpu/nearest/screen.hpp's forms:
//   T: x~.y~ - E h >= (|x~|^2 - (U + rho_x)^2) / 2E - (U + rho_x) rho_y - E rho_y^2 / 2
//   F: x~.y~ - E h >= (|X|^2 - U^2) / 2E - rho_x |y~| - U rho_y - E rho_y^2 / 2
//   P: x~.y~ >= s^2 E L - rho_x |y~| - |X| rho_y - (d + 4) 2^-52 |X||Y| - s^2 E d 2^-1073   (L = -key, c = 0)
//
// The sum of a tensor core. In one step the exponents of `width` products and of the accumulator are compared (a
// product's is the sum of its factors'; a subnormal factor counts as 2^-14, and so may a zero), all are cut to
// multiples of 2^(largest - alignment), summed, and the sum is cut to 24 bits. So a step loses at most (width + 1)
// 2^-alignment + 2^-23 of M, the larger of 2^largest and the sum's magnitude. Let p_i >= |x_i y_i| be the product with
// each factor below 2^-14, zeros included, put to 2^-14: M is at most the sum of all p_i so far, plus the error so far.
// With w_i the number of 16-wide steps from column i's to the last one (a narrower core takes 16 / width steps for
// each, in any order), the whole error is at most beta sum_i w_i p_i,
//   beta = (16 / width) ((width + 1) 2^-alignment + 2^-23) (1 + 2^-9),
// the last factor for errors of errors: (1 + 6 2^-23)^2048 < 1 + 2^-9, up to 8192 columns of four a step. Over the
// columns of the data sum w_i p_i <= kappa_x kappa_y, kappa^2 = sum w_i max(|y~_i|, 2^-14)^2, by Cauchy-Schwarz. The
// five spare columns are the last of all, so that they have w = 1. The steps must be taken in the order of the columns.
//
// The spare columns of a row and of a query, and what their products are for:
//   n1, n2   -2^13 E, -2^2 E      -E G, G = 2^13 n1 + 2^2 n2 <= g = h (1 - beta (1 + 2^-8)) - (1 + 2^-8) rho_y^2 / 2
//   b1       kappa_x 2^-3         b1 >= 2^3 beta kappa_y (1 + 2^-9)
//   b2       T: (U + rho_x) (1 + 2^-9), F: U (1 + 2^-9), P: |X| (1 + 2^-9)                     b2 >= rho_y
//   b3       T: 0, F: rho_x (1 + 2^-9), P: (rho_x + (d + 4) 2^-51 |X|) (1 + 2^-9)              b3 >= |y~|
// b's and their factors are rounded up and are at least 2^-14, so that no subnormal one takes part with an exponent
// above its value; n1 and n2 are 0 (or, below zero, -2^-14) where they would be subnormal; -2^2 E is normal for
// e >= -16. Queries farther out, 2^16 times as long as the longest row, are not screened: every row survives. For P,
// g = 0; |Y| <= |y~| + rho_y, the second part being within the factor of b2.
//   Their own error. p of b2 and its factor is their product, and b2 q2 (1 - beta) >= (U + rho_x) rho_y, as
// (1 + 2^-9)(1 - beta) > 1; so for b3, and b1 q1 (1 - beta) >= beta kappa_x kappa_y. Of the norm, with r the rest that
// n2 rounds down: 2^13 |n1| + 2^2 |n2| <= |g| (1 + 2^-9) + 2^-12. Where g >= 0 what beta takes of that is in g, because
// (1 - beta (1 + 2^-8)) (1 + beta (1 + 2^-9)) < 1; where g < 0, |g| <= (1 + 2^-8) rho_y^2 / 2 and the same holds. What
// is left, for zeros that take part as 2^-14 (n1, n2, b3 against T's 0, 15 columns of padding, w <= 2) and the 2^-12,
// is below 2 in all, times beta: `half_threshold` lowers t by 4 beta. So for every answer score >= t, and it survives.
// Ties too: U is made from the largest key an answer may have.
//
// Overflow. Columns are finite after rounding (what is longer than 2^14, which only a wrong scale leaves, becomes a row
// that always survives: n1 = -infinity); b's that overflow are +infinity, against factors that are positive or, for T's
// 0, make a NaN: such rows survive. Thresholds that are not finite become -infinity.
// float64 arithmetic here adds relative errors below (d + 8) 2^-52 <= 2^-38, far inside the factors above.
//
// Rows far out. Where few rows are much longer than all others, s may be made for the others (T and F). A row with |Y|
// of 2^14 and more is then packed as Y' = 2^-j Y, of a length from 2^13 to 2^14 but for the rounding of lengths. Y' is
// the point of the ball of radius |Y'| that is nearest to Y, and such a projection moves no two points apart: for a
// query in that ball |X - Y'| <= |X - Y| <= U, and all of the above holds with Y' for Y. So there only queries with
// |X| <= 2^13 (1 - 2^-6) are screened.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/distance.hpp"
#include "core/half.hpp"
#include "formulas/nearest/accumulation.hpp"

namespace vicinal::core {

inline constexpr std::int64_t kHalfStep = 16;  ///< columns that one step of the product takes
inline constexpr std::int64_t kSpareColumns = 5;
inline constexpr std::int64_t kLargestHalfColumns = 8192 - kSpareColumns;
inline constexpr int kMinHalfExponent = -16;  ///< of a query; one with less is not screened

VICINAL_HD constexpr double half_beta(Accumulation sums) noexcept {
  const double cut = static_cast<double>(sums.width + 1) / static_cast<double>(std::int64_t{1} << sums.alignment);
  return static_cast<double>(kHalfStep) / sums.width * (cut + 0x1p-23) * (1 + 0x1p-9);
}

/// Columns of a packed row: d, padding with zeros, five spare ones.
VICINAL_HD constexpr std::int64_t half_columns(std::int64_t d) noexcept {
  return (d + kSpareColumns + kHalfStep - 1) / kHalfStep * kHalfStep;
}
/// w of a column: steps from its own to the last one.
VICINAL_HD constexpr double half_weight(std::int64_t column, std::int64_t columns) noexcept {
  const std::int64_t steps = columns / kHalfStep - column / kHalfStep;
  return static_cast<double>(steps);
}

enum class HalfForm : std::uint8_t { triangle, far, product };  ///< T, F, P

/// Sums over the columns of one row or query, after centring, scaling and rounding. Any order of addition will do.
struct HalfSums {
  double exact_sq = 0;     // |y_c|^2
  double rounded_sq = 0;   // |y~|^2
  double error_sq = 0;     // |y_c - y~|^2
  double weighted_sq = 0;  // sum w max(|y~|, 2^-14)^2
};

/// Rounds one column, already centered and scaled, and adds it to the sums. Returns the float16.
VICINAL_HD inline std::uint16_t add_half(double value, double weight, HalfSums& sums) noexcept {
  std::uint16_t bits = half_bits(value, HalfRounding::nearest_even);
  if ((bits & 0x7fffU) == 0x7c00U) --bits;  // the largest finite one
  const double rounded = half_value(bits);
  const double magnitude = std::fabs(rounded) < kHalfNormal ? kHalfNormal : std::fabs(rounded);
  sums.exact_sq += value * value;
  sums.rounded_sq += rounded * rounded;
  sums.error_sq += (value - rounded) * (value - rounded);
  sums.weighted_sq += weight * (magnitude * magnitude);
  return bits;
}

/// What the bound needs to know of a table row, or of a scaled query.
struct HalfRow {
  double exact_sq;
  double rounded_sq;
  double rho;    // >= |Y - y~|
  double kappa;  // >= sqrt(sum w y~^2)
  double norm;   // >= |y~|
};

/// Not below the root, and above it by 2^-22 of it at most. A device is quicker in float32, where what is beyond it
/// becomes infinity, which only lets rows survive.
VICINAL_HD inline double root_above(double square) noexcept {
#if defined(__CUDA_ARCH__)
  return static_cast<double>(__fsqrt_ru(__double2float_ru(square))) * (1 + 0x1p-30);
#else
  return std::sqrt(square) * (1 + 0x1p-30);
#endif
}

VICINAL_HD inline HalfRow half_row(const HalfSums& sums) noexcept {
  return {sums.exact_sq, sums.rounded_sq, root_above(sums.error_sq) + 0x1p-51 * root_above(sums.exact_sq) + 0x1p-200,
          root_above(sums.weighted_sq), root_above(sums.rounded_sq)};
}

/// Exponent of s, the scale of a table whose longest centered row has that length.
VICINAL_HD inline int half_table_exponent(double longest) noexcept {
  if (!(longest > 0 && longest < 0x1p1023)) return longest > 0 ? -1010 : 0;
  const int exponent = 13 - std::ilogb(longest);
  return exponent < 1000 ? exponent : 1000;
}
/// e of a query whose centered row, times s, has that length; below kMinHalfExponent: it is not screened.
VICINAL_HD inline int half_query_exponent(double length) noexcept {
  if (!(length < 0x1p1023)) return kMinHalfExponent - 1;
  const int exponent = length > 0 ? 13 - std::ilogb(length) : 0;
  return exponent < 0 ? (exponent < kMinHalfExponent ? kMinHalfExponent - 1 : exponent) : 0;
}

/// Exponent of 2^-j, by which a row far out is shortened; of its length times s. 0 where nothing will do.
VICINAL_HD inline int half_shortening(double length) noexcept {
  return length >= 0x1p14 && length < HUGE_VAL ? 13 - std::ilogb(length) : 0;
}
/// Whether a query of that length, times s, is screened where rows were shortened.
VICINAL_HD inline bool half_inside(double length) noexcept {
  return length <= 0x1p13 * (1 - 0x1p-6);
}

namespace half_screen {

// Rows and queries are at most 2^14 long before rounding.
inline constexpr double kLongest = 0x1p14 * (1 + 0x1p-8);

/// A factor of the bound: not below `value`, not subnormal.
VICINAL_HD inline std::uint16_t factor(double value) noexcept {
  return value < kHalfNormal ? std::uint16_t{0x0400} : half_bits(value, HalfRounding::up);
}

/// n1 and n2.
VICINAL_HD inline void split_norm(double g, std::uint16_t* n) noexcept {
  const double first = g * 0x1p-13;
  n[0] = std::fabs(first) < kHalfNormal ? std::uint16_t{0} : half_bits(first, HalfRounding::nearest_even);
  const double rest = (g - half_value(n[0]) * 0x1p13) * 0x1p-2;  // exact: n1 is the nearest
  n[1] = half_bits(rest, HalfRounding::down);
  if (std::fabs(rest) < kHalfNormal) n[1] = rest < 0 ? std::uint16_t{0x8400} : std::uint16_t{0};
}

}  // namespace half_screen

/// The spare columns of a row that survives whatever the query.
VICINAL_HD inline void always_columns(std::uint16_t* spare) noexcept {
  for (std::int64_t i = 0; i < kSpareColumns; ++i) spare[i] = 0;
  spare[0] = 0xfc00;
}

/// The spare columns of a table row. `product`: for form P, else for T and F.
VICINAL_HD inline void table_columns(const HalfRow& row, bool product, double beta, std::uint16_t* spare) noexcept {
  if (!(row.norm <= half_screen::kLongest && row.rho <= half_screen::kLongest)) {
    always_columns(spare);
    return;
  }
  const double h = row.rounded_sq / 2;
  const double g = h * (1 - beta * (1 + 0x1p-8)) - (1 + 0x1p-8) * row.rho * row.rho / 2;
  half_screen::split_norm(product ? 0 : g, spare);
  spare[2] = half_screen::factor(8 * beta * row.kappa * (1 + 0x1p-9));
  spare[3] = half_screen::factor(row.rho);
  spare[4] = half_screen::factor(row.norm);
}

/// U for answers whose key (a sum of squares: of a cosine key twice the key) is at most `key`, in units of a query that
/// was scaled by `scale` = s E. The key's own rounding: at most d / 8 + 4 relative ones of 2^-53 a column, and products
/// that vanish below 2^-1074.
VICINAL_HD inline double half_reach(double key, std::int64_t d, double scale) noexcept {
  const auto columns = static_cast<double>(d);
  return scale * std::sqrt(key * (1 + (columns + 8) * 0x1p-51) + columns * 0x1p-1072) * (1 + 0x1p-50);
}

/// T or F, whichever loses less; `typical` is a typical |y~| of the table, times E.
VICINAL_HD inline HalfForm half_form(double reach, double typical) noexcept {
  return reach > typical ? HalfForm::far : HalfForm::triangle;
}

/// Whether the screen serves a query that was scaled by E = 2^exponent.
VICINAL_HD inline bool half_usable(const HalfRow& query, int exponent) noexcept {
  return exponent >= kMinHalfExponent && query.norm <= half_screen::kLongest;
}

/// The one of a query's spare columns that depends on the reach, for T and F.
VICINAL_HD inline std::uint16_t reach_column(const HalfRow& query, HalfForm form, double reach) noexcept {
  return half_screen::factor((form == HalfForm::triangle ? reach + query.rho : reach) * (1 + 0x1p-9));
}

/// The spare columns of a usable query. `reach`: of a key that no later threshold exceeds; not used by P.
VICINAL_HD inline void query_columns(const HalfRow& query, int exponent, HalfForm form, double reach, std::int64_t d,
                                     std::uint16_t* spare) noexcept {
  const double unit = power_of_two(exponent);
  spare[0] = half_bits(-0x1p13 * unit, HalfRounding::nearest_even);
  spare[1] = half_bits(-0x1p2 * unit, HalfRounding::nearest_even);
  spare[2] = half_screen::factor(query.kappa * 0x1p-3);
  double second = reach;
  double third = query.rho;
  if (form == HalfForm::triangle) {
    second = reach + query.rho;
    third = 0;
  } else if (form == HalfForm::product) {
    second = std::sqrt(query.exact_sq) * (1 + 0x1p-30);
    third = query.rho + static_cast<double>(d + 4) * 0x1p-51 * second;
  }
  spare[3] = half_screen::factor(second * (1 + 0x1p-9));
  spare[4] = form == HalfForm::triangle ? std::uint16_t{0} : half_screen::factor(third * (1 + 0x1p-9));
}

/// A row may be dropped when its score is below this. `key`: no answer has a larger one; at most the key that the
/// query's spare columns were made with. `table_exponent`: of s. -infinity for a query that is not usable, or where
/// nothing is known (key = infinity).
VICINAL_HD inline float half_threshold(const HalfRow& query, int exponent, HalfForm form, double key, std::int64_t d,
                                       int table_exponent, double beta) noexcept {
  constexpr float kOpen = -HUGE_VALF;
  if (!half_usable(query, exponent) || !(key <= 0x1.fffffffffffffp1023)) return kOpen;
  const double margin = static_cast<double>(d + 8) * 0x1p-51;
  const double unit = power_of_two(exponent);
  double t = 0;
  if (form == HalfForm::product) {
    const double s = power_of_two(table_exponent);
    t = -key * s * s * unit - static_cast<double>(d) * 0x1p-1073 * s * s * unit;
  } else {
    const double reach = half_reach(key, d, power_of_two(table_exponent + exponent));
    const bool triangle = form == HalfForm::triangle;
    const double away = triangle ? reach + query.rho : reach;
    const double length_sq = triangle ? query.rounded_sq : query.exact_sq;
    t = (length_sq * (1 - margin) - away * away * (1 + margin)) / 2 / unit;
  }
  t -= std::fabs(t) * 0x1p-50 + 4 * beta;
  const float below = float_down(t);
  return below < -kOpen ? below : kOpen;
}

/// Rounds a row or a query into half_columns(d) float16, the spare ones left at zero. scale: s, of a query s E.
VICINAL_HD inline HalfSums pack_half(const double* row, const double* centre, double scale, std::int64_t d,
                                     std::uint16_t* out) noexcept {
  const std::int64_t columns = half_columns(d);
  HalfSums sums;
  for (std::int64_t j = 0; j < d; ++j) {
    out[j] = add_half((row[j] - centre[j]) * scale, half_weight(j, columns), sums);
  }
  for (std::int64_t j = d; j < columns; ++j) out[j] = 0;
  return sums;
}

}  // namespace vicinal::core
