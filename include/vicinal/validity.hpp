// validity: how well clusters with noise fit the densities of a table (docs/density.md; docs/contract.md, clause 21).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

struct ValidityOptions {
  Metric metric = Metric::euclidean;  ///< any but inner_product
  double p = 2;                       ///< exponent of minkowski
};

/// Density-based validity (DBCV, Moulavi et al. 2014). A cluster is valid if the sparsest place within it is denser
/// than the densest place between it and any other cluster.
struct Validity {
  /// In [-1, 1]: the mean validity of rows, noise being 0. Missing unless at least two clusters have two rows or more.
  std::optional<double> index;
  std::vector<double> clusters;     ///< [clusters] in [-1, 1]; 0 of a cluster with fewer than two rows
  std::vector<std::int64_t> sizes;  ///< [clusters] rows
  std::vector<double> sparseness;   ///< [clusters] the longest edge within each; 0 of fewer than two rows
  std::vector<double> separations;  ///< [clusters] distance to the nearest other cluster; infinity if there is no other
};

/// The validity of clusters of a table's rows [n, d]. `labels`: [n], -1 for noise, else from 0 to n - 1, such as those
/// of `dbscan`, `hdbscan` and `optics`; there are as many clusters as the largest label says, some of which may be
/// empty. A cluster of one row counts as noise. Another order of the rows changes no more than last bits where no two
/// distances are equal.
///
/// O(n^2 d) time, on all threads; of a large table take a sample first (`sample_rows`). Memory O(n d), and 8 n bytes
/// for each thread. The same bits for every thread count and instruction set; no result is NaN. Runs on the host,
/// whatever the context's device. Reports progress as "validity". Throws `invalid_argument` for Metric::inner_product,
/// an exponent that is not finite and at least 1, an empty table, one in blocks or in device memory, labels that are
/// not as many as its rows or outside their domain; `bad_data` for NaN and infinity by row and column, and where
/// distances overflow; `over_memory` before work begins; `cancelled`.
VICINAL_API Validity validity(const Context& ctx, const TableView& table, std::span<const std::int64_t> labels,
                              const ValidityOptions& options = {});
/// Bytes that `validity` takes for a table of this shape, whose values it does not read.
VICINAL_API std::uint64_t validity_bytes(const Context& ctx, const TableView& table);

}  // namespace vicinal
