// The int8 screen of Lloyd's iterations: which centers may be as near to a row as one whose key is known.
//
// Notation. x is a row and c a center, m the center and s the scale of the rows' screen (cpu/nearest/screen.hpp), and t
// another scale, q = t / s. X = s (x - m) and Y = t (c - m), exact reals; x~ and y~ are their roundings to integers in
// [-128, 127], e = X - x~ and f = Y - y~, rho_x >= |e| and rho_y >= |f| the measured errors. Means vary less than rows
// do, so that t may be larger than s; f / q is then smaller than it would be with one scale. Means of few rows vary
// more than those of many, so that centers are taken by RUNS of about as large elements, each run with a t of its own.
//
// If s |x - c| <= U, then |X - Y / q| <= U. Squared, times q / 2:
//   X.Y  >=  q (|X|^2 - U^2) / 2 + |Y|^2 / (2 q).
// X.Y = x~.y~ + x~.f + e.Y, where
//   x~.f = (Y / q + (X - Y / q) - e).f <= Y.f / q + (U + rho_x) rho_y,   Y.f = (|Y|^2 - |y~|^2 + |f|^2) / 2,
//   form F:  e.Y <= rho_x |Y|,
//   form T:  e.Y = q (e.X + e.(Y / q - X)) <= q (e.X + rho_x U),         e.X = (|X|^2 - |x~|^2 + |e|^2) / 2.
// So x~.y~ + H + E + (U + rho_x) rho_y  >=  (|y~|^2 - |f|^2) / (2 q), with
//   form F:  H = q (U^2 - |X|^2) / 2,             E = rho_x |Y|,
//   form T:  H = q ((U + rho_x)^2 - |x~|^2) / 2,  E = 0.
// Both hold always. F loses less where centers are near m, T where rows are near their centers and these far from m; a
// row takes, in each run, the one whose H + E is less with the mean |Y|. The kernel (ScreenTile) computes the left-hand
// side, with A and B the largest |Y| and rho_y of the centers of a tile and with H rounded up; `least` is the
// right-hand side, rounded down. A center of a smaller sum is farther than U.
//
// With U >= s |x - a| (1 + m'), a the row's own center and m' for the roundings of keys, every center whose key is not
// above that of a survives, whatever its id. What does not survive is farther than U, which is the lower bound of
// Hamerly's method.
//
// Range. d <= 2^13, so |x~.y~| <= 2^27. H is kept in [-2^29, 2^29]. Where it was above, both other terms are 0 and H =
// 2^29: the sum is then at least 2^29 - 2^27, and `least`, at most 2^28, leaves the center. What the kernel adds is at
// most 2^30, also where it is not a number, and there, too, every center is left. So all sums are below 2^31. Where
// rho_x is not below 2^14 it counts as infinite. Where rho_y is not, the center always survives, and A and B do not
// count it. float64 arithmetic on sums of d terms has relative errors below (d + 8) 2^-52 < 2^-38: 2^-30 of |X|^2,
// |y~|^2, U^2 and of the results covers them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "cpu/nearest/screen.hpp"
#include "simd/kernels.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cpu {

class LabelScreen {
 public:
  /// Fewer centers are not worth it.
  static constexpr std::int64_t kMinCentres = 256;

  /// Whether so many centers of a table of this kind are screened: of one in memory, on a processor with an instruction
  /// for int8.
  static bool serves(const SimdKernels& simd, const TableView& table, std::int64_t centres);
  /// Bytes of the screen of `rows` rows, `centres` centers and `threads` threads.
  static std::uint64_t bytes(std::int64_t rows, std::int64_t d, std::int64_t centres, std::uint64_t threads);

  /// A screen whose scale suits a sample of the rows about a center. The nearer that is to the centers, the fewer of
  /// them survive.
  static Screen choose(const Context& ctx, const TableView& table, std::vector<double> centre);
  /// Of rows numbered 0 .. rows - 1, none of which has been packed. Takes the memory.
  LabelScreen(const SimdKernels& simd, Screen screen, std::int64_t rows, std::int64_t centres);

  /// s: of the screen's units to the table's.
  [[nodiscard]] double scale() const noexcept { return screen_.scale(); }
  /// Rows of a tile: those that one call of `survivors` looks at.
  [[nodiscard]] std::int64_t tile_rows() const noexcept { return simd_.tile_rows; }
  /// Takes those of the centers [k, d] that `distinct` names, for `survivors`.
  void ask(const Context& ctx, std::span<const double> centres, std::span<const std::int32_t> distinct);

  [[nodiscard]] bool packed(std::int64_t row) const { return rho_[row] >= 0; }
  /// Packs a row [d]. Rows may be packed side by side.
  void pack(std::int64_t row, const double* values);

  /// Rows under way through the screen, and what is found out of them.
  struct Tile {
    /// What a row is asked with.
    struct Lane {
      double form_t;  ///< (U + rho_x)^2 - |x~|^2
      double form_f;  ///< U^2 - |X|^2
      float rho;
      float kappa;  ///< U + rho_x
      std::int32_t fixed;
    };
    core::AlignedArray<std::byte> panel;
    std::vector<Lane> lanes;
    std::vector<std::int32_t> base;  ///< of a run
    std::vector<float> rho;
    std::vector<float> kappa;
    std::vector<Survivor> survivors;
    std::vector<std::int32_t> counts;
    std::vector<std::vector<std::int32_t>> centres;  ///< of each row of the tile: numbers that survive, in any order
  };
  [[nodiscard]] Tile tile() const;
  /// Puts a packed row into a lane of a tile: which centers are not farther than `reach`, U?
  void put(Tile& tile, std::int64_t lane, std::int64_t row, double reach) const;
  /// By how much a row may look farther than `reach` if it is to find about as many centers: a quarter of what errors
  /// of rounding add. An estimate, by the mean center.
  [[nodiscard]] double room(std::int64_t row, double reach) const;
  /// Fills tile.centres for the first `rows` lanes.
  void survivors(Tile& tile, std::int64_t rows) const;

 private:
  /// Centers that have one scale, in places of `order_`.
  struct Run {
    std::int64_t first;
    std::int64_t end;
    double ratio = 1;    // q
    double typical = 0;  // mean |Y|
  };
  /// Sums of |Y| and rho_y.
  struct Sizes {
    double lengths = 0;
    double errors = 0;
  };
  [[nodiscard]] std::vector<Run> runs_of(std::span<const double> lengths, std::span<const double> largest);
  Sizes round_centres(std::span<const double> centres, const Screen& finer, const Run& run, std::int64_t first);
  static void aim(Tile& tile, std::int64_t rows, const Run& run);

  const SimdKernels& simd_;
  Screen screen_;
  std::int64_t d_;
  std::int64_t row_bytes_;
  core::AlignedArray<std::byte> rows_;      // [rows][row_bytes]
  core::AlignedArray<std::int32_t> fixed_;  // [rows] -128 sum x~
  core::AlignedArray<float> exact_;         // [rows] |X|^2, rounded down
  core::AlignedArray<float> rounded_;       // [rows] |x~|^2, rounded down
  core::AlignedArray<float> rho_;           // [rows] rho_x; below 0: not packed; infinite: every center survives
  // Of the centers, by groups of tile_queries: by their own scales, fine to coarse, then in ascending order of |Y|.
  std::vector<Run> runs_;
  double mean_length_ = 0;                 // |Y| / q
  double mean_error_ = 0;                  // rho_y / q
  std::vector<std::int32_t> order_;        // which center it is
  core::AlignedArray<std::byte> centres_;  // [groups][words, tile_queries] of 32 bits
  std::vector<std::int32_t> least_;        // [groups, tile_queries]
  std::vector<float> longest_;             // [groups, tile_queries] A, as the kernel reads it
  std::vector<float> most_rho_;            // and B
};

}  // namespace vicinal::cpu
