// The CPU's exact search: distances x collector, block by block (kernels::Backend::nearest).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"
#include "cpu/nearest/collector.hpp"

namespace vicinal::cpu {

void nearest(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result);

/// The same for a collector of the caller's, by methods fused and direct. `task.collect` is Collect::count, and what
/// the task says of radii is not used: the collector has the limits.
void nearest(const Context& ctx, const kernels::NearestTask& task, Collector& collector, SearchStats& stats);

/// The same again and again (kernels::NearestBackend::repeat), by methods fused and direct.
std::unique_ptr<kernels::RepeatedSearch> repeated_search(const Context& ctx, const kernels::NearestTask& task);

/// Throws `bad_data` for a query with a number that is not finite.
[[noreturn]] void refuse_query(std::int64_t row, std::int64_t col);

/// What the task's screens may keep in the index (kernels::NearestBackend::packed_needs), and packing for those that
/// do.
std::vector<kernels::PackedNeed> packed_needs(const Context& ctx, const kernels::NearestTask& task);
void pack_rows(const Context& ctx, const kernels::NearestTask& task);

/// Bytes of scratch that `nearest` takes for the task, without what it keeps in the index.
std::uint64_t nearest_scratch(const Context& ctx, const kernels::NearestTask& task);

}  // namespace vicinal::cpu
