// Products of a sparse matrix and a vector, the inner loop of Krylov methods, in the forms of Li, Yan and Zhang 2021
// and in our own, for comparison (docs/papers.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal {

/// How the sum of a matrix row is computed. `automatic` and `rows` work on every context, the others need a device.
enum class SpmvMethod : std::uint8_t {
  automatic,    ///< rows on the CPU, sliced_rows on a device
  rows,         ///< one thread per row
  block_row,    ///< one block of threads per row
  warp_row,     ///< one warp per row
  padded_row,   ///< one warp per row, rows padded to the warp's size
  sliced_rows,  ///< one thread per row; 32 rows are interleaved and padded to the longest of them, so that warps read
                ///< whole cache lines
  eight,        ///< eight vectors at a time, as in the Krylov methods; here all of them are x
  library,      ///< cuSPARSE, if it is installed
};
VICINAL_API std::string_view name_of(SpmvMethod method) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API SpmvMethod spmv_method_from(std::string_view name);

/// A borrowed sparse matrix in compressed rows: row i has the entries offsets[i] to offsets[i + 1] - 1.
struct SparseView {
  std::int64_t cols = 0;
  std::span<const std::int64_t> offsets;  ///< [rows + 1], from 0, ascending
  std::span<const std::int32_t> index;    ///< [entries] columns
  std::span<const double> values;         ///< [entries]

  [[nodiscard]] std::int64_t rows() const noexcept { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

struct Spmv {
  std::vector<double> product;  ///< [rows]
  /// Seconds of one product, with the matrix already in the device's memory: the median of `repeat` products.
  double seconds = 0;
  std::uint64_t bytes = 0;  ///< minimum number of bytes that a product moves: matrix, x and product once each
};

/// Computes y = A x `repeat` times. The bits are the same for every thread count; methods differ by rounding. Throws
/// `invalid_argument` for sizes that do not agree, columns outside the matrix, and methods that the context does not
/// support, `device_unavailable` if cuSPARSE is missing, `over_memory`, `cancelled`. O(entries) time per product.
VICINAL_API Spmv spmv(const Context& ctx, const SparseView& a, std::span<const double> x,
                      SpmvMethod method = SpmvMethod::automatic, std::int64_t repeat = 1);

}  // namespace vicinal
