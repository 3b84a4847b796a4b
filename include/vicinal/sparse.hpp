// Products of a sparse matrix with a vector, by the forms of Li, Yan and Zhang 2021 and ours: the inner loop of Krylov
// methods (docs/papers.md), to be compared with each other.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal {

/// Who adds up a row. `automatic` and `rows` work everywhere, the others on a device.
enum class SpmvMethod : std::uint8_t {
  automatic,    ///< rows on the CPU, sliced_rows on a device
  rows,         ///< one thread a row
  block_row,    ///< one block of threads a row
  warp_row,     ///< one warp a row
  padded_row,   ///< one warp a row, rows padded to the warp's size
  sliced_rows,  ///< one thread a row; 32 rows side by side, padded to the longest of them, so that warps read whole
                ///< lines
  eight,        ///< eight vectors at a time, as the Krylov methods have them; all of them are x
  library,      ///< cuSPARSE, where it is installed
};
VICINAL_API std::string_view name_of(SpmvMethod method) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API SpmvMethod spmv_method_from(std::string_view name);

/// A sparse matrix by compressed rows, borrowed: row i has the entries offsets[i] to offsets[i + 1].
struct SparseView {
  std::int64_t cols = 0;
  std::span<const std::int64_t> offsets;  ///< [rows + 1], from 0, ascending
  std::span<const std::int32_t> index;    ///< [entries] columns
  std::span<const double> values;         ///< [entries]

  [[nodiscard]] std::int64_t rows() const noexcept { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

struct Spmv {
  std::vector<double> product;  ///< [rows]
  double seconds = 0;           ///< of one product, where the matrix lies already: the median of `repeat`
  std::uint64_t bytes = 0;      ///< the fewest that a product moves: matrix, x and product once each
};

/// y = A x, `repeat` times. Same bits for every thread count; methods differ by rounding. Throws `invalid_argument` for
/// sizes that do not agree, columns outside the matrix, and methods that the device does not serve,
/// `device_unavailable` where cuSPARSE is not there, `over_memory`. O(entries).
VICINAL_API Spmv spmv(const Context& ctx, const SparseView& a, std::span<const double> x,
                      SpmvMethod method = SpmvMethod::automatic, std::int64_t repeat = 1);

}  // namespace vicinal
