// The contract's key of a pair of rows on the device (clause 1): eight lanes of a warp share a pair, lane l keeps the
// accumulator of the columns j % 8 = l, and the shuffles add them in the contract's tree. Only the metrics that the
// screen serves; direct.cu has all. Compiled without contraction (-fmad=false).
#pragma once

#include <cstdint>

#include "core/distance.hpp"
#include "core/octet.hpp"
#include "cuda/base/element.hpp"
#include "cuda/base/metric_ops.cuh"
#include "vicinal/graph.hpp"

namespace vicinal::cuda {

/// Of one x and some rows at a time. Some columns of a lane are on their way together, be they fewer than usual.
template <int kRows, class X, class Y>
__device__ __forceinline__ void squared_differences(const X* x, const Y* const (&rows)[kRows], int d, unsigned mask,
                                                    double (&keys)[kRows]) {
  constexpr int kTogether = sizeof(Y) > 4 ? 4 : 8;
  double sums[kRows] = {};
#pragma unroll 1
  for (int first = static_cast<int>(threadIdx.x % 8); first < d; first += 8 * kTogether) {
    Y values[kRows][kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (first + 8 * i < d) values[r][i] = rows[r][first + 8 * i];
      }
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (first + 8 * i >= d) break;
      const double value = widen(x[first + 8 * i]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) Squares::add(sums[r], value, widen(values[r][i]), 2);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) keys[r] = core::sum_of_eight(sums[r], mask);
}
template <class X, class Y>
__device__ double squared_differences(const X* x, const Y* y, int d, unsigned mask) {
  const Y* const rows[1] = {y};
  double keys[1];
  squared_differences(x, rows, d, mask, keys);
  return keys[0];
}

template <class T>
__device__ double minus_product(const double* x, const T* y, int d, unsigned mask) {
  double a = 0;
#pragma unroll 8
  for (int j = threadIdx.x % 8; j < d; j += 8) Products::add(a, x[j], widen(y[j]), 2);
  return Products::key(core::sum_of_eight(a, mask), d);
}

// As core::normalize_row, by eight lanes: what an element is multiplied with (exactly, in two steps) and divided by.
struct Normalizer {
  double scale = 0;
  double rest = 0;
  double length = 0;  // 0 for a row of zeros
};
template <class T>
__device__ Normalizer normalizer_of(const T* y, int d, unsigned mask) {
  double largest = 0;
  for (int j = threadIdx.x % 8; j < d; j += 8) largest = fmax(largest, fabs(widen(y[j])));
  for (int step = 4; step > 0; step /= 2) largest = fmax(largest, __shfl_xor_sync(mask, largest, step));
  Normalizer n;
  if (largest == 0) return n;
  const int e = ilogb(largest);
  n.scale = core::power_of_two(-e > 1023 ? 1023 : -e);
  n.rest = core::power_of_two(-e > 1023 ? -e - 1023 : 0);
  double a = 0;
  for (int j = threadIdx.x % 8; j < d; j += 8) {
    const double t = __dmul_rn(__dmul_rn(widen(y[j]), n.scale), n.rest);
    a = __fma_rn(t, t, a);
  }
  n.length = __dsqrt_rn(core::sum_of_eight(a, mask));
  return n;
}
__device__ __forceinline__ double normalized(double value, const Normalizer& n) {
  return n.length == 0 ? 0.0 : __ddiv_rn(__dmul_rn(__dmul_rn(value, n.scale), n.rest), n.length);
}

/// x was normalized before, y is here.
template <class T>
__device__ double cosine(const double* x, bool x_zero, const T* y, int d, unsigned mask) {
  const Normalizer n = normalizer_of(y, d, mask);
  if (x_zero || n.length == 0) return 1.0;
  double a = 0;
  for (int j = threadIdx.x % 8; j < d; j += 8) {
    Angle::add(a, x[j], normalized(widen(y[j]), n), 2);
  }
  return Angle::key(core::sum_of_eight(a, mask), d);
}

template <class T>
__device__ double exact_key(Metric metric, const double* x, bool x_zero, const T* y, int d, unsigned mask) {
  if (metric == Metric::inner_product) return minus_product(x, y, d, mask);
  if (metric == Metric::cosine) return cosine(x, x_zero, y, d, mask);
  return squared_differences(x, y, d, mask);
}

}  // namespace vicinal::cuda
