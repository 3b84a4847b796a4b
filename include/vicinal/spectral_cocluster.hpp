// spectral_cocluster: members of both sides of a bipartite graph in k clusters, by the singular vectors of its
// normalised relation matrix (docs/contract.md, clause 16).
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/cocluster.hpp"

namespace vicinal {

struct SpectralOptions {
  std::int64_t clusters = 3;  ///< 2 <= clusters <= the smaller of n_a and n_b
  std::uint64_t seed = 0;     ///< of the first vectors and of k-means
  std::int64_t runs = 10;     ///< of k-means, of which the best counts
};

/// Clusters of members by their place in the space of the leading singular vectors.
struct SpectralCocluster {
  std::int64_t clusters = 0;
  std::vector<std::int32_t> labels_a;   ///< [n_a] in [0, clusters)
  std::vector<std::int32_t> labels_b;   ///< [n_b]
  std::vector<double> singular_values;  ///< [1 + ceil(log2 clusters)], descending, but for the first, which is 1
  double residual = 0;                  ///< the largest |M M' u - s s u| of a vector, which is of length 1
  std::int64_t rounds = 0;              ///< of the iteration that found the vectors
};

/// Dhillon 2001, as scikit-learn's SpectralCoclustering: of M = D_a^-1/2 A D_b^-1/2, A being the weights and D its row
/// and column sums, the leading 1 + ceil(log2 clusters) singular vectors but the first, divided by the roots of the
/// sums, are columns of a table with a row for each member, which k-means clusters. Members without weight lie at 0.
/// Vectors are found by subspace iteration with Chebyshev filters (Zhou et al. 2006), to a residual of 1e-10; those of
/// equal singular values are any basis. On the host, whatever the context; the same bits for every thread count.
/// O(edges log clusters) a round; O(edges + members log clusters) memory. Throws `invalid_argument` for clusters or
/// runs outside their domain, `bad_data` as `cocluster`, for weights that are all 0 or whose sums overflow, and where
/// the vectors do not settle; `over_memory`.
VICINAL_API SpectralCocluster spectral_cocluster(const Context& ctx, const BipartiteEdges& edges,
                                                 const SpectralOptions& options = {});

}  // namespace vicinal
