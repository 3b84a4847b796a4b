// The inner loops for AVX2 with FMA (Haswell, Zen and later).
#if defined(__x86_64__)
#define VICINAL_SIMD_NAMESPACE simd_avx2
#include "cpu/simd/kernels_inl.hpp"

namespace vicinal::cpu {

const SimdKernels& avx2_kernels() {
  static constexpr SimdKernels kTable = simd_avx2::make_kernels(Isa::avx2);
  return kTable;
}

}  // namespace vicinal::cpu
#endif
