// The order of a spanning tree's edges.
#pragma once

#include <vector>

#include "backend/density.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// Sorts by (key, smaller row, larger row). Takes 32 bytes an edge, which is less than
/// what the searches before it have given back. O(n) where keys differ in their upper halves.
void sort_edges(const Context& ctx, std::vector<kernels::TreeEdge>& edges);

}  // namespace vicinal::cpu
