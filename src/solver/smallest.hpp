// The least singular values of A and their vectors, the constant vector left out (contract clause 17): by inverse
// iteration with a factor of M, or all of them by a dense decomposition. Values come from A itself, by Rayleigh-Ritz on
// A V, so that small ones are resolved as singular values and not as their squares.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/factor.hpp"
#include "solver/rows.hpp"
#include "solver/space.hpp"
#include "solver/tall.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

struct Smallest {
  Vectors vectors;                ///< [n, wanted] orthonormal, by ascending values
  std::vector<double> values;     ///< [wanted] singular values
  std::vector<double> angles;     ///< [wanted] estimated sine of the angle to what the iteration would converge to
  std::vector<double> residuals;  ///< [wanted] lengths of M v - s^2 v; of `inverse_iteration`, as the norm
  double norm = 0;                ///< at least M\'s
  double next = 0;                ///< the next value, an upper bound; 0 where there is none
  std::int64_t iterations = 0;
  bool converged = false;
};

/// Bytes beside A and its factor.
std::uint64_t inverse_iteration_bytes(const LocalRows& a, std::int64_t wanted);

/// Each step adds the factor's answer to the gradient, M V - V S^2, to the space and takes the best vectors of it
/// (Knyazev's preconditioned iteration, which for an exact factor is block inverse iteration or better). The factor's
/// rounding slows convergence, and does not show in what is converged to.
Smallest inverse_iteration(const Context& ctx, const LocalRows& a, const Incidence& in, const Factor& factor,
                           std::int64_t wanted);
/// With so many vectors beside those that are wanted.
Smallest inverse_iteration(const Context& ctx, Space& space, std::int64_t wanted, std::int64_t guards);

std::uint64_t dense_bytes(const LocalRows& a);
/// Householder's triangle of A on the complement of the constant vector, and its singular values. O(rows n^2).
Smallest dense(const Context& ctx, const LocalRows& a, std::int64_t wanted);

/// Lengths of M v - s^2 v, one a column.
std::vector<double> residuals(const Context& ctx, const LocalRows& a, const Incidence& in, const Smallest& found);

}  // namespace vicinal::solver
