// The screens, and why each may drop a row (contract clause 3).
//
// Notation. c: any fixed vector, s: any scale. X = s(x - c) and Y = s(y - c), exact reals, for a query x and a row y;
// x_c and y_c their float64 values; x~ and y~ their roundings to the screen's type. u = 2^-24.
//   rho  >= |Y - y~|: the measured |y_c - y~| plus 2^-51 |y_c| for the rounding of (y - c) s.
//   h     = |y~|^2 / 2, of the ROUNDED row. (With the exact norm the two sides below would not belong together.)
//   U    >= s |x - y| for every row y that may be among the answers: from the float64 key that bounds them (`reach`).
//
// Form T. An answer has |x~ - y~| <= |X - Y| + |X - x~| + |Y - y~| <= U + rho_x + rho_y. Squared and halved:
//   x~.y~ - h  >=  (|x~|^2 - (U + rho_x)^2) / 2  -  (U + rho_x) rho_y  -  rho_y^2 / 2.
// Form F. With e = X - x~, f = Y - y~:  X.Y - |Y|^2/2 = (x~.y~ - h) + e.y~ + (X - Y).f + |f|^2/2, and an answer has
//   X.Y - |Y|^2/2 >= (|X|^2 - U^2)/2, so
//   x~.y~ - h  >=  (|X|^2 - U^2) / 2  -  rho_x |y~|  -  U rho_y  -  rho_y^2 / 2.
// Both hold always; F loses less when the query is farther away than the rows are long (U > |y~|), T otherwise.
// Form P (inner product; c = 0). x.y >= L, L from the key: x~.y~ >= s^2 L - rho_x |y~| - |X| rho_y
// - (d + 4) 2^-52 |X||Y| - s^2 d 2^-1073, the last two for the rounding of the key.
// So a row may be dropped exactly when an upper bound of the left-hand side, plus everything subtracted on the right,
// is below the threshold t (T: (|x~|^2 - (U + rho_x)^2)/2, F: (|X|^2 - U^2)/2, P: s^2 L - ...).
//
// float32 and bfloat16: floating-point sums. kappa = sqrt(sum_l w_l y~_l^2), w_l = d + 5 - l (l = 1..d): the roundings
// that the l-th product passes through. The kernel starts at `start` and adds d products, then a rho_y, then b kappa_y;
// each step rounds at most twice (product and sum). To first order its error is at most v times the sum of all
// intermediate magnitudes (v = u for float32; 2u for bfloat16, whose products are exact and whose pairwise sums no
// maker fully documents):
//   v [ (d + 2) |start| + sum_l w_l |x~_l y~_l| + 3 a rho_y + 2 b kappa_y ],  and by Cauchy-Schwarz
//   sum_l w_l |x~_l y~_l| <= kappa_x kappa_y. Higher orders are covered by v(1 + 4q), q = (d + 4) 2^-23 <= 1 (larger d:
//   not screened), and results below the normal range by (2d + 8) 2^-149, or (2d + 8) 2^-126 where the processor
//   flushes them (bfloat16, whose subnormal elements are rounded to zero beforehand, in rho).
// So with beta = v(1 + 4q) the kernel's sum is an upper bound as wanted when
//   start = -h + rho_y^2/2 + beta (d + 3) (h + rho_y^2) + (2d + 8) 2^-149 or -126       (rounded up)
//   a     = (T: U + rho_x; F: U; P: |X|)  (1 + 2^-20)                                   (rounded up)
//   b     = (beta kappa_x + (F, P: rho_x / 2) + (P: (d + 4) 2^-52 |X|)) (1 + 2^-20)     (rounded up; |y~| <= kappa_y/2
//   as w_l >= 4)
// float64 arithmetic on these quantities adds relative errors below (d + 8) 2^-52, far inside the factors above.
//
// int8: integers in [-128, 127], clamped (rho measures that too). x~.y~ and 2h are exact in 32 bits: the query is
// stored as x~ + 128, the surplus 128 sum_l y~_l is part of `base`; partial sums may wrap, the final one, below 2^30
// for d <= 2^15, cannot. One addition serves a whole tile of queries: A = max a, B = max b, and with |y~| for kappa
//   base = -128 sum_l y~_l - floor(h) + ceil(rho_y^2 / 2)   (P: without the last two, plus the last)
//   sum  = x~.y~ + base + [A rho_y + B |y~|, rounded up, at most 2^30]
//   drop when sum < least = floor(t + (A - a) min rho + (B - b) min |y~|), at most 2^28, minima over the block's rows:
// an answer has x~.y~ - h + rho_y^2/2 + a rho_y + b |y~| >= t, and the rest of `sum` is at least the rest of `least`.
// At the cap of 2^30 a row survives every threshold, because x~.y~ - h >= -24576 d.
//
// Of images in few columns (projection.hpp) X and Y are the computed images, and U grows by how much their distance may
// exceed that of the rows, t of form P falls by how much their product may be below. A row longer than the projection
// allows always survives.
//
// Finer images. A screen of images may have a finer one: the rows that it leaves are judged once more, one by one, by
// images in more columns. There the sum s = x~.y~ + base is exact in 32 bits (|x~.y~ - h| < 2^30), and a row may be
// dropped when s + a rho_y + b |y~| < t. Two float64 products and three sums round by at most 2^-53 of the magnitudes
// each, for which `is_dropped_alone` asks for 2^-40 of them. Whatever a finer image drops, the proof above holds for
// it alone, so both may use different centers, scales and forms.
//
// Keys by sums (`key_range`). int8 sums of all columns bound the distance from both sides. Let r = x~.y~ + base. Of
// distances, x~.y~ - h + rho_y^2/2 <= r <= x~.y~ - h + 2 + (1/2 + 2^-20) rho_y^2, by the two roundings in base. A score
// is a float32 of r plus what was added: at least g = a rho_y + b |y~|, and at most g (1 + 2^-18) + 1. Therefore
//   |x~ - y~|^2 = |x~|^2 - 2 (x~.y~ - h)  is from  |x~|^2 - 2 (score - g)  to  |x~|^2 - 2 (score - g (1 + 2^-18) - 3
//   - 0.51 rho_y^2),  but for 2^-24 |score|,
// and s |x - y| is within rho_x + rho_y of |x~ - y~|. The key is within (d + 8) 2^-51 of the square, but for d 2^-1072.
// The float64 arithmetic of the bounds is within 2^-40 of the magnitudes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/infinity.hpp"
#include "cpu/nearest/projection.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::cpu {

/// Sums over one row after centring, scaling and rounding to the screen's type.
struct RoundedRow {
  double exact_sq;     // |y_c|^2
  double rounded_sq;   // |y~|^2
  double error_sq;     // |y_c - y~|^2
  double weighted_sq;  // sum w_l y~_l^2
  double sum;          // sum y~_l
  bool finite;         // every y~ and every sum is finite
  double length = 0;   // of an image: what Projection::map returned
};

enum class ScreenKind : std::uint8_t { distance, product };

/// What the screen keeps of a table row. `base` instead of `start` for int8, where kappa is |y~|.
struct RowTerms {
  float start;
  std::int32_t base;
  float rho;
  float kappa;
};

/// What it keeps of a query.
struct QueryTerms {
  double exact_sq;
  double rounded_sq;
  double rho;
  double kappa;
  bool usable;       // false: too large for the screen; every row survives
  double slack = 0;  // what the errors of images add to U, or take from t of form P, in the unit of the scale
};

/// Bounds of the key of a query and a row.
struct KeyRange {
  double least = 0;
  double most = kInfinity;
};

/// The kernel's per-query operands (float32 values for the floating-point screens).
struct Threshold {
  double a;
  double b;
  double t;

  /// Nothing is known yet, every row survives.
  [[nodiscard]] bool open() const noexcept;
};

/// One screen: its type, its center and its scale.
class Screen {
 public:
  /// center: empty for zeros. scale: a power of two for the floating-point types.
  Screen(ScreenType type, ScreenKind kind, std::int64_t d, double scale, std::vector<double> centre);
  /// A screen of images: `centre` is theirs. It packs rows of projection->cols() columns.
  Screen(ScreenType type, ScreenKind kind, double scale, std::vector<double> centre,
         std::shared_ptr<const Projection> projection);

  /// Largest d that the bound of a type covers.
  static std::int64_t largest_columns(ScreenType type);
  /// Columns that share 32 bits of a packed row.
  static std::int64_t columns_a_word(ScreenType type);
  /// Bytes of a packed row.
  static std::int64_t row_bytes(ScreenType type, std::int64_t d);

  [[nodiscard]] ScreenType type() const noexcept { return type_; }
  [[nodiscard]] double scale() const noexcept { return scale_; }
  [[nodiscard]] const std::vector<double>& centre() const noexcept { return centre_; }
  /// Columns that it compares, and bytes of a row packed for it.
  [[nodiscard]] std::int64_t columns() const noexcept { return d_; }
  [[nodiscard]] std::int64_t row_bytes() const { return row_bytes(type_, d_); }
  /// Of images: the screen of int8 images in more columns for the rows that this one leaves; null where there is none.
  [[nodiscard]] const Screen* finer() const noexcept { return finer_.get(); }
  void refine_by(std::shared_ptr<const Screen> finer) noexcept { finer_ = std::move(finer); }

  enum class Side : std::uint8_t { row, query };
  /// Rounds a row and writes it to lane `lane` of a panel of `width` rows, [words a row][width] of 32 bits.
  RoundedRow pack(const double* row, Side side, std::byte* panel, std::int64_t lane, std::int64_t width) const;
  /// Clears a lane that no row fills.
  void pack_nothing(std::byte* panel, std::int64_t lane, std::int64_t width) const;

  [[nodiscard]] RowTerms row_terms(const RoundedRow& row) const;
  /// Terms that let the row survive whatever the query.
  [[nodiscard]] static RowTerms always(const RoundedRow& row);
  [[nodiscard]] QueryTerms query_terms(const RoundedRow& row) const;
  /// key: no answer has a larger one (for `distance` the sum of squares, for `product` minus the inner product);
  /// infinity: nothing is known. typical_norm: a typical |y~|, chooses between T and F.
  [[nodiscard]] Threshold threshold(const QueryTerms& query, double key, double typical_norm) const;
  /// Whether `key_range` serves: the screen compares all columns by exact sums.
  [[nodiscard]] bool tells_keys() const noexcept {
    return type_ == ScreenType::int8 && kind_ == ScreenKind::distance && !projection_;
  }
  /// Of a row with that rho: `score` is its sum, which became a float32, with a rho + b |y~| added, rounded up.
  [[nodiscard]] KeyRange key_range(const QueryTerms& query, float score, float rho, double added) const;

 private:
  RoundedRow pack_columns(const double* row, Side side, std::byte* panel, std::int64_t lane, std::int64_t width) const;

  ScreenType type_;
  ScreenKind kind_;
  std::int64_t d_;
  double scale_;
  std::vector<double> centre_;
  std::shared_ptr<const Projection> projection_;  // null: rows as they are
  std::shared_ptr<const Screen> finer_;
  double beta_;
  double tiny_;
};

/// The smallest float not below x, and the largest not above it.
float round_up(double x);
float round_down(double x);

/// A survivor's score as its tile's kernel left it, and what other operands a and b than the tile's would add.
struct ScoreTerms {
  float score;
  double of_rho;    // (a - the tile's a) rho_y
  double of_kappa;  // (b - the tile's b) kappa_y
};

/// Whether a survivor may be dropped by a threshold t, ties kept. `integer`: the score is a sum of the int8 screen,
/// which became a float32 (2^-24 of it off), and which is no bound where it may have been capped. Three float64
/// additions of the terms are within the margin.
inline bool is_dropped(bool integer, const ScoreTerms& terms, double t) noexcept {
  const auto score = static_cast<double>(terms.score);
  if (integer && !(score < 0x1p28)) return false;
  const double margin = integer ? 0x1p-22 : 0x1p-40;
  const double magnitude = std::fabs(score) + std::fabs(terms.of_rho) + std::fabs(terms.of_kappa);
  return score + terms.of_rho + terms.of_kappa + magnitude * margin < t;
}

/// Whether a row may be dropped whose int8 sum, products and base, is `sum`.
inline bool is_dropped_alone(std::int32_t sum, float rho, float kappa, const Threshold& limit) noexcept {
  if (rho == 0) return false;  // it survives whatever the query (Screen::always)
  const double of_rho = limit.a * static_cast<double>(rho);
  const double of_kappa = limit.b * static_cast<double>(kappa);
  const double magnitude = std::fabs(static_cast<double>(sum)) + of_rho + of_kappa;
  return static_cast<double>(sum) + of_rho + of_kappa + magnitude * 0x1p-40 < limit.t;
}

/// Not above the float32 of any sum of the int8 screen that reaches `least`.
inline double least_score(std::int32_t least) noexcept {
  return least - 0x1p-22 * std::fabs(static_cast<double>(least));
}

/// `least` of the int8 screen.
std::int32_t integer_threshold(const Threshold& query, double a, double b, double least_rho, double least_kappa);

}  // namespace vicinal::cpu
