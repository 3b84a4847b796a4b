// The k lists of all rows of a table within itself, in its kd-tree.
#pragma once

#include <cstdint>

#include "backend/nearest.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// Whether `self_lists` may find the lists of this task, whatever its tree.
bool self_lists_may_serve(const Context& ctx, const kernels::NearestTask& task);
/// Whether it does, and is worth it. Needs the task's tree.
bool self_lists_serve(const Context& ctx, const kernels::NearestTask& task);

/// The lists that nearest_in_tree (search.hpp) finds.
void self_lists(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result);

/// Bytes that it takes at most, the tree not included.
std::uint64_t self_lists_bytes(const Context& ctx, const kernels::NearestTask& task);

}  // namespace vicinal::cpu
