// The inner loops of a dense factor (solver/factor.hpp), compiled once for each instruction set. Every sum has one
// order, the same in every table; only whether a product is rounded before it is added differs (clause 17).
#pragma once

#include <cstdint>

#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// c[i, j] -= sum_k a[i, k] scale[k] b[j, k], all column by column, for i < m, j < n. Tiles above the diagonal
/// i + shift = j are left out; of tiles on it, what is above may be written.
struct DenseUpdate {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const double* a = nullptr;
  std::int64_t a_step = 0;
  const double* b = nullptr;
  std::int64_t b_step = 0;
  const double* scale = nullptr;  ///< [k]
  double* c = nullptr;
  std::int64_t c_step = 0;
  std::int64_t shift = 0;
  double* room = nullptr;  ///< [kDenseRoom]
};
inline constexpr std::int64_t kDenseTile = 192;   ///< most rows and columns of an update
inline constexpr std::int64_t kDenseDepth = 120;  ///< columns that are packed at a time
inline constexpr std::int64_t kDenseRoom = 2 * kDenseTile * kDenseDepth;

/// A diagonal block [width, width] becomes L of its L D L', and d its D. `kept` says what a pivot is replaced by.
struct DenseBlock {
  std::int64_t width = 0;
  double* block = nullptr;
  std::int64_t step = 0;
  double* d = nullptr;
  double (*kept)(double) = nullptr;
};

/// Rows below a factored diagonal block: p [m, width] becomes p L^-T D^-1. l [width, width] unit lower, d [width].
struct DenseSolve {
  std::int64_t m = 0;
  std::int64_t width = 0;
  const double* l = nullptr;
  std::int64_t l_step = 0;
  const double* d = nullptr;
  double* p = nullptr;
  std::int64_t p_step = 0;
};
inline constexpr std::int64_t kDenseWidth = 32;  ///< most columns of a diagonal block

/// Rows [begin, end) of a column that stand side by side in another one, from `at` on.
struct DenseRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t at = 0;
};

/// Numbers in five bytes each: a float64 rounded to 32 bits, of which a float32 holds the upper 24, and a byte those
/// below. Magnitudes of at least 2^-126 and below 2^127 are off by at most 2^-32 of themselves, lesser ones by less
/// than 2^-148. Products read up to kFiveBytesMore numbers behind the last one, whatever they are.
struct FiveBytes {
  const float* high = nullptr;
  const std::uint8_t* low = nullptr;

  [[nodiscard]] FiveBytes from(std::int64_t i) const noexcept { return {high + i, low + i}; }
};
inline constexpr std::int64_t kFiveBytes = 5;
inline constexpr std::int64_t kFiveBytesMore = 8;

/// A panel l [m, k], column by column, and vectors side by side, row by row, `width` a multiple of eight. What is
/// called own has the rows of its columns on top: a lower triangle whose diagonal of ones is not read.
struct PanelProduct {
  std::int64_t m = 0;
  std::int64_t k = 0;
  FiveBytes l;
  std::int64_t l_step = 0;
  std::int64_t width = 0;
};

struct DenseKernels {
  void (*update)(const DenseUpdate& task);
  void (*eliminate)(const DenseBlock& task);
  void (*solve)(const DenseSolve& task);
  /// Adds the rows of the runs [runs, last), from `row` on, to their places in another column.
  void (*add)(const DenseRun* runs, const DenseRun* last, std::int64_t row, const double* from, double* to);
  void (*down)(const PanelProduct& panel, const double* x, double* y);  ///< y[r] -= sum_c l[r, c] x[c]
  void (*down_own)(const PanelProduct& panel, double* x);  ///< x[r] -= sum_c l[r, c] x[c], c < r, by ascending r
  void (*up)(const PanelProduct& panel, const double* y, double* x);  ///< x[c] -= sum_r l[r, c] y[r]
  void (*up_own)(const PanelProduct& panel, double* x);  ///< x[c] -= sum_r l[r, c] x[r], r > c, by descending c
  void (*shorten)(const double* from, std::int64_t count, float* high, std::uint8_t* low);  ///< as FiveBytes
};

/// The table for an instruction set in use (never `automatic`).
const DenseKernels& dense_kernels(Isa isa);

}  // namespace vicinal::cpu
