// Leading singular vectors of a sparse matrix with singular values of at most 1 and a known first one: subspace
// iteration on M M' with Chebyshev filters (Zhou, Saad, Tiago and Chelikowsky 2006), for spectral_cocluster. Sums are
// added in one order whatever the threads.
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal::ops {

/// Rows of a sparse matrix.
struct SparseRows {
  std::vector<std::int64_t> offsets;  ///< [rows + 1]
  std::vector<std::int64_t> columns;
  std::vector<double> values;

  [[nodiscard]] std::int64_t rows() const noexcept { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

struct LeadingVectors {
  std::vector<double> vectors;  ///< [rows, count], of length 1, orthogonal to each other and to the first
  std::vector<double> values;   ///< [count] singular values, descending
  double residual = 0;
  std::int64_t rounds = 0;
};

/// `count` of them beside `first` [rows], which is of length 1; `across` is the transpose of `matrix`. Throws
/// `bad_data` where they do not settle.
LeadingVectors leading_vectors(const Context& ctx, const SparseRows& matrix, const SparseRows& across,
                               const std::vector<double>& first, std::int64_t count, std::uint64_t seed);

}  // namespace vicinal::ops
