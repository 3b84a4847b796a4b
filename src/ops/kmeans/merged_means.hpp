// The means of clusters from the integers of all shards (contract clause 12, shards).
#pragma once

#include <cstdint>
#include <span>

#include "backend/cluster_parts.hpp"
#include "vicinal/context.hpp"

namespace vicinal::ops {

/// Replaces the centers [k, d] of clusters that have rows by their means, from `parts` [k, grid.cluster_size()], which
/// are used up. Returns the shift: the keys of the centers before and after, added in ascending order of the clusters.
double merged_means(const Context& ctx, const kernels::SumGrid& grid, std::span<std::int64_t> parts,
                    std::span<double> centres);

}  // namespace vicinal::ops
