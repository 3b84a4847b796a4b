// How far an embedding can be trusted, by the letter of docs/contract.md, clause 17: every pair of rows, sorted. Shares
// no code with the library.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/lle_quality.hpp"

namespace vicinal::reference {

struct EmbeddingQuality {
  std::vector<std::int64_t> rows;
  double trustworthiness = 0;
  double continuity = 0;
  std::vector<double> conditions;
};

/// Of a table [n, d]; `judged` as in LleQualityOptions. O(n^2 (d + log n)).
EmbeddingQuality embedding_quality(std::span<const double> table, std::int64_t d, const Lle& fitted, std::int64_t k,
                                   std::int64_t judged);

/// Of parameters [n, c], in long double: the affine map by normal equations.
LleParameterFit parameter_fit(std::span<const double> parameters, std::int64_t c, const Lle& fitted);

}  // namespace vicinal::reference
