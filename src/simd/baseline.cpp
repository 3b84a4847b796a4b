// The inner loops for what every machine of the architecture has: plain scalar code on x86-64, NEON on AArch64.
#define VICINAL_SIMD_NAMESPACE simd_baseline
#include "simd/kernels_inl.hpp"
// after it:
#include "simd/dense_inl.hpp"
#include "simd/lloyd_inl.hpp"
#include "simd/overlap_inl.hpp"
#include "simd/sparse_inl.hpp"
#include "simd/tree_inl.hpp"
#include "simd/union_inl.hpp"

namespace vicinal::cpu {

const SimdKernels& baseline_kernels() {
  static constexpr SimdKernels kTable = simd_baseline::make_kernels(Isa::baseline);
  return kTable;
}

const DenseKernels& baseline_dense_kernels() {
  static constexpr DenseKernels kTable = simd_baseline::make_dense_kernels();
  return kTable;
}

const LloydKernels& baseline_lloyd_kernels() {
  static constexpr LloydKernels kTable = simd_baseline::make_lloyd_kernels();
  return kTable;
}

const OverlapKernels& baseline_overlap_kernels() {
  static constexpr OverlapKernels kTable = simd_baseline::make_overlap_kernels();
  return kTable;
}

const SparseKernels& baseline_sparse_kernels() {
  static constexpr SparseKernels kTable = simd_baseline::make_sparse_kernels();
  return kTable;
}

const TreeKernels& baseline_tree_kernels() {
  static constexpr TreeKernels kTable = simd_baseline::make_tree_kernels();
  return kTable;
}

UniteRowsFn baseline_unite_rows() {
  return simd_baseline::unite_rows;
}

}  // namespace vicinal::cpu
