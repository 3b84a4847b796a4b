// The papers' searches on the CPU, as plain code (docs/papers.md): what they all are is a method of making distances
// and a method of selecting the k least. Same contract and same answers as every other method (clauses 1 to 5).
#pragma once

#include <cstdint>

#include "backend/nearest.hpp"

namespace vicinal::cpu {

/// Products serve what is an inner product in disguise; the other methods serve every metric.
bool paper_serves(Method method, Metric metric, std::int64_t d);

/// k lists, of a table in memory. O(m n d) time.
void nearest_by_paper(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result);

/// Bytes of scratch: the table's rows made ready, and a few rows of n for each worker; never m x n.
std::uint64_t nearest_by_paper_scratch(const Context& ctx, const kernels::NearestTask& task);

}  // namespace vicinal::cpu
