// The solver's parts: a factor solves its matrix, and its signs count eigenvalues; singular values and bases are those
// of matrices made to be hard.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "solver/factor.hpp"
#include "solver/smallest.hpp"
#include "solver/tall.hpp"
#include "solver_data.hpp"

namespace vicinal::solver {
namespace {

TEST(Factor, solves_what_it_was_made_of) {
  for (const Point side : {3, 8, 40, 71}) {
    for (const Isa isa : {Isa::baseline, Isa::automatic}) {
      for (const int count : {1, 3}) {
        const Context ctx = threads(count, isa);
        const Ordered made = ordered(ctx, grid(side, side == 40), side);
        // Shifted down by one: definite and well conditioned, so that the residual is a matter of roundings.
        const Factor factor(ctx, made.a, made.in, made.symbolic, {-1, 0.5});
        EXPECT_EQ(factor.negative(), 0);
        const std::int64_t n = made.a.points;
        Vectors x(n, 8);
        for (std::int64_t i = 0; i < n * 8; ++i) x.values[i] = draw(3, static_cast<std::uint64_t>(i)) - 0.5;
        Vectors solved(n, 8);
        std::copy_n(x.values.data(), n * 8, solved.values.data());
        factor.solve(ctx, solved);
        Vectors rows(made.a.rows(), 8);
        Vectors back(n, 8);
        apply(ctx, made.a, solved, rows);
        apply_transposed(ctx, made.a, made.in, rows, back);
        for (std::int64_t i = 0; i < n; ++i) {
          for (std::int64_t c = 0; c < 8; ++c) {
            const double own = solved.row(i)[c] * (1 + (i + 1 == n ? 0.5 : 0));
            EXPECT_TRUE(std::abs(back.row(i)[c] + own - x.row(i)[c]) <= 1e-12) << side << ", row " << i;
          }
        }
      }
    }
  }
}

TEST(Factor, counts_eigenvalues_below_the_shift) {
  const Context ctx = threads(2);
  const Ordered made = ordered(ctx, grid(12), 12);
  const Smallest all = dense(ctx, made.a, 143);
  for (const std::int64_t below : {1, 5, 40, 100}) {
    const double low = all.values[below - 1] * all.values[below - 1];
    const double high = all.values[below] * all.values[below];
    const Factor factor(ctx, made.a, made.in, made.symbolic, {(low + high) / 2, 0});
    EXPECT_EQ(factor.negative(), below + 1);  // with the constant vector's 0
  }
}

TEST(InverseIteration, finds_what_the_dense_way_finds) {
  const Context ctx = threads(2);
  const Ordered made = ordered(ctx, grid(13), 13);
  const Factor factor(ctx, made.a, made.in, made.symbolic, {0, 1});
  const Smallest found = inverse_iteration(ctx, made.a, made.in, factor, 5);
  const Smallest truth = dense(ctx, made.a, 5);
  ASSERT_TRUE(found.converged);
  for (int c = 0; c < 5; ++c) EXPECT_TRUE(std::abs(found.values[c] - truth.values[c]) <= 1e-12) << c;
}

TEST(SingularValues, of_a_graded_matrix_are_right_relative_to_themselves) {
  // Columns of a rotation, scaled by powers of two over 30 orders of magnitude.
  const double c = 0.6;
  const double s = 0.8;
  Small m(2, 2);
  m(0, 0) = c * 0x1p-100;
  m(1, 0) = s * 0x1p-100;
  m(0, 1) = -s;
  m(1, 1) = c;
  const SingularValues found = singular_values(threads(1), m);
  EXPECT_TRUE(std::abs(found.values[0] / 0x1p-100 - 1) <= 1e-14);
  EXPECT_TRUE(std::abs(found.values[1] - 1) <= 1e-14);
}

TEST(Orthonormalize, drops_what_depends_on_what_came_before) {
  Vectors x(5000, 4);
  for (std::int64_t i = 0; i < 5000; ++i) {
    x.row(i)[0] = draw(1, static_cast<std::uint64_t>(i));
    x.row(i)[1] = 1e-9 * x.row(i)[0] + 1e-8 * draw(2, static_cast<std::uint64_t>(i));
    x.row(i)[2] = 3 * x.row(i)[0] - 5e8 * x.row(i)[1];
    x.row(i)[3] = draw(3, static_cast<std::uint64_t>(i));
  }
  const Context ctx = threads(3);
  orthonormalize(ctx, x);
  ASSERT_EQ(x.width, 3);
  const Small g = inner(ctx, x, x);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) EXPECT_TRUE(std::abs(g(i, j) - (i == j ? 1 : 0)) <= 1e-14) << i << ", " << j;
  }
}

}  // namespace
}  // namespace vicinal::solver
