// What the clustering of a condensed tree and what is done with it later have in common (contract clause 29).
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/hdbscan.hpp"

namespace vicinal::ops {

/// All that follows from the condensed tree of `found` and the clusters that are chosen: labels, probabilities, scores,
/// sizes, persistences and exemplars.
void summarize(const Context& ctx, Hdbscan& found, const std::vector<std::uint8_t>& chosen);

/// Throws `invalid_argument` unless its condensed tree and core distances are those of n rows, and its options those of
/// a clustering of them.
void check_clustering(const Hdbscan& fitted, std::int64_t n);

/// Of a row's core distance: so many other rows are as near.
std::int64_t core_rank(const HdbscanOptions& options) noexcept;

}  // namespace vicinal::ops
