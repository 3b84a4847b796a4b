// Which table of inner loops serves an instruction set. Context has checked that the machine has it.
#include "core/isa.hpp"
#include "simd/all_kernels.hpp"

namespace vicinal::cpu {
namespace {

#if defined(__x86_64__)
AllKernels with_dot_products(AllKernels tables) {
  SimdKernels& table = tables.search;
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
  return tables;
}
#endif

const AllKernels& all_kernels(Isa isa) {
#if defined(__x86_64__)
  // Each inside its own branch: a machine without an instruction set runs nothing that was compiled for it.
  if (isa == Isa::avx512) {
    static const AllKernels kAvx512 = with_dot_products(avx512_kernels());
    return kAvx512;
  }
  if (isa == Isa::avx2) {
    static const AllKernels kAvx2 = with_dot_products(avx2_kernels());
    return kAvx2;
  }
#else
  static_cast<void>(isa);
#endif
  return baseline_kernels();
}

}  // namespace

const SimdKernels& simd_kernels(Isa isa) {
  return all_kernels(isa).search;
}

BarycentresFn barycentres(Isa isa) {
  return all_kernels(isa).barycentres;
}

const DenseKernels& dense_kernels(Isa isa) {
  return all_kernels(isa).dense;
}

NearDonorsFn near_donors(Isa isa) {
  return all_kernels(isa).near_donors;
}

const LloydKernels& lloyd_kernels(Isa isa) {
  return all_kernels(isa).lloyd;
}

const OverlapKernels& overlap_kernels(Isa isa) {
  return all_kernels(isa).overlap;
}

const SparseKernels& sparse_kernels(Isa isa) {
  return all_kernels(isa).sparse;
}

const TallKernels& tall_kernels(Isa isa) {
  return all_kernels(isa).tall;
}

const TreeKernels& tree_kernels(Isa isa) {
  return all_kernels(isa).tree;
}

UniteRowsFn unite_rows(Isa isa) {
  return all_kernels(isa).unite_rows;
}

}  // namespace vicinal::cpu
