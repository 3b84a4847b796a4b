// The float32 screen and why it may drop a row (contract clause 3).
//
// Notation. c: any fixed vector (the median), s: a power of two. X = s(x - c) and Y = s(y - c), exact reals, for a
// query x and a row y; x_c and y_c their float64 values; x~ and y~ the float32 roundings of those. u = 2^-24.
//   rho  >= |Y - y~|: the measured |y_c - y~| plus 2^-52 |y_c| for the rounding of y - c (scaling is exact or covered
//          by the constant 2^-200).
//   h     = |y~|^2 / 2, of the ROUNDED row. (With the exact norm the two sides below would not belong together.)
//   kappa = sqrt(sum_l w_l y~_l^2), w_l = d + 4 - l (l = 1..d): the roundings that the l-th product passes through.
//   U    >= s |x - y| for every row y that may be among the answers: from the float64 key that bounds them (`reach`).
//
// Form T. An answer has |x~ - y~| <= |X - Y| + |X - x~| + |Y - y~| <= U + rho_x + rho_y. Squared and halved:
//   x~.y~ - h  >=  (|x~|^2 - (U + rho_x)^2) / 2  -  (U + rho_x) rho_y  -  rho_y^2 / 2.
// Form F. With e = X - x~, f = Y - y~:  X.Y - |Y|^2/2 = (x~.y~ - h) + e.y~ + (X - Y).f + |f|^2/2, and an answer has
//   X.Y - |Y|^2/2 >= (|X|^2 - U^2)/2, so
//   x~.y~ - h  >=  (|X|^2 - U^2) / 2  -  rho_x |y~|  -  U rho_y  -  rho_y^2 / 2.
// Both hold always; F loses less when the query is farther away than the rows are long (U > |y~|), T otherwise.
// Form P (inner product; c = 0). x.y >= L, L from the key: x~.y~ >= s^2 L - rho_x |y~| - |X| rho_y - (d + 4) 2^-52
// |X||Y|
// - s^2 d 2^-1073, the last two for the rounding of the key.
//
// Rounding of the sum. The kernel starts at `start` and adds d products, then a rho_y, then b kappa_y; each step rounds
// at most twice (product and sum). To first order its error is at most u times the sum of all intermediate magnitudes:
//   u [ (d + 2) |start| + sum_l w_l |x~_l y~_l| + 3 a rho_y + 2 b kappa_y ],  and by Cauchy-Schwarz
//   sum_l w_l |x~_l y~_l| <= kappa_x kappa_y. Higher orders are covered by u(1 + 2q), q = (d + 4) 2^-23 <= 1 (larger d:
//   not screened), and products below the normal range by (2d + 8) 2^-149.
// So with beta = u(1 + 2q) the kernel's sum is an upper bound of the left-hand side plus everything subtracted on the
// right when
//   start = -h + rho_y^2/2 + beta (d + 3) (h + rho_y^2) + (2d + 8) 2^-149       (rounded up)
//   a     = (T: U + rho_x; F: U; P: |X|)  (1 + 2^-20)                           (rounded up)
//   b     = (beta kappa_x + (F, P: rho_x / 2) + (P: (d + 4) 2^-52 |X|)) (1 + 2^-20)  (rounded up; |y~| <= kappa_y / 2
//   as w_l >= 4)
// and a row may be dropped exactly when that sum is below the threshold (T: (|x~|^2 - (U + rho_x)^2)/2, ... rounded
// down). float64 arithmetic on these quantities adds relative errors below (d + 8) 2^-52, far inside the factors above.
#pragma once

#include <cstdint>

namespace vicinal::cpu {

/// Sums over one row after centring, scaling and rounding to float32.
struct RoundedRow {
  double exact_sq;     // |y_c|^2
  double rounded_sq;   // |y~|^2
  double error_sq;     // |y_c - y~|^2
  double weighted_sq;  // sum w_l y~_l^2
  bool finite;         // every y~ is finite
};

/// Writes y~_j to out[j * stride]. centre may be null (all zeros).
RoundedRow round_row(const double* row, const double* centre, double scale, std::int64_t d, float* out,
                     std::int64_t stride);

enum class ScreenKind : std::uint8_t { distance, product };

/// What the screen keeps of a table row.
struct RowTerms {
  float start;
  float rho;
  float kappa;
};

/// What it keeps of a query.
struct QueryTerms {
  double exact_sq;
  double rounded_sq;
  double rho;
  double kappa;
  bool usable;  // false: too large for float32; every row survives
};

/// The kernel's per-query operands. `open`: nothing is known yet, every row survives.
struct Threshold {
  float a;
  float b;
  float t;
};

class Screen {
 public:
  Screen(ScreenKind kind, std::int64_t d, double scale);

  /// Largest d that the bound covers.
  static constexpr std::int64_t kMaxColumns = (std::int64_t{1} << 20);

  [[nodiscard]] double scale() const noexcept { return scale_; }
  [[nodiscard]] RowTerms row_terms(const RoundedRow& row) const;
  [[nodiscard]] QueryTerms query_terms(const RoundedRow& row) const;
  /// key: no answer has a larger one (for `distance` the sum of squares, for `product` minus the inner product);
  /// infinity: nothing is known. typical_norm: a typical |y~|, chooses between T and F.
  [[nodiscard]] Threshold threshold(const QueryTerms& query, double key, double typical_norm) const;

 private:
  ScreenKind kind_;
  std::int64_t d_;
  double scale_;
  double beta_;
};

}  // namespace vicinal::cpu
