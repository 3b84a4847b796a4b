// Every table of inner loops of one instruction set. A new table is a member here, its source an include in
// all_inl.hpp.
#pragma once

#include "simd/barycentre_kernels.hpp"
#include "simd/dense_kernels.hpp"
#include "simd/donor_kernels.hpp"
#include "simd/kernels.hpp"
#include "simd/lloyd_kernels.hpp"
#include "simd/overlap_kernels.hpp"
#include "simd/sparse_kernels.hpp"
#include "simd/tall_kernels.hpp"
#include "simd/tree_kernels.hpp"
#include "simd/union_kernels.hpp"

namespace vicinal::cpu {

struct AllKernels {
  SimdKernels search;
  BarycentresFn barycentres;
  DenseKernels dense;
  NearDonorsFn near_donors;
  LloydKernels lloyd;
  OverlapKernels overlap;
  SparseKernels sparse;
  TallKernels tall;
  TreeKernels tree;
  UniteRowsFn unite_rows;
};

const AllKernels& baseline_kernels();
const AllKernels& avx2_kernels();
const AllKernels& avx512_kernels();

}  // namespace vicinal::cpu
