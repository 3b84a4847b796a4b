// Which table of inner loops serves an instruction set. Context has checked that the machine has it.
#include "cpu/simd/kernels.hpp"

#include "cpu/simd/tree_kernels.hpp"

namespace vicinal::cpu {

const SimdKernels& simd_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512_kernels();
  if (isa == Isa::avx2) return avx2_kernels();
#else
  static_cast<void>(isa);
#endif
  return baseline_kernels();
}

const TreeKernels& tree_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512_tree_kernels();
  if (isa == Isa::avx2) return avx2_tree_kernels();
#else
  static_cast<void>(isa);
#endif
  return baseline_tree_kernels();
}

}  // namespace vicinal::cpu
