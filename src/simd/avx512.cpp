// The inner loops for AVX-512 F, BW, CD, DQ and VL (Skylake-X, Zen 4 and later).
#if defined(__x86_64__)
#define VICINAL_SIMD_NAMESPACE simd_avx512
#include "simd/all_inl.hpp"

namespace vicinal::cpu {

const AllKernels& avx512_kernels() {
  static constexpr AllKernels kTables = simd_avx512::make_all_kernels(Isa::avx512);
  return kTables;
}

}  // namespace vicinal::cpu
#endif
