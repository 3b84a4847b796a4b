// Keys in a tree on the device: of a row, and of the box of a unit (tree.hpp says why the latter bounds the former).
#pragma once

#include "core/distance.hpp"
#include "cuda/base/metric_ops.cuh"
#include "cuda/nearest/tree/tree.hpp"

namespace vicinal::cuda {

/// The contract's key of d differences.
template <class Op, class Difference>
__device__ __forceinline__ double key_of(int d, double p, Difference difference) {
  double a[core::kLanes] = {};
  for (int j = 0; j < d; j += 8) {
    double t[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      if (j + u < d) t[u] = difference(j + u);
    }
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      if (j + u < d) Op::add(a[u], t[u], p);
    }
  }
  return join_lanes<Op>(a);
}

/// The key of the box that begins at `box` ([d][2][32]): of the gaps to it.
template <class Op, class Value>
__device__ __forceinline__ double box_key(const double* x, const Value* box, int d, double p) {
  return key_of<Op>(d, p, [&](int j) {
    const double below = static_cast<double>(box[j * kBoxValues]) - x[j];
    const double above = x[j] - static_cast<double>(box[j * kBoxValues + kTreeWidth]);
    const double gap = below > above ? below : above;
    return gap > 0 ? gap : 0.0;
  });
}

/// Calls body(Op, value of the tree's type).
template <class Body>
void with_op_and_value(Metric metric, bool narrow, Body body) {
  with_metric<BoxOps>(metric, [&](auto op) {
    if (narrow) return body(op, float{});
    body(op, double{});
  });
}

}  // namespace vicinal::cuda
