// Locally linear embedding behind a search: weights, components, ordering, eigenvectors, count (contract clause 17).
#pragma once

#include <cstdint>

#include "backend/lle.hpp"
#include "vicinal/lle.hpp"

namespace vicinal::ops {

/// Fills embedding, piece, pieces, eigenvalue_sum, largest_weight and seconds, adds to `plan`.
void embed(const Context& ctx, kernels::LleTask task, Lle& result);

/// Bytes of host memory for the neighbors' rows, before a solver is known.
std::uint64_t embed_bytes(const Context& ctx, std::int64_t n, std::int64_t d, const LleOptions& options);

}  // namespace vicinal::ops
