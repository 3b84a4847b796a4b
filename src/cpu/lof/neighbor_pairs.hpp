// Distances of neighbors to each other: what ldof and the cofs are made of (contract clause 13). O(k^2 d) a row.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/nearest/wide_rows.hpp"
#include "formulas/lof/outlier.hpp"

namespace vicinal::cpu {

/// The mean distance to the neighbors over theirs to each other.
double ldof_score(const core::Neighborhood& near, const WideRows& rows);

/// What a worker needs to walk through a neighborhood.
struct ChainScratch {
  std::vector<double> nearest;  ///< of each neighbor to the chain
  std::vector<std::int64_t> left;
};
/// The chaining distance of a neighborhood's row.
double chaining_distance(const core::Neighborhood& near, const WideRows& rows, bool in_order, ChainScratch& scratch);

}  // namespace vicinal::cpu
