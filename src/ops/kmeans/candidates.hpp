// The candidates of k-means|| (contract clause 12, draws): rows drawn many at a time, and what each of them wins. After
// Bahmani, Moseley, Vattani, Kumar and Vassilvitskii, "Scalable K-Means++" (2012), with 2 k draws a round.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/kmeans.hpp"
#include "ops/kmeans/draws.hpp"
#include "ops/kmeans/rank_rows.hpp"

namespace vicinal::ops {

struct Candidates {
  std::vector<std::int64_t> rows;  ///< in the order in which they were drawn
  std::vector<double> weights;     ///< of the rows that are nearest to each; above 0
};

/// O(n l d) for l candidates, by assignments to at most `task.clusters` of them at a time.
Candidates draw_candidates(const Context& ctx, kernels::Lloyd& lloyd, const RankRows& rows, Draws& draws);

/// As many candidates as k clusters usually have, and the bytes that drawing them from n rows takes.
std::int64_t usual_candidates(std::int64_t n, std::int64_t k);
std::uint64_t candidate_bytes(std::int64_t n, std::int64_t k);

}  // namespace vicinal::ops
