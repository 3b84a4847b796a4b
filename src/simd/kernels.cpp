// Which table of inner loops serves an instruction set. Context has checked that the machine has it.
#include "simd/kernels.hpp"

#include "core/isa.hpp"
#include "simd/dense_kernels.hpp"
#include "simd/lloyd_kernels.hpp"
#include "simd/overlap_kernels.hpp"
#include "simd/sparse_kernels.hpp"
#include "simd/tree_kernels.hpp"
#include "simd/union_kernels.hpp"

namespace vicinal::cpu {
namespace {

#if defined(__x86_64__)
SimdKernels with_dot_products(SimdKernels table) {
  const auto use = [&table](ScreenType type, ScreenFn screen, bool quick) {
    table.screens[screen_index(type)] = screen;
    table.quick[screen_index(type)] = quick;
  };
  if (table.isa == Isa::avx512) {
    if (core::has_feature(core::Feature::avx512_vnni)) use(ScreenType::int8, screen_int8_avx512vnni, true);
    if (core::has_feature(core::Feature::avx512_bf16)) {
      // Zen gives VDPBF16PS the rate of a multiply-add; on Sapphire Rapids it was measured at half of that or less,
      // which makes it slower than float32.
      use(ScreenType::bfloat16, screen_bfloat16_avx512, core::has_feature(core::Feature::zen));
    }
  } else if (core::has_feature(core::Feature::avx_vnni)) {
    use(ScreenType::int8, screen_int8_avxvnni, true);
  }
  return table;
}
#endif

}  // namespace

const SimdKernels& simd_kernels(Isa isa) {
#if defined(__x86_64__)
  // Each inside its own branch: a machine without an instruction set runs nothing that was compiled for it.
  if (isa == Isa::avx512) {
    static const SimdKernels kAvx512 = with_dot_products(avx512_kernels());
    return kAvx512;
  }
  if (isa == Isa::avx2) {
    static const SimdKernels kAvx2 = with_dot_products(avx2_kernels());
    return kAvx2;
  }
#else
  static_cast<void>(isa);
#endif
  return baseline_kernels();
}

const OverlapKernels& overlap_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512_overlap_kernels();
  if (isa == Isa::avx2) return avx2_overlap_kernels();
#else
  static_cast<void>(isa);
#endif
  return baseline_overlap_kernels();
}

const SparseKernels& sparse_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512_sparse_kernels();
  if (isa == Isa::avx2) return avx2_sparse_kernels();
#else
  static_cast<void>(isa);
#endif
  return baseline_sparse_kernels();
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

const DenseKernels& dense_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512_dense_kernels();
  if (isa == Isa::avx2) return avx2_dense_kernels();
#else
  static_cast<void>(isa);
#endif
  return baseline_dense_kernels();
}

const LloydKernels& lloyd_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512_lloyd_kernels();
  if (isa == Isa::avx2) return avx2_lloyd_kernels();
#else
  static_cast<void>(isa);
#endif
  return baseline_lloyd_kernels();
}

UniteRowsFn unite_rows(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512_unite_rows();
  if (isa == Isa::avx2) return avx2_unite_rows();
#else
  static_cast<void>(isa);
#endif
  return baseline_unite_rows();
}

}  // namespace vicinal::cpu
