// k-means from first centers to the best of the runs (contract clause 12). The backend labels rows and keeps sums; when
// to stop, what empty clusters take and which run wins is decided here, once for all backends and any number of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/kmeans.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "ops/kmeans/rank_rows.hpp"
#include "ops/kmeans/screened_plan.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::ops {

/// Labels are those of the rank's own rows; all else, which every rank gets, is of all rows. The plan is left out.
KMeans cluster(const Context& ctx, kernels::Lloyd& lloyd, const RankRows& rows, const KMeansOptions& options);

/// Gives rows of weight 0 the labels of the centers nearest to them; returns how many of them each cluster has.
std::vector<std::int64_t> label_left_out(const Context& ctx, const ClusteredRows& rows, KMeans& found);

/// The plan for the rows of one rank; of several ranks what they exchange is left out. `beside`: bytes that the
/// job takes beside these.
ScreenedPlan plan_of_rows(const Context& ctx, const TableView& table, const KMeansOptions& options,
                          std::uint64_t beside = 0);

}  // namespace vicinal::ops
