// What is found out about a table once: finiteness, center, largest deviation, duplicates.
#pragma once

#include <cstdint>

#include "backend/nearest.hpp"

namespace vicinal::cpu {

/// Fills center, largest and the groups of equal rows. Throws `bad_data` for the first value that is not finite.
void prepare(const Context& ctx, kernels::Prepared& index);

/// The most bytes `prepare` takes: at most 64 a row (hashes, then groups), a sample, and a chunk a thread.
std::uint64_t prepare_scratch(const Context& ctx, const TableView& table);

}  // namespace vicinal::cpu
