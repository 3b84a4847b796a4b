// The CPU's exact search: distances x collector, block by block (kernels::Backend::nearest).
#pragma once

#include <cstdint>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"

namespace vicinal::cpu {

void nearest(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result);

/// Bytes of scratch that `nearest` takes for the task.
std::uint64_t nearest_scratch(const Context& ctx, const kernels::NearestTask& task);

}  // namespace vicinal::cpu
