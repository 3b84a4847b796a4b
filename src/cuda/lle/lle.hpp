// The operator of locally linear embedding in device memory (contract clause 17), as solver::LocalRows has it on the
// host: A, one block of rows a point, each block on the point's `width` columns, which is an ELL form. Products go one
// thread a result, each sum in the order of columns or of blocks, so that two runs give the same bits.
#pragma once

#include <cstdint>

#include "cuda/base/device.hpp"

namespace vicinal::cuda::lle {

/// A's blocks, for n points.
struct DeviceBlocks {
  std::int64_t points = 0;
  std::int64_t width = 0;
  std::int64_t rows = 0;
  Buffer<std::int32_t> cols;   ///< [n, width], distinct within a block
  Buffer<std::int64_t> first;  ///< [n + 1] block i is rows [first[i], first[i + 1])
  Buffer<std::int32_t> owner;  ///< [rows] the block of each row
  Buffer<double> values;       ///< [rows, width]

  DeviceBlocks() = default;
  /// Room for blocks of `rows` rows together.
  DeviceBlocks(const Engine& engine, std::int64_t points, std::int64_t width, std::int64_t rows)
      : points(points),
        width(width),
        rows(rows),
        cols(engine, points * width),
        first(engine, points + 1),
        owner(engine, rows),
        values(engine, rows * width) {}
  static std::uint64_t bytes(std::int64_t points, std::int64_t width, std::int64_t rows);
};

/// The blocks of some points, point i called rows[i] before (host); their columns must all be listed. O(n width).
DeviceBlocks renumbered(const Engine& engine, const DeviceBlocks& a, const std::int32_t* rows, std::int64_t n);

/// For each point the blocks that have it as a column, by ascending block.
struct DeviceIncidence {
  Buffer<std::int64_t> first;    ///< [n + 1]
  Buffer<std::uint32_t> places;  ///< [n * width] block * width + where in the block it stands
};

/// Fills `owner` from `first`.
void find_owners(const Engine& engine, const DeviceBlocks& a);
/// Bytes that making it takes, itself included.
std::uint64_t incidence_bytes(std::int64_t points, std::int64_t width);
/// n * width must be below 2^32. O(n width).
DeviceIncidence incidence_of(const Engine& engine, const DeviceBlocks& a);

/// y[rows, q] = A x[n, q], both row-major.
void apply(const Engine& engine, const DeviceBlocks& a, const double* x, std::int64_t q, double* y);
/// y[n, q] = A' x[rows, q].
void apply_transposed(const Engine& engine, const DeviceBlocks& a, const DeviceIncidence& in, const double* x,
                      std::int64_t q, double* y);
/// The largest sum of magnitudes of a row of A times that of a column: at least the greatest singular value squared.
double norm_bound(const Engine& engine, const DeviceBlocks& a, const DeviceIncidence& in);

}  // namespace vicinal::cuda::lle
