// The float32 screen of products that a library sums (cuBLAS), in whatever order it likes, and why it may drop a row
// (contract clause 3). Notation and the forms T, F, P as in cpu/nearest/screen.hpp: X = s(x - c), Y = s(y - c), x~ and
// y~ their roundings to float32, rho >= |Y - y~|, h = |y~|^2 / 2, U >= |X - Y| for every answer; s brings every |y_c|
// below one.
//
// The product of matrices starts from C0 and gives C, the sum of C0 and d products, in float32. In any order of
// additions, with products rounded or not, each of those terms passes through at most d + 2 roundings, so that for
// d <= 2^20 the error is at most v (|C0| + |x~| |y~|), v = (d + 4) 2^-24 (1 + 2^-4); what is flushed or rounded below
// the normal range adds at most (2d + 8) 2^-126. (Tensor cores, TF32 or bfloat16 in place of float32 must be
// forbidden.) So for an answer C >= t with t as in cpu/nearest/screen.hpp and, in float64 and then rounded up,
//   C0 = z - h (1 - 2v) + (2d + 8) 2^-126,  z = (1 + 2v) (rho_y^2 / 2 + a rho_y + b |y~|)      (P: without h)
//   a  = T: U + rho_x; F: U; P: |X|        b = v |x~| + (F: rho_x) + (P: rho_x + (d + 4) 2^-51 |X|)
// because |C0| <= h + z and v <= 1/8: 2v (h + rho_y^2/2 + a rho_y + b |y~|) >= v |C0|. float64 adds relative errors
// below (d + 8) 2^-52; the factors (1 + 2^-20) on rho, |y~| and v cover them.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/distance.hpp"
#include "core/half.hpp"

namespace vicinal::core {

inline constexpr std::int64_t kLargestFloatColumns = std::int64_t{1} << 20;

/// Sums over one row or query after centring, scaling and rounding; any order of addition will do.
struct FloatSums {
  double exact_sq = 0;    // |y_c|^2
  double rounded_sq = 0;  // |y~|^2
  double error_sq = 0;    // |y_c - y~|^2
};

/// Rounds one column, already centered and scaled, and adds it to the sums.
VICINAL_HD inline float add_float(double value, FloatSums& sums) noexcept {
  const auto rounded = static_cast<float>(value);
  const auto wide = static_cast<double>(rounded);
  sums.exact_sq += value * value;
  sums.rounded_sq += wide * wide;
  sums.error_sq += (value - wide) * (value - wide);
  return rounded;
}

/// What the bound needs to know of a row or query.
struct FloatRow {
  double exact_sq;
  double rounded_sq;
  double rho;
  double norm;
};

VICINAL_HD inline FloatRow float_row(const FloatSums& sums) noexcept {
  return {sums.exact_sq, sums.rounded_sq,
          std::sqrt(sums.error_sq) * (1 + 0x1p-20) + 0x1p-51 * std::sqrt(sums.exact_sq) + 0x1p-200,
          std::sqrt(sums.rounded_sq) * (1 + 0x1p-20)};
}

/// Whether the scale fits a table row, of which |y_c| < 1 in every column is expected.
VICINAL_HD inline bool float_fits(const FloatRow& row, std::int64_t d) noexcept {
  return row.rounded_sq <= 2 * static_cast<double>(d) && row.rho <= 2 * static_cast<double>(d);
}
/// Whether a query is short enough: rows are no longer than sqrt(2d), so that every sum stays finite.
VICINAL_HD inline bool float_usable(const FloatRow& query) noexcept {
  return query.rounded_sq < 0x1p160 && query.exact_sq < 0x1p160;
}

/// Which of the forms.
enum class FloatForm : std::uint8_t { triangle, far, product };

/// What the start of a query's sums and its threshold are made of. t = -infinity: nothing is known, every row survives.
struct FloatQuery {
  FloatForm form;
  double a;
  double b;
  float t;
};

VICINAL_HD inline double float_unit(std::int64_t d) noexcept {
  return static_cast<double>(d + 4) * 0x1p-24 * (1 + 0x1p-4) * (1 + 0x1p-20);
}

/// key: no answer has a larger one (a sum of squares: of a cosine key twice the key; for `product` minus the inner
/// product). typical: a typical |y~|, chooses between T and F. exponent: of s.
VICINAL_HD inline FloatQuery float_query(const FloatRow& query, bool product, double key, double typical,
                                         std::int64_t d, int exponent) noexcept {
  const FloatQuery open = {product ? FloatForm::product : FloatForm::triangle, 0, 0, -HUGE_VALF};
  if (!float_usable(query) || !(key <= 0x1.fffffffffffffp1023)) return open;
  const auto columns = static_cast<double>(d);
  const double margin = (columns + 8) * 0x1p-51;
  const double s = power_of_two(exponent);
  const double v = float_unit(d);
  FloatQuery made{open.form, 0, v * query.norm, 0};
  double t = 0;
  if (product) {
    made.a = std::sqrt(query.exact_sq) * (1 + 0x1p-20);
    made.b += query.rho + (columns + 4) * 0x1p-51 * made.a;
    t = -key * s * s - columns * 0x1p-1073 * s * s;
  } else {
    const double reach = s * std::sqrt(key * (1 + margin) + columns * 0x1p-1072) * (1 + 0x1p-50);
    made.form = reach > typical ? FloatForm::far : FloatForm::triangle;
    const bool far = made.form == FloatForm::far;
    made.a = far ? reach : reach + query.rho;
    if (far) made.b += query.rho;
    t = ((far ? query.exact_sq : query.rounded_sq) * (1 - margin) - made.a * made.a * (1 + margin)) / 2;
  }
  t -= std::fabs(t) * 0x1p-50;
  made.t = float_down(t);
  return made.t < HUGE_VALF && made.a < 0x1p100 && made.b < 0x1p100 ? made : open;
}

/// C0 of a query and a row: +infinity for a row that the scale does not fit, which survives.
VICINAL_HD inline float float_start(const FloatQuery& query, const FloatRow& row, std::int64_t d) noexcept {
  const auto columns = static_cast<double>(d);
  if (!float_fits(row, d)) return HUGE_VALF;
  const double v = float_unit(d);
  const double h = query.form == FloatForm::product ? 0 : row.rounded_sq / 2;
  const double square = query.form == FloatForm::product ? 0 : row.rho * row.rho / 2;
  const double z = (1 + 2 * v) * (square + query.a * row.rho + query.b * row.norm);
  return -float_down(-(z - h * (1 - 2 * v) + (2 * columns + 8) * 0x1p-126));
}

}  // namespace vicinal::core
