// The int8 screen of k-means++: which rows a drawn row may be nearer to than their least keys say.
//
// Notation. X = s (x - c) and Y = s (y - c), exact reals, for a row x, a drawn row y, and the center c and the scale s
// of the screen (cpu/nearest/screen.hpp); x~ and y~ are their roundings to integers in [-128, 127], rho_x >= |X - x~|
// and rho_y >= |Y - y~| the measured errors; h = |x~|^2 / 2. m is the least key of x to a center so far.
//
// If the key of x and y is below m, then s |x - y| <= U, with U = s sqrt(m (1 + (d + 8) 2^-51) + d 2^-1072) for the
// roundings of keys. So |x~ - y~| <= R + rho_y, with R = U + rho_x. Squared and halved:
//   x~.y~ - h + R^2 / 2 + R rho_y  >=  |y~|^2 / 2 - rho_y^2 / 2.
// The left-hand side is what the kernel computes in 32 bits:
//   base = -128 sum x~ - floor(h) + ceil(R^2 / 2), and base + (y~ + 128).x~ + [A R rounded up]
// where A (float32) is at least rho_y (1 + 2^-20) of the drawn rows whose errors are alike. A row that a drawn row may
// change therefore has a sum of at least floor(|y~|^2 / 2 - rho_y^2 / 2): all others may be left out. A drawn row with
// a greater error, as one with a value beyond int8, does not raise A: its sum may be less by (rho_y - A) R, and it is
// compared with the sum less that term for the greatest R of a tile.
//
// Range. d <= 2^15, so |x~.y~| <= 2^29 and h, |y~|^2 / 2 <= 2^28. Where R is not below 2^14 the row is never left out:
// R^2 / 2 becomes 2^30, and R becomes 0 in the other term; a sum is then above 2^30 - 2^29 - 2^28 >= |y~|^2 / 2. Where
// rho_y is not below 2^14 no row is left out, and A does not count it. So A R < 2^29, and all sums are below 2^31.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "cpu/nearest/screen.hpp"
#include "simd/kernels.hpp"
#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cpu {

/// The least multiple of `of` that is not below `count`: rows and queries of whole tiles.
constexpr std::int64_t up_to_multiple(std::int64_t count, std::int64_t of) {
  return (count + of - 1) / of * of;
}

class SeedingScreen {
 public:
  /// Whether tables of this kind are screened: those in memory, on a processor with an instruction for int8.
  static bool serves(const SimdKernels& simd, const TableView& table);
  /// Bytes of the screen of `rows` rows and of `draws` draws.
  static std::uint64_t bytes(std::int64_t rows, std::int64_t d, std::int64_t draws);

  /// Of rows numbered 0 .. rows - 1, none of which has been packed; `draws`: the most at a time. Takes the memory.
  SeedingScreen(const SimdKernels& simd, Screen screen, std::int64_t rows, std::int64_t draws);
  /// Center and scale that suit a sample of the table.
  static Screen choose(const Context& ctx, const TableView& table);
  /// Bytes of that sample, of a table of `rows` rows.
  static std::uint64_t choosing_bytes(std::uint64_t rows);

  /// Rows of a tile: those that one call of `survivors` looks at.
  [[nodiscard]] std::int64_t tile_rows() const noexcept { return simd_.tile_rows; }
  /// Packs a row [d] whose least key is `key`. Rows may be packed side by side, and each again.
  void pack(std::int64_t row, const double* values, double key);
  /// A row that there is not. It survives only a draw that is beyond the range, where callers leave it out.
  void pack_nothing(std::int64_t row);
  /// The least key of a packed row has changed.
  void set_key(std::int64_t row, double key);
  /// Takes draws [m, d], for `survivors`.
  void ask(std::span<const double> draws);

  struct Found {
    std::int32_t draw;
    std::int32_t row;  ///< counted from the tile's first
  };
  struct Scratch {
    std::vector<Survivor> survivors;
    std::vector<std::int32_t> counts;
    std::vector<std::int32_t> least;
    std::vector<Found> found;
  };
  [[nodiscard]] Scratch scratch() const;
  /// The pairs of a draw and a row of the tile in which the row's key may become less: `found` of the scratch.
  void survivors(std::int64_t tile, Scratch& scratch) const;

 private:
  [[nodiscard]] std::byte* panel(std::int64_t tile) { return panels_.data() + tile * simd_.tile_rows * row_bytes_; }

  const SimdKernels& simd_;
  Screen screen_;
  std::int64_t rows_;
  std::int64_t d_;
  std::int64_t row_bytes_;
  core::AlignedArray<std::byte> panels_;    // [tiles][words, tile_rows] of 32 bits
  core::AlignedArray<std::int32_t> fixed_;  // [padded rows] -128 sum x~ - floor(h)
  core::AlignedArray<std::int32_t> base_;   // [padded rows], and so the others
  core::AlignedArray<float> reach_;         // R
  core::AlignedArray<float> rho_;           // rho_x; infinite: the row is never left out
  std::vector<float> no_kappa_;             // [tile_rows] zeros
  // Of the draws, by groups of tile_queries.
  std::int64_t draws_ = 0;
  core::AlignedArray<std::byte> queries_;  // [groups][words, tile_queries] of 32 bits
  std::vector<std::int32_t> least_;        // [groups, tile_queries]
  std::vector<double> beyond_;             // [groups, tile_queries] rho_y - A where it is above 0
  bool is_any_beyond_ = false;
  std::vector<float> most_rho_;  // [tile_queries] A, as the kernel reads it
  std::vector<float> no_b_;
};

}  // namespace vicinal::cpu
