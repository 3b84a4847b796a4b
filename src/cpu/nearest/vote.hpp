// The CPU's vote: neighbors' labels to queries' labels (kernels::Backend::vote).
#pragma once

#include <span>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"

namespace vicinal::cpu {

/// Fills one Vote an output, sized by the caller (codes [m], probabilities [m, classes] or empty), in parallel over
/// rows.
void cpu_vote(const Context& ctx, const kernels::VoteTask& task, std::span<Vote> result);

}  // namespace vicinal::cpu
