// What the classical parallel k-means tools write: NAME.cluster_centres, lines `cluster c1 ... cD`, and
// NAME.membership, lines `row cluster`, both counted from 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "vicinal/context.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::cli {

/// Writes NAME.cluster_centres and NAME.membership, where `numbers` are those of the rows if they are not 0, 1, ..;
/// values are the shortest that read back as the same float64.
void write_classical(const Context& ctx, const std::string& name, const KMeans& found,
                     std::span<const std::int64_t> numbers = {});

}  // namespace vicinal::cli
