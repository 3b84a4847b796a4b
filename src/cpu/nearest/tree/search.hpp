// The search in a kd-tree: Method::kdtree of kernels::Backend::nearest.
#pragma once

#include <cstdint>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"

namespace vicinal::cpu {

/// True for the metrics whose keys grow with every |x_j - y_j|, which boxes can bound (cpu/nearest/tree/tree.hpp).
bool tree_serves(Metric metric);

void nearest_in_tree(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result);

/// Bytes of scratch that `nearest_in_tree` takes, the tree not included.
std::uint64_t nearest_in_tree_scratch(const Context& ctx, const kernels::NearestTask& task);

}  // namespace vicinal::cpu
