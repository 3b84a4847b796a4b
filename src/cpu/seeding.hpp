// The rows' masses while first centres are drawn (contract clause 12): keys by the kernels of the search, sums in a
// tree.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels.hpp"

namespace vicinal::cpu {

/// A table that `lloyd` has read, and which assigns rows to the centres of k-means||.
std::unique_ptr<kernels::Seeding> make_seeding(const Context& ctx, const kernels::ClusterTask& task,
                                               kernels::Lloyd& lloyd, std::int64_t trials);

std::uint64_t seeding_scratch(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials);

}  // namespace vicinal::cpu
