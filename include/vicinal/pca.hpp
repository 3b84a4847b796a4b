// pca: principal components of a table, to draw its rows on a few axes (docs/contract.md, clause 23).
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
  std::vector<double> mean;  ///< [cols] of the columns
  /// The largest magnitude of a value less its column's mean; 0 where all rows are equal.
  double scale = 0;
  /// [components, cols] of length one and orthogonal to each other, in descending order of variance; the largest
  /// element is positive. An axis of zeros where the rows leave no variance for it.
  std::vector<double> axes;
  std::vector<double> explained_variance_ratio;  ///< [components] share of the total variance; 0 where there is none
  std::int64_t iterations = 0;
  bool converged = false;  ///< the variances settled within `max_iterations`
};

/// The first principal components of a table's rows [n, d], by block power iteration on max(8, components + 6) vectors
/// and Jacobi's rotations on what they span (Halko, Martinsson and Tropp 2011). Tables of no more columns than vectors
/// are solved by the rotations alone, to rounding. With more columns the iteration ends where no share of the variance
/// changes by more than 1e-9 of the first one; components of nearly equal variance may then still be mixed.
///
/// O(n d (components + 6)) time an iteration on up to that many threads. Memory: a copy of the table as float64. The
/// same bits for every thread count and device; no result is NaN. Throws `invalid_argument` for an empty table and
/// options outside their domain; `bad_data` for NaN and infinity by row and column, and for deviations from the mean
/// that overflow; `over_memory` before work begins; `cancelled`.
VICINAL_API Pca pca(const Context& ctx, const TableView& table, const PcaOptions& options = {});

/// The coordinates [m, components] of a table's rows [m, cols] along the components: products of a row less the mean
/// with the axes, in the table's units. O(m cols components) time on all threads. The same bits for every thread count.
/// Throws `invalid_argument` for a table of another width and a model whose arrays do not fit together; `bad_data` for
/// NaN and infinity by row and column, and for a coordinate that overflows; `over_memory`; `cancelled`.
VICINAL_API std::vector<double> transform(const Context& ctx, const Pca& model, const TableView& table);

}  // namespace vicinal
