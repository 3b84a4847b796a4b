// The float32 screen of k-means, and why the label it gives is float64's (contract clauses 3 and 12).
//
// Notation. X = s x - m and C_k = s c_k - m, exact reals, for a row x and a centre c_k; s a power of two, m any fixed
// float32 vector. x~ and c~_k: their roundings to float32. u = 2^-24. n = |x~|^2, h_k = |c~_k|^2 / 2, S_k = x~.c~_k -
// h_k, so that |x~ - c~_k|^2 = n - 2 S_k. rho_x = u (1 + 2^-10) |x~| + tau, rho_k the same of c~_k: |X - x~| <= rho_x
// and |C_k - c~_k| <= rho_k, because each element is rounded once in float32 (before that in float64 at most twice) and
// tau = 2^-120 covers subnormal results (d <= 2^18 columns, each off by 2^-149).
//
// The kernel starts at `start_k`, adds d products and then g e_k, with e_k >= |c~_k|; 2 (d + 1) roundings at most. Its
// result P_k differs from the real start_k + x~.c~_k + g e_k by no more than
//   A_k = (5/4) u (d + 2) (h_k + |x~||c~_k| + g e_k) + 2^-120,
// since (d + 16) 2^-23 <= 1/32. With B = (5/4) u (d + 4), N the least length of a centre, R = (17/16) (|x~| + N),
//   g       = (B |x~| + 2 u (1 + 2^-10) (|x~| + N)) (1 + 2 B)      (rounded up)
//   f_k     = B h_k + 2^-100,  start_k = -h_k + f_k                  (rounded up)
// P_k >= S_k + R rho_k + rho_k^2 / 2 for every k, and S_k >= P_k - 2 (g e_k + f_k). (R tau < 2^-100 / 4, as lengths are
// below 2^40.)
//
// Let b have the largest P. S = P_b - 2 (g e_b + f_b) <= S_b, delta = sqrt(n - 2 S) >= |x~ - c~_b|, and U = delta +
// rho_x
// + rho_b >= s |x - c_b|. A centre whose key is not above that of c_b has s |x - c_k| <= U (1 + m'), m' = (d + 8) 2^-51
// for the roundings of two keys. Then |x~ - c~_k| <= U (1 + m') + rho_x + rho_k, and where U (1 + m') + rho_x <= R
// (tested),
//   P_k >= S_k + R rho_k + rho_k^2 / 2 >= (n - (U (1 + m') + rho_x)^2) / 2 = S - w (delta + w / 2) =: t,
//   w = U (1 + m') + rho_x - delta = 2 rho_x + rho_b + m' U.
// So a k with P_k < t may be left out, and where the second largest P is below t, b is the label: no other centre has a
// key as small, whatever its id. Centres that are equal bit for bit are one centre here, that of the smallest id.
//
// The same P give the bounds of Hamerly's method: s |x - c_b| <= U, and for all others s |x - c_k| >= sqrt(n - 2 P_2)
// - rho_x - max rho, P_2 the second largest P. When centres move, the first grows by the centre's own shift, the
// second shrinks by the largest shift of another one; while U (1 + 2^-20) is below it, the label cannot change.
// Arithmetic on these quantities is float32; factors 1 +- 2^-20 and allowances of 2^-21 of what is subtracted cover its
// roundings, some five a line.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "simd/lloyd_kernels.hpp"

namespace vicinal::cpu {

/// Scale and shift of a table's rows, fixed for its life.
struct LloydFrame {
  bool usable = false;       ///< false: every label is decided by keys
  double scale = 1;          ///< s
  std::vector<float> shift;  ///< [d + 4] m, zeros beyond d

  /// centre: [d] any; largest: at least every |value| of the table.
  static LloydFrame of(std::span<const double> centre, double largest);
};

/// How far a centre has gone, in the frame's units: 0 where it is the same, else not below s |a - b|. A key has lost
/// all accuracy below 2^-900; such a shift is rounded up to 2^-440.
float centre_shift(const double* a, const double* b, std::int64_t d, double scale);

/// The centres of one iteration as the kernels read them.
class LloydCentres {
 public:
  LloydCentres(const LloydKernels& simd, const LloydFrame& frame, std::int64_t d);

  /// Takes centres [k, d]. False when the screen cannot serve them: then every row is decided by keys.
  bool assign(std::span<const double> centres);
  /// Points a tile to them.
  void attach(LloydTile& tile) const;

  /// Centres that differ: the first of each, ascending. What the kernels call centre i is distinct()[i].
  [[nodiscard]] const std::vector<std::int32_t>& distinct() const noexcept { return distinct_; }
  [[nodiscard]] std::int64_t padded() const noexcept { return padded_; }

  /// Bytes it takes for k centres.
  static std::uint64_t bytes(std::int64_t k, std::int64_t d);

 private:
  const LloydKernels& simd_;
  const LloydFrame& frame_;
  std::int64_t d_;
  std::vector<std::int32_t> distinct_;
  std::int64_t padded_ = 0;
  std::int64_t full_panels_ = 0;
  std::int32_t last_height_ = 0;
  core::AlignedArray<float> panels_;
  std::vector<float> lengths_;
  std::vector<float> allowances_;
  ScreenConstants constants_{};
};

}  // namespace vicinal::cpu
