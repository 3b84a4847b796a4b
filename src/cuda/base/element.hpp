// Elements of tables on the device: exact widening to float64 (contract clause 1), and one switch over the types.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "vicinal/dtype.hpp"

namespace vicinal::cuda {

/// Elements that float32 holds, as such.
__device__ inline float narrowed(std::uint8_t x) {
  return x;
}
__device__ inline float narrowed(float16 x) {
  return __half2float(__ushort_as_half(x.bits));
}
__device__ inline float narrowed(bfloat16 x) {
  return __uint_as_float(std::uint32_t{x.bits} << 16);
}
__device__ inline float narrowed(float x) {
  return x;
}

__device__ inline double widen(std::uint8_t x) {
  return x;
}
__device__ inline double widen(float16 x) {
  return narrowed(x);
}
__device__ inline double widen(bfloat16 x) {
  return narrowed(x);
}
__device__ inline double widen(float x) {
  return x;
}
__device__ inline double widen(double x) {
  return x;
}

/// Calls body(pointer) with the rows as what they are.
template <class Body>
void with_elements(const void* rows, DType dtype, Body body) {
  switch (dtype) {
    case DType::uint8:
      return body(static_cast<const std::uint8_t*>(rows));
    case DType::float16:
      return body(static_cast<const float16*>(rows));
    case DType::bfloat16:
      return body(static_cast<const bfloat16*>(rows));
    case DType::float32:
      return body(static_cast<const float*>(rows));
    case DType::float64:
      return body(static_cast<const double*>(rows));
  }
}

}  // namespace vicinal::cuda
