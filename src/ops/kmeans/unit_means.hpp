// The means of spherical k-means (contract clause 12, cosine).
#pragma once

#include <cstdint>

#include "backend/kmeans.hpp"

namespace vicinal::ops {

/// `Lloyd::means` of k clusters in d columns, brought to length one; a cluster without rows, or whose mean is all
/// zeros, keeps its center. Returns the shift. O(k d).
double unit_means(kernels::Lloyd& lloyd, std::int64_t k, std::int64_t d);

}  // namespace vicinal::ops
