// The solver's parts: a separator is a cut, and no smaller one exists; a dissection lets no edge through and is the
// same on every thread count; a factor solves its matrix, and its signs count eigenvalues; singular values and bases
// are those of matrices made to be hard.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/philox.hpp"
#include "solver/factor.hpp"
#include "solver/ordering.hpp"
#include "solver/separator.hpp"
#include "solver/smallest.hpp"
#include "solver/symbolic.hpp"
#include "solver/tall.hpp"

namespace vicinal::solver {
namespace {

double draw(std::uint64_t stream, std::uint64_t counter) {
  return core::philox_uniform(11, stream, counter);
}

Context threads(int count, Isa isa = Isa::automatic) {
  return Context::cpu({.threads = count, .isa = isa});
}

Band random_band(std::uint64_t seed, Point n, double share) {
  std::vector<std::vector<Point>> lists(static_cast<std::size_t>(n));
  std::uint64_t counter = 0;
  for (Point i = 0; i < n; ++i) {
    for (Point j = i + 1; j < n; ++j) {
      if (draw(seed, counter++) > share) continue;
      lists[i].push_back(j);
      lists[j].push_back(i);
    }
  }
  Band band;
  band.first = {0};
  for (Point i = 0; i < n; ++i) {
    band.neighbors.insert(band.neighbors.end(), lists[i].begin(), lists[i].end());
    band.first.push_back(static_cast<std::int64_t>(band.neighbors.size()));
    band.at_left.push_back(draw(seed, counter++) < 0.3 ? 1 : 0);
    band.at_right.push_back(draw(seed, counter++) < 0.3 ? 1 : 0);
  }
  return band;
}

// Whether taking out the vertices whose bits are set leaves no path from left to right.
bool cuts(const Band& band, std::uint32_t out) {
  std::uint32_t seen = out;
  std::vector<Point> queue;
  for (std::size_t v = 0; v < band.at_left.size(); ++v) {
    if (band.at_left[v] != 0 && (seen >> v & 1U) == 0) {
      seen |= 1U << v;
      queue.push_back(static_cast<Point>(v));
    }
  }
  for (std::size_t at = 0; at < queue.size(); ++at) {
    const Point v = queue[at];
    if (band.at_right[v] != 0) return false;
    for (std::int64_t e = band.first[v]; e < band.first[v + 1]; ++e) {
      const Point w = band.neighbors[e];
      if ((seen >> w & 1U) != 0) continue;
      seen |= 1U << w;
      queue.push_back(w);
    }
  }
  return true;
}

TEST(Separator, is_a_cut_of_the_fewest_vertices) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto n = static_cast<Point>(1 + seed % 11);
    const Band band = random_band(seed, n, 0.1 + 0.02 * static_cast<double>(seed % 17));
    const std::vector<Side> sides = separate(band);
    std::uint32_t chosen = 0;
    for (Point v = 0; v < n; ++v) chosen |= sides[v] == Side::separator ? 1U << v : 0U;
    EXPECT_TRUE(cuts(band, chosen)) << seed;
    for (Point v = 0; v < n; ++v) {
      if (sides[v] != Side::left) continue;
      EXPECT_EQ(band.at_right[v], 0) << seed;
      for (std::int64_t e = band.first[v]; e < band.first[v + 1]; ++e) {
        EXPECT_NE(sides[band.neighbors[e]], Side::right) << seed;
      }
    }
    for (Point v = 0; v < n; ++v) EXPECT_FALSE(sides[v] == Side::right && band.at_left[v] != 0) << seed;
    for (std::uint32_t other = 0; other < 1U << n; ++other) {
      if (std::popcount(other) < std::popcount(chosen)) {
        EXPECT_FALSE(cuts(band, other)) << seed;
      }
    }
  }
}

// Blocks of a grid: each point and the points beside it, with weights that differ and add to nothing.
LocalRows grid(Point side, bool torn = false) {
  LocalRows a;
  a.points = side * side;
  a.width = 5;
  a.first = {0};
  for (Point y = 0; y < side; ++y) {
    for (Point x = 0; x < side; ++x) {
      const Point i = y * side + x;
      std::vector<Point> cols = {i};
      for (const auto& [dx, dy] :
           {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}, {2, 0}, {-2, 0}, {0, 2}, {0, -2}}) {
        const Point u = x + dx;
        const Point v = y + dy;
        if (u < 0 || v < 0 || u >= side || v >= side || cols.size() == 5) continue;
        if (torn && (u < side / 2) != (x < side / 2)) continue;
        cols.push_back(v * side + u);
      }
      double sum = 0;
      a.values.push_back(1);
      for (std::uint64_t c = 1; c < 5; ++c) {
        a.values.push_back(-0.5 - draw(77, static_cast<std::uint64_t>(i) * 5 + c));
        sum -= a.values.back();
      }
      for (std::size_t c = 1; c < 5; ++c) a.values[a.values.size() - c] /= sum;
      a.cols.insert(a.cols.end(), cols.begin(), cols.end());
      a.first.push_back(i + 1);
    }
  }
  return a;
}

struct Ordered {
  LocalRows a;
  Incidence in;
  Dissection dissection;
  Symbolic symbolic;
};

Ordered ordered(const Context& ctx, const LocalRows& given, Point side) {
  std::vector<float> places;
  for (Point i = 0; i < given.points; ++i) {
    places.push_back(static_cast<float>(i % side));
    places.push_back(static_cast<float>(i / side));
  }
  const Cells cells = kd_cells(ctx, places, 2);
  Ordered made;
  const LocalRows near = renumbered(ctx, given, cells.order);
  const Pattern pattern = pattern_of(ctx, near, incidence_of(near));
  made.dissection = dissect(ctx, pattern, cells.first);
  made.symbolic = analyse(ctx, pattern, made.dissection);
  made.a = renumbered(ctx, near, made.dissection.order);
  made.in = incidence_of(made.a);
  return made;
}

TEST(Dissection, is_a_permutation_the_same_on_every_thread_count) {
  const Ordered once = ordered(threads(1), grid(61), 61);
  std::vector<Point> sorted = once.dissection.order;
  std::sort(sorted.begin(), sorted.end());
  for (Point i = 0; i < once.a.points; ++i) ASSERT_EQ(sorted[i], i);
  EXPECT_GT(once.dissection.nodes.size(), 20U);
  for (const int count : {2, 3, 7}) {
    const Ordered again = ordered(threads(count), grid(61), 61);
    EXPECT_EQ(once.dissection.order, again.dissection.order);
    EXPECT_EQ(once.symbolic.panel, again.symbolic.panel);
    EXPECT_EQ(once.symbolic.rows, again.symbolic.rows);
  }
}

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
