// The solver's parts: a factor solves its matrix, and its signs count eigenvalues; singular values and bases are those
// of matrices made to be hard.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "solver/factor.hpp"
#include "solver/smallest.hpp"
#include "solver/tall.hpp"
#include "solver_data.hpp"

namespace vicinal::solver {
namespace {

TEST(Factor, SolvesWhatItWasMadeOf) {
  for (const Point side : {3, 8, 40, 71}) {
    for (const Isa isa : {Isa::baseline, Isa::automatic}) {
      for (const int count : {1, 3}) {
        const Context ctx = threads(count, isa);
        const Ordered made = ordered(ctx, grid(side, side == 40), side);
        // Shifted down by one: definite and well conditioned, so that the residual is a matter of roundings, which are
        // those of panels in five bytes a number.
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
            EXPECT_TRUE(std::abs(back.row(i)[c] + own - x.row(i)[c]) <= 0x1p-31) << side << ", row " << i;
          }
        }
      }
    }
  }
}

TEST(Factor, CountsEigenvaluesBelowTheShift) {
  const Context ctx = threads(2);
  const Ordered made = ordered(ctx, grid(12), 12);
  const Smallest all = dense(ctx, made.a, 143);
  for (const std::int64_t below : {1, 5, 40, 100}) {
    const double low = all.values[below - 1] * all.values[below - 1];
    const double high = all.values[below] * all.values[below];
    const Factor factor(ctx, made.a, made.in, made.symbolic, {(low + high) / 2, 0});
    EXPECT_EQ(factor.negative(), below + 1);  // with the constant vector's 0
    EXPECT_EQ(negative_pivots(ctx, made.a, made.in, made.symbolic, {(low + high) / 2, 0}), below + 1);
  }
}

// Trees of several levels, whose squares wait on the workers' stacks.
TEST(Factor, CountsWithoutKeepingPanels) {
  const Ordered made = ordered(threads(2), grid(120), 120);
  ASSERT_GT(made.symbolic.trees.size(), 4U);
  ASSERT_GT(made.symbolic.most_stacked[0], 0);
  ASSERT_GT(made.symbolic.most_stacked[1], 0);
  for (const double shift : {1e-7, 1e-3, 0.1}) {
    const Factor factor(threads(1), made.a, made.in, made.symbolic, {shift, 0});
    EXPECT_GT(factor.negative(), 0);
    for (const int count : {1, 2, 3}) {
      EXPECT_EQ(negative_pivots(threads(count), made.a, made.in, made.symbolic, {shift, 0}), factor.negative());
    }
  }
}

// Numbers of a panel take five bytes; beside it, its front is made in float64, by each worker within a tree.
TEST(Factor, TakesWhatThePlanSays) {
  for (const Point side : {3, 40, 120}) {
    const Symbolic s = ordered(threads(1), grid(side), side).symbolic;
    EXPECT_EQ(s.factor_bytes, 5 * static_cast<std::uint64_t>(s.panel.back() + cpu::kFiveBytesMore));
    const auto largest_panel = [&](std::int32_t begin, std::int32_t end) {
      std::int64_t largest = 0;
      for (std::int32_t t = begin; t < end; ++t) largest = std::max(largest, s.panel[t + 1] - s.panel[t]);
      return largest;
    };
    std::int64_t of_worker = 0;
    std::int64_t waiting = 0;
    for (const auto& [begin, end] : s.trees) {
      waiting += square_room(s.below(end - 1));
      of_worker = std::max(of_worker, largest_panel(begin, end));
    }
    of_worker += s.most_stacked[0] + s.most_stacked[1];
    const std::int64_t numbers = waiting + of_worker + largest_panel(0, static_cast<std::int32_t>(s.nodes.size()));
    EXPECT_GE(s.front_bytes, static_cast<std::uint64_t>(numbers) * sizeof(double)) << side;
    const std::uint64_t of_three = ordered(threads(3), grid(side), side).symbolic.front_bytes;
    EXPECT_EQ(of_three - s.front_bytes, 2 * static_cast<std::uint64_t>(of_worker) * sizeof(double)) << side;
  }
}

// Squares keep their lower triangles, tile by tile: columns do not meet.
TEST(Factor, SquaresHaveRoomForTheirLowerTriangles) {
  for (const std::int64_t side : {0, 1, 191, 192, 193, 500, 961}) {
    std::int64_t end = 0;  // of the column before
    for (std::int64_t j = 0; j < side; ++j) {
      const std::int64_t first = square_column(side, j) + j / cpu::kDenseTile * cpu::kDenseTile;
      EXPECT_EQ(first, end) << side << ", " << j;
      end = square_column(side, j) + side;
    }
    EXPECT_EQ(square_room(side), end) << side;
  }
}

TEST(LocalRows, SortedColumnsAreTheSameMatrix) {
  const Context ctx = threads(2);
  const Ordered made = ordered(ctx, grid(70), 70);
  LocalRows sorted = renumbered(ctx, made.a, [&] {
    std::vector<Point> same(static_cast<std::size_t>(made.a.points));
    std::iota(same.begin(), same.end(), 0);
    return same;
  }());
  sort_columns(ctx, sorted);
  for (Point i = 0; i < sorted.points; ++i) {
    std::vector<std::pair<Point, double>> entries;
    for (std::int64_t c = i * made.a.width; c < (i + 1) * made.a.width; ++c) {
      entries.emplace_back(made.a.cols[c], made.a.values[c]);
    }
    std::sort(entries.begin(), entries.end());
    for (std::int64_t c = 0; c < sorted.width; ++c) {
      ASSERT_EQ(sorted.cols[i * sorted.width + c], entries[c].first) << i;
      ASSERT_EQ(sorted.values[i * sorted.width + c], entries[c].second) << i;
    }
  }
  // Each entry of M is added up from the same blocks in the same order.
  const Incidence in = incidence_of(ctx, sorted);
  const Factor as_given(ctx, made.a, made.in, made.symbolic, {0, 1});
  const Factor as_sorted(ctx, sorted, in, made.symbolic, {0, 1});
  Vectors x(sorted.points, 8);
  Vectors y(sorted.points, 8);
  for (std::int64_t i = 0; i < x.rows * 8; ++i) x.values[i] = y.values[i] = draw(5, static_cast<std::uint64_t>(i));
  as_given.solve(ctx, x);
  as_sorted.solve(ctx, y);
  EXPECT_EQ(x.values, y.values);
}

TEST(InverseIteration, FindsWhatTheDenseWayFinds) {
  const Context ctx = threads(2);
  const Ordered made = ordered(ctx, grid(13), 13);
  const Factor factor(ctx, made.a, made.in, made.symbolic, {0, 1});
  const Smallest found = inverse_iteration(ctx, made.a, made.in, factor, 5);
  const Smallest truth = dense(ctx, made.a, 5);
  ASSERT_TRUE(found.converged);
  for (int c = 0; c < 5; ++c) EXPECT_TRUE(std::abs(found.values[c] - truth.values[c]) <= 1e-12) << c;
}

TEST(SingularValues, OfAGradedMatrixAreRightRelativeToThemselves) {
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

TEST(SingularValues, OfFewAndManyColumnsDecomposeTheMatrixWithTheSameBitsOnEveryThreadCount) {
  for (const std::int64_t q : {1, 2, 63, 64, 65, 66, 131}) {
    const std::int64_t m = q + 70;  // more than a strip
    Small a(m, q);
    for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = draw(5, i) - 0.5;
    for (std::int64_t i = 0; i < m; ++i) a(i, 0) *= 1e-6;
    const SingularValues found = singular_values(threads(1), triangle_of(a));
    for (const int count : {2, 3, 7}) {
      const SingularValues again = singular_values(threads(count), triangle_of(a));
      EXPECT_EQ(found.values, again.values) << q << ", " << count;
      EXPECT_EQ(found.right.values, again.right.values) << q << ", " << count;
    }
    // (A V)' A V is diagonal, V'V is I, to roundings of sums of m and q products.
    const double largest = found.values.back();
    const double allowed = 1e-16 * 10 * static_cast<double>(m);
    Small images(m, q);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t k = 0; k < q; ++k) {
        for (std::int64_t j = 0; j < q; ++j) images(i, j) += a(i, k) * found.right(k, j);
      }
    }
    for (std::int64_t x = 0; x < q; ++x) {
      for (std::int64_t y = 0; y <= x; ++y) {
        double inner_of_images = 0;
        double inner_of_vectors = 0;
        for (std::int64_t i = 0; i < m; ++i) inner_of_images += images(i, x) * images(i, y);
        for (std::int64_t i = 0; i < q; ++i) inner_of_vectors += found.right(i, x) * found.right(i, y);
        const double length = x == y ? found.values[x] * found.values[x] : 0;
        EXPECT_TRUE(std::abs(inner_of_images - length) <= allowed * largest * largest) << q << ", " << x << ", " << y;
        EXPECT_TRUE(std::abs(inner_of_vectors - (x == y ? 1 : 0)) <= allowed) << q << ", " << x << ", " << y;
      }
    }
  }
}

TEST(Orthonormalize, DropsWhatDependsOnWhatCameBefore) {
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
