// The CPU's exact search: distances x collector, block by block (kernels::Backend::nearest).
#pragma once

#include <cstdint>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"
#include "cpu/nearest/collector.hpp"

namespace vicinal::cpu {

void nearest(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result);

/// The same for a collector of the caller's, by methods fused and direct. `task.collect` is Collect::count, and what
/// the task says of radii is not used: the collector has the limits.
void nearest(const Context& ctx, const kernels::NearestTask& task, Collector& collector, SearchStats& stats);

/// Bytes of scratch that `nearest` takes for the task.
std::uint64_t nearest_scratch(const Context& ctx, const kernels::NearestTask& task);

}  // namespace vicinal::cpu
