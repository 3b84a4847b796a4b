// How well clusters agree with labels that are known: for a person, and as JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/output.hpp"
#include "vicinal/metrics.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::cli {

/// Clusters and known labels of the same rows.
ClusteringScores agreement(const Context& ctx, const Labels& known, std::span<const std::int32_t> clusters,
                           std::int64_t count);

/// A table of one line.
std::string agreement_text(const ClusteringScores& scores);
Json to_json(const ClusteringScores& scores);

}  // namespace vicinal::cli
