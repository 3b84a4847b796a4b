// The inner loops for AVX2 with FMA (Haswell, Zen and later).
#if defined(__x86_64__)
#define VICINAL_SIMD_NAMESPACE simd_avx2
#include "simd/all_inl.hpp"

namespace vicinal::cpu {

const AllKernels& avx2_kernels() {
  static constexpr AllKernels kTables = simd_avx2::make_all_kernels(Isa::avx2);
  return kTables;
}

}  // namespace vicinal::cpu
#endif
