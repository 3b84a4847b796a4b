// Distances of neighbors to each other on the device: what ldof and the cofs are made of (contract clause 13).
#pragma once

#include "cuda/nearest/wide_rows.hpp"
#include "formulas/lof/outlier.hpp"

namespace vicinal::cuda::lof {

/// scores[row] of ldof. Throws `bad_data` naming two rows whose distance overflows; so does `find_chains`.
void find_ldof(const Engine& engine, const core::Neighborhoods& near, const WideRows& rows, double* scores);
/// chains[row]: chaining distances.
void find_chains(const Engine& engine, const core::Neighborhoods& near, const WideRows& rows, bool in_order,
                 double* chains);
/// Bytes the two take besides.
std::uint64_t pair_bytes(const Engine& engine, std::int64_t k);

}  // namespace vicinal::cuda::lof
