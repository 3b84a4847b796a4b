// The tables of all_kernels.hpp of the instruction set VICINAL_SIMD_NAMESPACE; included by one translation unit each.

#include "simd/all_kernels.hpp"
#include "simd/kernels_inl.hpp"
// after it:
#include "simd/barycentre_inl.hpp"
#include "simd/dense_inl.hpp"
#include "simd/donor_inl.hpp"
#include "simd/lloyd_inl.hpp"
#include "simd/overlap_inl.hpp"
#include "simd/sparse_inl.hpp"
#include "simd/tall_inl.hpp"
#include "simd/tree_inl.hpp"
#include "simd/union_inl.hpp"

namespace vicinal::cpu::VICINAL_SIMD_NAMESPACE {

constexpr AllKernels make_all_kernels(Isa isa) {
  return {
      make_kernels(isa),      barycentre::of_rows,   make_dense_kernels(), near_donors,         make_lloyd_kernels(),
      make_overlap_kernels(), make_sparse_kernels(), make_tall_kernels(),  make_tree_kernels(), unite_rows};
}

}  // namespace vicinal::cpu::VICINAL_SIMD_NAMESPACE
