// What searches cost on the CPU: the rates that the planner reckons with.
#pragma once

#include "backend/nearest.hpp"

namespace vicinal::cpu {

/// See kernels::Costs. `bytes`: the task's first screen is int8.
kernels::Costs costs(const Context& ctx, const kernels::NearestTask& task, bool bytes);

/// The rows that a tree touches in the time in which the screens of a task compare one query with all rows. It depends
/// on neither the number of threads nor that of queries. `bytes`: as above.
std::int64_t tree_rows_of_screens(Isa isa, const kernels::NearestTask& task, bool bytes);

/// Fused or direct, whichever is likely to take less. `packed`: the index has the rows packed for the first screen.
kernels::Choice choose(const kernels::NearestTask& task, bool can_fuse, bool packed);

}  // namespace vicinal::cpu
