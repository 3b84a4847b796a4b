// The inner loops for AVX2 with FMA (Haswell, Zen and later).
#if defined(__x86_64__)
#define VICINAL_SIMD_NAMESPACE simd_avx2
#include "simd/kernels_inl.hpp"
// after it:
#include "simd/dense_inl.hpp"
#include "simd/lloyd_inl.hpp"
#include "simd/overlap_inl.hpp"
#include "simd/sparse_inl.hpp"
#include "simd/tree_inl.hpp"
#include "simd/union_inl.hpp"

namespace vicinal::cpu {

const SimdKernels& avx2_kernels() {
  static constexpr SimdKernels kTable = simd_avx2::make_kernels(Isa::avx2);
  return kTable;
}

const DenseKernels& avx2_dense_kernels() {
  static constexpr DenseKernels kTable = simd_avx2::make_dense_kernels();
  return kTable;
}

const LloydKernels& avx2_lloyd_kernels() {
  static constexpr LloydKernels kTable = simd_avx2::make_lloyd_kernels();
  return kTable;
}

const OverlapKernels& avx2_overlap_kernels() {
  static constexpr OverlapKernels kTable = simd_avx2::make_overlap_kernels();
  return kTable;
}

const SparseKernels& avx2_sparse_kernels() {
  static constexpr SparseKernels kTable = simd_avx2::make_sparse_kernels();
  return kTable;
}

const TreeKernels& avx2_tree_kernels() {
  static constexpr TreeKernels kTable = simd_avx2::make_tree_kernels();
  return kTable;
}

UniteRowsFn avx2_unite_rows() {
  return simd_avx2::unite_rows;
}

}  // namespace vicinal::cpu
#endif
