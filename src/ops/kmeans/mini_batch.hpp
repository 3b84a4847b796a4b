// k-means by mini-batches (contract clause 12): few rows at a time, drawn anew, each a small table to the backend.
// After Sculley, "Web-Scale K-Means Clustering" (2010), with scikit-learn's end.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/kmeans.hpp"
#include "ops/kmeans/checkpoint.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::ops {

struct Batches {
  std::vector<double> centres;  ///< [k, d]
  std::int64_t iterations = 0;
  KMeansStop stopped = KMeansStop::max_iterations;
  std::vector<double> history;  ///< inertia of each batch, where it is asked for
};

/// From the centers [k, d] of a state, which the states that are given follow; `table` gives the rows of `task`.
/// O(b k d) an iteration, b = options.batch_size.
Batches run_batches(const Context& ctx, const kernels::Lloyd& table, const kernels::ClusterTask& task,
                    const KMeansOptions& options, KMeansCheckpoint& state, Checkpoints& checkpoints);

/// The most bytes that this takes beside the table's; nothing for a batch_size of 0.
kernels::MemoryNeed batch_bytes(const Context& ctx, std::int64_t d, const KMeansOptions& options);

}  // namespace vicinal::ops
