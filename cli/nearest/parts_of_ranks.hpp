// -o DIR/ of `knn` and `radius`: each rank that mpirun starts searches for its own queries, with its own rows of TABLE,
// and writes a part into the folder; the manifest comes last (docs/ranks.md). Without mpirun there is one rank.
#pragma once

#include <chrono>

#include "nearest/neighbors_output.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/parts.hpp"

namespace vicinal::cli {

/// What is searched for, without a filter.
struct SearchOfRanks {
  PartKind kind = PartKind::knn;
  KnnOptions nearest;    ///< of knn
  RadiusOptions within;  ///< of radius and count
};

/// Runs the search on all ranks. Refuses options that parts cannot follow.
void write_parts_of_ranks(const NeighborsCommand& command, const SearchOfRanks& search,
                          std::chrono::steady_clock::time_point start);

}  // namespace vicinal::cli
