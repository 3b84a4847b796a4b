// Where k-means starts (contract clause 12, draws).
#pragma once

#include <cstdint>
#include <vector>

#include "backend/kmeans.hpp"
#include "ops/kmeans/rank_rows.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::ops {

/// What the rows' seeding is asked for: the draws for a center of k-means++, 0 for k-means||, or kNoSeeding.
std::int64_t seeding_trials(const KMeansOptions& options);

/// The most bytes that the first centers of n x d rows take beside what the backend asks for those rows.
kernels::MemoryNeed initial_bytes(const Context& ctx, std::int64_t n, std::int64_t d, const KMeansOptions& options);

/// The first centers of a run, [clusters, d]. `KMeansInit::given` reads the options' centers.
std::vector<double> initial_centres(const Context& ctx, kernels::Lloyd& lloyd, const RankRows& rows,
                                    const KMeansOptions& options, std::int64_t run);

}  // namespace vicinal::ops
