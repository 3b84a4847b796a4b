// The minimum spanning tree of a table's rows on the CPU (kernels::DensityBackend::spanning_tree).
#pragma once

#include <cstdint>

#include "backend/density.hpp"

namespace vicinal::cpu {

void spanning_tree(const Context& ctx, const kernels::SpanningTask& task, kernels::SpanningResult& result);
std::uint64_t spanning_tree_bytes(const Context& ctx, const kernels::SpanningTask& task);

}  // namespace vicinal::cpu
