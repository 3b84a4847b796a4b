// Locally linear embedding by the letter of docs/contract.md, clause 17: dense, in long double. Shares no code with the
// library.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/lle.hpp"

namespace vicinal::reference {

using Real = long double;

/// M of n rows and its eigenpairs, ascending; vectors [n, n], one a row.
struct LleProblem {
  std::int64_t n = 0;
  std::vector<Real> matrix;
  std::vector<Real> values;
  std::vector<Real> vectors;
};

/// M of the rows of a table [n, d] with neighbors ids [n, k].
std::vector<Real> lle_matrix(std::span<const double> table, std::int64_t d, std::span<const std::int64_t> ids,
                             const LleOptions& options);
/// Its eigenpairs, by Jacobi's rotations. O(n^3) a sweep.
LleProblem lle_problem(std::vector<Real> matrix);

/// Which piece of `standard` each of n rows is in, and the round in which it is placed, 0 for rows that are embedded;
/// ids [n, k].
struct LlePartition {
  std::vector<std::int64_t> piece;
  std::vector<std::int64_t> round;
};
LlePartition lle_pieces(std::span<const std::int64_t> ids, std::int64_t k);

/// Weights [k] that make a row of its neighbors.
std::vector<Real> lle_weights(std::span<const double> row, std::span<const double> neighbors, std::int64_t k, Real reg);

}  // namespace vicinal::reference
