// Outlier scores of neighborhoods on the CPU (contract clause 13).
#pragma once

#include "backend/lof.hpp"

namespace vicinal::cpu {

void lof(const Context& ctx, const kernels::LofTask& task, kernels::LofResult& result);
/// Bytes it takes beyond the result.
std::uint64_t lof_scratch(const Context& ctx, const kernels::LofTask& task);

}  // namespace vicinal::cpu
