// Tall matrices of few columns in device memory, row-major: what solver/tall.hpp does on the host. Small matrices are
// the host's. All sums go over fixed parts in order, so that two runs give the same bits.
#pragma once

#include <cstdint>

#include "cuda/lle/lle.hpp"

namespace vicinal::cuda::lle {

struct DeviceVectors {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  Buffer<double> values;  ///< [rows, width]

  DeviceVectors() = default;
  DeviceVectors(const Engine& engine, std::int64_t rows, std::int64_t width)
      : rows(rows), width(width), values(engine, rows * width) {}
  double* data() const { return values.data(); }
};

/// Columns that a triangle may have: one warp's rows of them lie in shared memory.
std::int64_t widest_triangle(const Engine& engine);

/// solver::first_entry of each point and column.
DeviceVectors first_vectors(const Engine& engine, std::int64_t points, std::int64_t width);
/// x'y, to product[x.width, y.width] of the host's.
void inner(const Engine& engine, const DeviceVectors& x, const DeviceVectors& y, double* product);
/// y -= x c, c[x.width, y.width] of the host's.
void subtract_product(const Engine& engine, const DeviceVectors& x, const double* c, DeviceVectors& y);
/// x c, c[x.width, width] of the host's.
DeviceVectors product(const Engine& engine, const DeviceVectors& x, const double* c, std::int64_t width);
/// Takes the mean out of every column, twice.
void remove_means(const Engine& engine, DeviceVectors& x);
/// y -= x diag(s)^2, s[width] of the host's.
void subtract_scaled(const Engine& engine, const DeviceVectors& x, const double* s, DeviceVectors& y);
/// [x y].
DeviceVectors beside(const Engine& engine, const DeviceVectors& x, const DeviceVectors& y);
/// Columns [0, width) of x to host memory [rows, width].
void fetch_columns(const Engine& engine, const DeviceVectors& x, std::int64_t width, double* to);
/// Triangles whose rows together have the triangle of x (or of A x, where there are blocks), to triangles[kTriangles *
/// width, width] of the host's.
inline constexpr std::int64_t kTriangles = 32;
void triangles_of(const Engine& engine, const DeviceBlocks* a, const DeviceVectors& x, double* triangles);

}  // namespace vicinal::cuda::lle
