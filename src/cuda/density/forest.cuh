// Union-find that all threads of a device join and look into at once (as cuda/graph/components.cu): every pointer leads
// to a smaller number, and only roots change, by compare-and-swap. So the root of a component is its smallest number,
// whatever the order of unions; what a thread read may be old, but an ancestor stays one. Pointers are read past the
// multiprocessor's own cache, so that what others joined is soon known.
#pragma once

#include "cuda/base/device.hpp"

namespace vicinal::cuda::dbscan {

__device__ inline unsigned root_of(unsigned* parent, unsigned x) {
  unsigned above = __ldcg(parent + x);
  while (above != x) {
    const unsigned next = __ldcg(parent + above);
    if (next == above) return above;
    parent[x] = next;
    x = next;
    above = __ldcg(parent + x);
  }
  return x;
}

/// Whether this call joined two components.
__device__ inline bool unite(unsigned* parent, unsigned x, unsigned y) {
  for (;;) {
    x = root_of(parent, x);
    y = root_of(parent, y);
    if (x == y) return false;
    if (x > y) {
      const unsigned larger = x;
      x = y;
      y = larger;
    }
    const unsigned found = atomicCAS(parent + y, y, x);
    if (found == y) return true;
    if (found == x) return false;
    y = found;
  }
}

}  // namespace vicinal::cuda::dbscan
