// Where k-means starts (contract clause 12, draws).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::ops {

/// Rows that one step of k-means++ tries: 2 + floor(ln k).
std::int64_t seeding_trials(std::int64_t clusters);

/// The first centres of a run, [clusters, d]. `KMeansInit::given` reads the options' centres.
std::vector<double> initial_centres(const Context& ctx, kernels::Lloyd& lloyd, const kernels::ClusterTask& task,
                                    const KMeansOptions& options, std::int64_t run);

}  // namespace vicinal::ops
