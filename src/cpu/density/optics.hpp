// The order of OPTICS on the CPU (kernels::DensityBackend::optics).
#pragma once

#include <cstdint>

#include "backend/density.hpp"

namespace vicinal::cpu {

void optics(const Context& ctx, const kernels::OpticsTask& task, kernels::OpticsResult& result);
std::uint64_t optics_bytes(const Context& ctx, const kernels::OpticsTask& task);

}  // namespace vicinal::cpu
