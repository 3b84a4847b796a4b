// Sparse matrices by compressed rows in device memory, and products with some vectors side by side (contract clause
// 17). Every sum is one thread's, or one of a few threads' in a fixed order, so that two runs give the same bits.
#pragma once

#include <cstdint>

#include "cuda/base/device.hpp"
#include "plugin/abi/krylov.hpp"

namespace vicinal::cuda::lle {

struct DeviceCsr {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Buffer<std::int64_t> first;  ///< [rows + 1]
  Buffer<std::int32_t> index;
  Buffer<double> values;

  DeviceCsr() = default;
  /// A copy. Waits for it.
  DeviceCsr(const Engine& engine, const plugin::CsrMatrix& matrix);
  static std::uint64_t bytes(const plugin::CsrMatrix& matrix);
};

/// y = scale A x + also also_x + own y, all [.., width] row by row; what is scaled by 0 is not read.
struct SparseSum {
  double scale = 1;
  double also = 0;
  const double* also_x = nullptr;
  double own = 0;
};
void multiply(const Engine& engine, const DeviceCsr& a, const double* x, std::int64_t width, const SparseSum& sum,
              double* y);

}  // namespace vicinal::cuda::lle
