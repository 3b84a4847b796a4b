// spectral_cocluster: divides the members of both sides of a bipartite graph into clusters, by singular vectors of the
// normalized relation matrix (docs/contract.md, clause 16).
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/cocluster.hpp"

namespace vicinal {

struct SpectralOptions {
  std::int64_t clusters = 3;  ///< 2 <= clusters <= the smaller of n_a and n_b
  std::uint64_t seed = 0;     ///< for the initial vectors and for k-means
  std::int64_t runs = 10;     ///< runs of k-means; the best one is returned
};

/// Clusters of the members, and the singular vectors' quality.
struct SpectralCocluster {
  std::int64_t clusters = 0;
  std::vector<std::int32_t> labels_a;   ///< [n_a] in [0, clusters)
  std::vector<std::int32_t> labels_b;   ///< [n_b]
  std::vector<double> singular_values;  ///< [1 + ceil(log2 clusters)], descending; the first is 1
  double residual = 0;                  ///< the largest |M M' u - s s u| over the vectors u of length 1
  std::int64_t rounds = 0;              ///< rounds of the iteration that computed the vectors
};

/// The method of Dhillon 2001, as in scikit-learn's SpectralCoclustering. Let A be the matrix of weights, D_a and D_b
/// its row and column sums, and M = D_a^-1/2 A D_b^-1/2. The leading 1 + ceil(log2 clusters) singular vectors of M
/// without the first, divided by the roots of the sums, are the columns of a table with a row for each member; k-means
/// clusters these rows. Members without weight have a row of zeros. Vectors are computed by subspace iteration with
/// Chebyshev filters (Zhou et al. 2006), to a residual of 1e-10; for equal singular values they are one of many bases.
///
/// Runs on the host for every context; the same bits for every thread count. O(edges log clusters) time per round;
/// O(edges + members log clusters) memory. Throws `invalid_argument` for clusters or runs outside their domain,
/// `bad_data` as `cocluster` does, for weights that are all 0 or whose sums overflow, and if the vectors do not
/// converge; `over_memory`, `cancelled`.
VICINAL_API SpectralCocluster spectral_cocluster(const Context& ctx, const BipartiteEdges& edges,
                                                 const SpectralOptions& options = {});

}  // namespace vicinal
