// The inner loops for AVX-512 F, BW, CD, DQ and VL (Skylake-X, Zen 4 and later).
#if defined(__x86_64__)
#define VICINAL_SIMD_NAMESPACE simd_avx512
#include "simd/kernels_inl.hpp"
// after it:
#include "simd/dense_inl.hpp"
#include "simd/lloyd_inl.hpp"
#include "simd/overlap_inl.hpp"
#include "simd/sparse_inl.hpp"
#include "simd/tree_inl.hpp"
#include "simd/union_inl.hpp"

namespace vicinal::cpu {

const SimdKernels& avx512_kernels() {
  static constexpr SimdKernels kTable = simd_avx512::make_kernels(Isa::avx512);
  return kTable;
}

const DenseKernels& avx512_dense_kernels() {
  static constexpr DenseKernels kTable = simd_avx512::make_dense_kernels();
  return kTable;
}

const LloydKernels& avx512_lloyd_kernels() {
  static constexpr LloydKernels kTable = simd_avx512::make_lloyd_kernels();
  return kTable;
}

const OverlapKernels& avx512_overlap_kernels() {
  static constexpr OverlapKernels kTable = simd_avx512::make_overlap_kernels();
  return kTable;
}

const SparseKernels& avx512_sparse_kernels() {
  static constexpr SparseKernels kTable = simd_avx512::make_sparse_kernels();
  return kTable;
}

const TreeKernels& avx512_tree_kernels() {
  static constexpr TreeKernels kTable = simd_avx512::make_tree_kernels();
  return kTable;
}

UniteRowsFn avx512_unite_rows() {
  return simd_avx512::unite_rows;
}

}  // namespace vicinal::cpu
#endif
