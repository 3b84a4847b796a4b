// pca: principal components of a table, for drawing its rows on a few axes (docs/contract.md, clause 23).
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

struct PcaOptions {
  std::int64_t components = 2;       ///< 1 <= components <= columns
  std::int64_t max_iterations = 60;  ///< at least 1
};

/// The directions of largest variance.
struct Pca {
  std::int64_t cols = 0;
  std::int64_t components = 0;
  std::vector<double> mean;  ///< [cols] mean of each column
  /// The largest magnitude of a value minus its column's mean; 0 if all rows are equal.
  double scale = 0;
  /// [components, cols] of length one and orthogonal to each other, in descending order of variance; the largest
  /// element is positive. An axis is all 0 if the rows have no variance for it.
  std::vector<double> axes;
  std::vector<double>
      explained_variance_ratio;  ///< [components] fraction of the total variance; 0 if there is no variance
  std::int64_t iterations = 0;
  bool converged = false;  ///< the variances converged within `max_iterations`
};

/// The first principal components of a table's rows [n, d], by block power iteration on max(8, components + 6) vectors
/// and Jacobi's rotations in the space of these vectors (Halko, Martinsson and Tropp 2011). Tables with at most that
/// many columns are solved by the rotations alone, exact to rounding. With more columns the iteration ends if no
/// component's variance changes by more than 1e-9 of the first one; components of nearly equal variance may then still
/// be mixed.
///
/// O(n d (components + 6)) time per iteration, on up to components + 6 threads. Memory: a copy of the table as float64.
/// The same bits for every thread count and device; no result is NaN. Throws `invalid_argument` for an empty table and
/// options outside their domain; `bad_data` for NaN and infinity by row and column, and for deviations from the mean
/// that overflow; `over_memory` before work begins; `cancelled`.
VICINAL_API Pca pca(const Context& ctx, const TableView& table, const PcaOptions& options = {});

/// The coordinates [m, components] of a table's rows [m, cols] along the components: the products of (row - mean) with
/// the axes, in the table's units. O(m cols components) time on all threads. The same bits for every thread count.
/// Throws `invalid_argument` for a table of another width and a model whose arrays do not fit together; `bad_data` for
/// NaN and infinity by row and column, and for a coordinate that overflows; `over_memory`; `cancelled`.
VICINAL_API std::vector<double> transform(const Context& ctx, const Pca& model, const TableView& table);

}  // namespace vicinal
