// The least singular values of A and their vectors by products with M = A'A alone (contract clause 17): Krylov spaces,
// restarted. For data whose factor would be too large: of high dimension, where M is well conditioned.
//   arnoldi  one vector at a time, as Li, Yan and Zhang 2021 have it: product, orthogonalization, normalization. Of
//            values that are equal it may find fewer than there are.
//   lanczos  a block at a time, of a Chebyshev polynomial of M that damps what is not wanted (Zhou and Saad 2007).
// Both orthogonalize against the whole basis twice, start again from their best vectors where the basis is full (thick
// restart, Wu and Simon 2000), and take values from A V. Cost: steps * (entries of A + n * columns / degree), with
// some sqrt(largest / least eigenvalue) steps.
#pragma once

#include <cstdint>

#include "solver/operator.hpp"
#include "solver/rows.hpp"
#include "solver/smallest.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

struct KrylovOptions {
  std::int64_t wanted = 2;
  bool filtered = true;        ///< lanczos; else arnoldi
  std::int64_t max_steps = 0;  ///< products of M with a block: never exceeded
};

/// Columns of a block and how many blocks a space of n points should have.
struct KrylovShape {
  std::int64_t block = 1;
  std::int64_t blocks = 1;
};
KrylovShape krylov_shape(std::int64_t points, const KrylovOptions& options);
/// Bytes on the host beside A and the space.
std::uint64_t krylov_bytes(const LocalRows& a, const KrylovShape& shape, const KrylovOptions& options);

struct KrylovResult {
  Smallest smallest;    ///< `iterations`: products of M with a block
  double asked = 0;     ///< of `bound`, too
  double residual = 1;  ///< the largest of those wanted when they were last examined, of `bound`
  double bound = 0;     ///< of M's largest eigenvalue
  std::int64_t restarts = 0;
  bool out_of_steps = false;  ///< that, and nothing else, ended it
};

/// `space` has the shape of `krylov_shape`. Where `smallest.converged` is false the steps were too few.
KrylovResult krylov(const Context& ctx, const LocalRows& a, const Incidence& in, KrylovSpace& space,
                    const KrylovOptions& options);

}  // namespace vicinal::solver
