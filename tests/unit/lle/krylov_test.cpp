// The host's Krylov space: a transpose is one, products are those of the blocks, a filter is Chebyshev's polynomial of
// M, and what is projected, rotated and scaled is what was asked for.
#include "solver/krylov.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/philox.hpp"
#include "solver/csr.hpp"
#include "solver/operator.hpp"
#include "solver/tall.hpp"

namespace vicinal::solver {
namespace {

double krylov_draw(std::uint64_t stream, std::int64_t i) {
  return core::philox_uniform(5, stream, static_cast<std::uint64_t>(i)) - 0.5;
}

// Two rows a point on itself and the points after it, in a ring: rows sum to 0, as those of an embedding do.
LocalRows ring(Point n) {
  LocalRows a;
  a.points = n;
  a.width = 3;
  a.first = {0};
  for (Point i = 0; i < n; ++i) {
    for (Point j = 0; j < 3; ++j) a.cols.push_back((i + j * j) % n);
    for (int r = 0; r < 2; ++r) {
      const double x = krylov_draw(1, 2 * i + r);
      const double y = krylov_draw(2, 2 * i + r);
      a.values.insert(a.values.end(), {x, y, -x - y});
    }
    a.first.push_back(2 * (i + 1));
  }
  return a;
}

Vectors drawn(std::int64_t n, std::int64_t width, std::uint64_t stream) {
  Vectors x(n, width);
  for (std::int64_t i = 0; i < n * width; ++i) x.values[i] = krylov_draw(stream, i);
  return x;
}

Vectors product_with_m(const Context& ctx, const LocalRows& a, const Vectors& x) {
  Vectors ax(a.rows(), x.width);
  Vectors y(a.points, x.width);
  apply(ctx, a, x, ax);
  apply_transposed(ctx, a, incidence_of(ctx, a), ax, y);
  return y;
}

TEST(Csr, MultipliesAsTheBlocksDo) {
  for (const Isa isa : {Isa::baseline, Isa::automatic}) {
    const Context ctx = Context::cpu({.threads = 3, .isa = isa});
    const LocalRows a = ring(1500);
    const Csr rows = csr_of(a);
    const Csr columns = transposed(rows);
    ASSERT_EQ(columns.rows(), 1500);
    ASSERT_EQ(columns.cols, 3000);
    for (const std::int64_t width : {1, 5, 8, 17}) {
      const Vectors x = drawn(1500, width, 3);
      Vectors ax(3000, width);
      Vectors y = drawn(1500, width, 4);
      const Vectors old = drawn(1500, width, 4);
      multiply(ctx, rows, x, {}, ax);
      multiply(ctx, columns, ax, {2, -3, &x, 0.5}, y);
      const Vectors mx = product_with_m(ctx, a, x);
      for (std::int64_t i = 0; i < 1500 * width; ++i) {
        const double wanted = 2 * mx.values[i] - 3 * x.values[i] + 0.5 * old.values[i];
        ASSERT_TRUE(std::abs(y.values[i] - wanted) <= 1e-14) << width << ", " << i;
      }
    }
  }
}

TEST(HostSpace, FiltersByChebyshevsPolynomial) {
  const Context ctx = Context::cpu({.threads = 2});
  const LocalRows a = ring(300);
  const Csr rows = csr_of(a);
  const Csr columns = transposed(rows);
  for (const std::int64_t block : {1, 8}) {
    const auto space = host_space(rows, columns, block, 3);
    Vectors x = drawn(300, block, 6);
    remove_means(ctx, x);
    const Filter filter{5, 0.2, 3.0};
    space->store(ctx, 0, x);
    space->filter(ctx, filter, 0, 2);
    const Vectors found = space->load(ctx, 2);
    // T_5(y) = 16 y^5 - 20 y^3 + 5 y, with y = (3.2 - 2 M) / 2.8.
    const auto step = [&](const Vectors& v) {
      Vectors mv = product_with_m(ctx, a, v);
      for (std::int64_t i = 0; i < 300 * block; ++i) mv.values[i] = (3.2 * v.values[i] - 2 * mv.values[i]) / 2.8;
      return mv;
    };
    const Vectors y1 = step(x);
    const Vectors y3 = step(step(y1));
    const Vectors y5 = step(step(y3));
    for (std::int64_t i = 0; i < 300 * block; ++i) {
      const double wanted = 16 * y5.values[i] - 20 * y3.values[i] + 5 * y1.values[i];
      ASSERT_TRUE(std::abs(found.values[i] - wanted) <= 1e-12) << block << ", " << i;
    }
    const Vectors kept = space->load(ctx, 0);
    for (std::int64_t i = 0; i < 300 * block; ++i) ASSERT_EQ(kept.values[i], x.values[i]);
  }
}

TEST(HostSpace, ProjectsRotatesAndScales) {
  const Context ctx = Context::cpu({.threads = 3});
  const LocalRows a = ring(5000);
  const Csr rows = csr_of(a);
  const Csr columns = transposed(rows);
  const std::int64_t block = 8;
  const auto space = host_space(rows, columns, block, 3);
  Vectors both = drawn(5000, 2 * block, 7);
  orthonormalize(ctx, both);
  std::vector<Vectors> parts;
  for (std::int64_t p = 0; p < 2; ++p) {
    Vectors& part = parts.emplace_back(5000, block);
    for (std::int64_t i = 0; i < 5000; ++i) std::copy_n(both.row(i) + p * block, block, part.row(i));
    space->store(ctx, p, part);
  }
  const Vectors x = drawn(5000, block, 8);
  space->store(ctx, 2, x);
  const Small c = space->project(ctx, 2, 2);
  const Vectors left = space->load(ctx, 2);
  const Small none = inner(ctx, both, left);
  const Small all = inner(ctx, both, x);
  ASSERT_EQ(c.rows, 2 * block);
  for (std::size_t i = 0; i < none.values.size(); ++i) {
    EXPECT_TRUE(std::abs(none.values[i]) <= 1e-14) << i;
    EXPECT_TRUE(std::abs(c.values[i] - all.values[i]) <= 1e-13) << i;
  }
  Small turn(2 * block, block);
  Small twice(block, block);
  for (std::int64_t j = 0; j < block; ++j) {
    turn(j, j) = 0.6;
    turn(block + j, block - 1 - j) = 0.8;
    twice(j, block - 1 - j) = 2;
  }
  space->rotate(ctx, 2, turn);
  const Vectors rotated = space->load(ctx, 0);
  space->scale(ctx, 0, twice);
  const Vectors scaled = space->load(ctx, 0);
  for (std::int64_t i = 0; i < 5000; ++i) {
    for (std::int64_t j = 0; j < block; ++j) {
      const double wanted = 0.6 * parts[0].row(i)[j] + 0.8 * parts[1].row(i)[block - 1 - j];
      ASSERT_TRUE(std::abs(rotated.row(i)[j] - wanted) <= 1e-15);
      ASSERT_EQ(scaled.row(i)[block - 1 - j], 2 * rotated.row(i)[j]);
    }
  }
}

}  // namespace
}  // namespace vicinal::solver
