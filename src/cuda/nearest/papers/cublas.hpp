// cuBLAS, found when a product first needs it: the plug-in does not depend on it.
#pragma once

#include <cstdint>

#include "cuda/base/device.hpp"

namespace vicinal::cuda::papers {

/// c += x y^T in float32 and nothing less: x [m, d], y [n, d], c [m, n], all row by row in device memory; n, m and d
/// below 2^31. Throws `device_unavailable` naming the library where it is not there.
void add_products(const Engine& engine, const float* x, std::int64_t m, const float* y, std::int64_t n, std::int64_t d,
                  float* c);

/// Throws as add_products where the library is not there.
void require_products(const Engine& engine);

}  // namespace vicinal::cuda::papers
