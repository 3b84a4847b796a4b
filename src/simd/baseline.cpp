// The inner loops for what every machine of the architecture has: plain scalar code on x86-64, NEON on AArch64.
#define VICINAL_SIMD_NAMESPACE simd_baseline
#include "simd/all_inl.hpp"

namespace vicinal::cpu {

const AllKernels& baseline_kernels() {
  static constexpr AllKernels kTables = simd_baseline::make_all_kernels(Isa::baseline);
  return kTables;
}

}  // namespace vicinal::cpu
