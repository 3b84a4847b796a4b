// Tall matrices of few columns: products, Householder triangles by fixed parts, orthonormal bases, and the small dense
// singular value problem they end in. All sums go over fixed parts in order, so that every thread count gives the same
// bits (contract clause 4).
#pragma once

#include <cstdint>
#include <vector>

#include "solver/rows.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

/// A small dense matrix, row-major.
struct Small {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> values;

  Small() = default;
  Small(std::int64_t m, std::int64_t n) : rows(m), cols(n), values(static_cast<std::size_t>(m * n), 0.0) {}
  double& operator()(std::int64_t i, std::int64_t j) noexcept { return values[i * cols + j]; }
  double operator()(std::int64_t i, std::int64_t j) const noexcept { return values[i * cols + j]; }
};

/// x'y, [x.width, y.width].
Small inner(const Context& ctx, const Vectors& x, const Vectors& y);
/// y -= x c.
void subtract_product(const Context& ctx, const Vectors& x, const Small& c, Vectors& y);
/// x c.
Vectors product(const Context& ctx, const Vectors& x, const Small& c);
/// y = x c.
void product(const Context& ctx, const Vectors& x, const Small& c, Vectors& y);
/// x becomes x c; in place where c is square.
void multiply(const Context& ctx, Vectors& x, const Small& c);
/// Takes the mean out of every column, twice: what is left is orthogonal to the constant vector.
void remove_means(const Context& ctx, Vectors& x);
/// R of x = QR, with a diagonal that is not negative.
Small triangle_of(const Context& ctx, const Vectors& x);
/// R of A x = QR; A x is not stored.
Small triangle_of(const Context& ctx, const LocalRows& a, const Vectors& x);
/// What vectors of triangle r are to be multiplied by: to become orthonormal, or, where some depend on those before (to
/// 1e-12 of their length), to lose them. `whole`: none does.
Small orthonormal_change(const Small& r, bool& whole);
/// Makes the columns of x orthonormal, twice; columns that depend on those before (to 1e-12 of their length) are
/// dropped, so that x may come back narrower. Columns are first brought to length one.
void orthonormalize(const Context& ctx, Vectors& x);

/// Rotates `count` columns, each `length` numbers side by side, until they are orthogonal to each other, and `also`
/// [count, also_length] (or null) with them: one-sided Jacobi rotations (Demmel and Veselic 1992), which resolve small
/// lengths relative to themselves where the columns are graded. O(length count^2) a sweep, some six to ten sweeps, of
/// many columns by all threads.
struct Columns {
  double* values;
  std::int64_t length;
  std::int64_t count;
  double* also = nullptr;
  std::int64_t also_length = 0;
};
void make_orthogonal(const Context& ctx, const Columns& columns);

struct SingularValues {
  std::vector<double> values;  ///< [cols] ascending
  Small right;                 ///< [cols, cols] the vectors, column by column in that order
};
/// Of a matrix of no fewer rows than columns, by `make_orthogonal`.
SingularValues singular_values(const Context& ctx, Small matrix);

/// Householder triangle of a dense matrix [rows >= cols], in place of its values. With `ctx` it polls the cancel token
/// for each column of each strip of rows: for matrices that take longer than 100 ms.
Small triangle_of(Small matrix, const Context* ctx = nullptr);

}  // namespace vicinal::solver
