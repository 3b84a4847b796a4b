// -o DIR/ of `knn`: each rank that mpirun starts searches for its own queries, with its own rows of TABLE, and writes a
// part into the folder; the manifest comes last (docs/ranks.md). Without mpirun there is one rank.
#pragma once

#include <chrono>

#include "nearest/neighbors_output.hpp"
#include "vicinal/knn.hpp"

namespace vicinal::cli {

/// Runs the search on all ranks; `options` has no filter. Refuses options that parts cannot follow.
void write_parts_of_ranks(const NeighborsCommand& command, const KnnOptions& options,
                          std::chrono::steady_clock::time_point start);

}  // namespace vicinal::cli
