// What each row's neighbors say of it, on the device: the blocks of A for every variant (contract clause 17), as
// solver/weights.hpp makes them on the host.
#pragma once

#include "cuda/lle/lle.hpp"
#include "vicinal/lle.hpp"

namespace vicinal::cuda::lle {

struct LocalTask {
  const double* table = nullptr;      ///< [n, d]
  const std::int32_t* ids = nullptr;  ///< [n, k]
  std::int64_t n = 0;
  std::int64_t d = 0;
  std::int64_t k = 0;
  std::int64_t dim = 0;
  LleVariant variant = LleVariant::standard;
  double reg = 0;
};

/// Bytes it takes at most, the blocks included.
std::uint64_t local_bytes(const Engine& engine, const LocalTask& task);
/// O(n (k^2 d + k^3)). Throws `bad_data` naming the row whose weights are not determined. `largest`: of standard, the
/// largest magnitude of a weight.
DeviceBlocks local_rows(const Engine& engine, const Host& host, const LocalTask& task, double& largest);

}  // namespace vicinal::cuda::lle
