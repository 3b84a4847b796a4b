// The rows' masses while k-means++ draws centres (contract clause 12): keys by the kernels of the search, sums by
// chunk.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels.hpp"

namespace vicinal::cpu {

/// A table that `make_lloyd` has read; `trials`: the most rows of an attempt.
std::unique_ptr<kernels::Seeding> make_seeding(const Context& ctx, const kernels::ClusterTask& task,
                                               std::int64_t trials);

std::uint64_t seeding_scratch(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials);

}  // namespace vicinal::cpu
