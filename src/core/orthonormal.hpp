// Vectors made orthonormal by Gram and Schmidt, for subspace iterations.
#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal::core {

using DenseVectors = std::vector<std::vector<double>>;

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Gram and Schmidt, twice, so that what the first pass leaves of the others goes too. Vectors that vanish become zero.
/// Returns how many stand before the first of these.
inline std::size_t make_orthonormal(const Context& ctx, DenseVectors& vectors) {
  constexpr double kVanished = 1e-12;
  std::size_t first_zero = vectors.size();
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    ctx.check_cancelled();
    const double before = std::sqrt(dot(vectors[i], vectors[i]));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < i; ++j) {
        const double along = dot(vectors[i], vectors[j]);
        for (std::size_t c = 0; c < vectors[i].size(); ++c) vectors[i][c] -= along * vectors[j][c];
      }
    }
    const double length = std::sqrt(dot(vectors[i], vectors[i]));
    const bool stays = length > kVanished * before;
    if (!stays && first_zero == vectors.size()) first_zero = i;
    for (double& value : vectors[i]) value = stays ? value / length : 0;
  }
  return first_zero;
}

}  // namespace vicinal::core
