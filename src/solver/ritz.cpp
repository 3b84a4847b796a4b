// See ritz.hpp.
#include "solver/ritz.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/parallel.hpp"

namespace vicinal::solver {

void for_each_point(const Context& ctx, std::int64_t n, const std::function<void(std::int64_t)>& body) {
  core::parallel_for(ctx, (n + kTaskPoints - 1) / kTaskPoints, [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t i = task * kTaskPoints; i < std::min(n, (task + 1) * kTaskPoints); ++i) body(i);
  });
}

Vectors columns(const Context& ctx, const Vectors& x, std::int64_t begin, std::int64_t end, std::int64_t width) {
  Vectors y(x.rows, width);
  for_each_point(ctx, x.rows, [&](std::int64_t i) {
    std::fill_n(y.row(i), width, 0.0);
    std::copy(x.row(i) + begin, x.row(i) + end, y.row(i));
  });
  return y;
}

std::vector<double> lengths(const Context& ctx, const Vectors& x) {
  const Small squares = inner(ctx, x, x);
  std::vector<double> found;
  for (std::int64_t j = 0; j < x.width; ++j) found.push_back(std::sqrt(squares(j, j)));
  return found;
}

std::vector<double> best_of(const Context& ctx, const LocalRows& a, Vectors& x, std::int64_t width) {
  const SingularValues svd = singular_values(ctx, triangle_of(ctx, a, x));
  width = std::min(width, x.width);
  Small chosen(x.width, width);
  for (std::int64_t i = 0; i < x.width; ++i) {
    for (std::int64_t j = 0; j < width; ++j) chosen(i, j) = svd.right(i, j);
  }
  multiply(ctx, x, chosen);
  return {svd.values.begin(), svd.values.begin() + width};
}

Vectors gradient(const Context& ctx, const LocalRows& a, const Incidence& in, const Vectors& x,
                 const std::vector<double>& values) {
  Vectors ax;
  Vectors g;
  gradient(ctx, a, in, x, values, ax, g);
  return g;
}

void gradient(const Context& ctx, const LocalRows& a, const Incidence& in, const Vectors& x,
              const std::vector<double>& values, Vectors& ax, Vectors& g) {
  ax.reshape(a.rows(), x.width);
  apply(ctx, a, x, ax);
  g.reshape(x.rows, x.width);
  apply_transposed(ctx, a, in, ax, g);
  for_each_point(ctx, x.rows, [&](std::int64_t i) {
    for (std::int64_t c = 0; c < x.width; ++c) g.row(i)[c] -= values[c] * values[c] * x.row(i)[c];
  });
}

}  // namespace vicinal::solver
