// The inner loops for what every machine of the architecture has: plain scalar code on x86-64, NEON on AArch64.
#define VICINAL_SIMD_NAMESPACE simd_baseline
#include "cpu/simd/kernels_inl.hpp"

namespace vicinal::cpu {

const SimdKernels& baseline_kernels() {
  static constexpr SimdKernels kTable = simd_baseline::make_kernels(Isa::baseline);
  return kTable;
}

}  // namespace vicinal::cpu
