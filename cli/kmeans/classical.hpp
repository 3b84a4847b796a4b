// What the classical parallel k-means tools write: NAME.cluster_centres, lines `cluster c1 ... cD`, and
// NAME.membership, lines `row cluster`, both counted from 0.
#pragma once

#include <string>

#include "vicinal/context.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::cli {

/// Writes NAME.cluster_centres and NAME.membership; numbers are the shortest that read back as the same float64.
void write_classical(const Context& ctx, const std::string& name, const KMeans& found);

}  // namespace vicinal::cli
