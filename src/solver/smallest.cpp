// See smallest.hpp.
#include "solver/smallest.hpp"

#include <algorithm>
#include <cmath>

#include "core/parallel.hpp"
#include "core/philox.hpp"
#include "solver/ritz.hpp"

namespace vicinal::solver {
namespace {

constexpr double kConverged = 1e-10;  // sine of an angle
constexpr double kResidual = 1e-15;   // of M's norm
constexpr double kGuarded = 1e-3;     // of the first guard: its value then bounds the next one well enough to count by
constexpr double kUseful = 1e-3;      // one that rounding allows to stay at is an answer still
constexpr int kStalls = 2;            // steps without halving the angle, that end the iteration
constexpr int kMostSteps = 60;
constexpr std::uint64_t kStream = 0x6c6c0000;

std::int64_t padded(std::int64_t width) {
  return (width + 7) / 8 * 8;
}

Vectors beside(const Context& ctx, const Vectors& x, const Vectors& y) {
  Vectors both = columns(ctx, x, 0, x.width, x.width + y.width);
  for_each_point(ctx, x.rows, [&](std::int64_t i) { std::copy_n(y.row(i), y.width, both.row(i) + x.width); });
  return both;
}

Vectors solved(const Context& ctx, const Factor& factor, const Vectors& x) {
  Vectors room = columns(ctx, x, 0, x.width, padded(x.width));
  factor.solve(ctx, room);
  Vectors y = columns(ctx, room, 0, x.width, x.width);
  remove_means(ctx, y);
  return y;
}

}  // namespace

std::uint64_t inverse_iteration_bytes(const LocalRows& a, std::int64_t wanted) {
  const auto width = static_cast<std::uint64_t>(padded(wanted + kGuards));
  return (5 * width * static_cast<std::uint64_t>(a.points) + width * static_cast<std::uint64_t>(a.rows())) *
         sizeof(double);
}

Smallest inverse_iteration(const Context& ctx, const LocalRows& a, const Incidence& in, const Factor& factor,
                           std::int64_t wanted) {
  const std::int64_t n = a.points;
  const std::int64_t width = std::min(wanted + kGuards, n - 1);
  Vectors x(n, width);
  for_each_point(ctx, n, [&](std::int64_t i) {
    for (std::int64_t c = 0; c < width; ++c) {
      x.row(i)[c] =
          core::philox_uniform(0, kStream + static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(i)) - 0.5;
    }
  });
  remove_means(ctx, x);
  for (int start = 0; start < 2; ++start) {
    x = solved(ctx, factor, x);
    orthonormalize(ctx, x);
  }
  std::vector<double> values = best_of(ctx, a, x, width);

  Smallest found;
  const double resolved = kResidual * norm_bound(ctx, a, in);
  double least = 2;
  int stalls = 0;
  while (true) {
    ++found.iterations;
    Vectors z = gradient(ctx, a, in, x, values);
    const std::vector<double> left = lengths(ctx, z);
    const bool small = *std::max_element(left.begin(), left.begin() + wanted) <= resolved;
    z = solved(ctx, factor, z);
    for (int pass = 0; pass < 2; ++pass) subtract_product(ctx, x, inner(ctx, x, z), z);
    found.angles = lengths(ctx, z);
    double worst = 0;
    for (std::int64_t j = 0; j < wanted; ++j) worst = std::max(worst, found.angles[j]);
    if (std::isnan(worst)) break;
    stalls = worst > least / 2 ? stalls + 1 : 0;
    least = std::min(least, worst);
    ctx.report("solve", std::min(1.0, std::log10(std::max(worst, kConverged)) / std::log10(kConverged)));
    const bool guarded = width == wanted || found.angles[wanted] <= kGuarded;
    found.converged = (small && guarded && worst <= kConverged) || (stalls >= kStalls && worst <= kUseful);
    if (found.converged || found.iterations >= kMostSteps) break;
    orthonormalize(ctx, z);
    if (z.width == 0) break;
    subtract_product(ctx, x, inner(ctx, x, z), z);
    orthonormalize(ctx, z);
    x = beside(ctx, x, z);
    values = best_of(ctx, a, x, width);
  }
  found.next = width > wanted ? values[wanted] : 0;
  found.vectors = columns(ctx, x, 0, wanted, wanted);
  found.values.assign(values.begin(), values.begin() + wanted);
  found.angles.resize(static_cast<std::size_t>(wanted));
  return found;
}

std::uint64_t dense_bytes(const LocalRows& a) {
  const auto n = static_cast<std::uint64_t>(a.points);
  return (static_cast<std::uint64_t>(a.rows()) + 4 * n) * n * sizeof(double);
}

Smallest dense(const Context& ctx, const LocalRows& a, std::int64_t wanted) {
  const std::int64_t n = a.points;
  // Columns 1 .. n - 1 of the reflection that maps the first unit vector to the constant one: I - scale v v'.
  const double entry = 1 / std::sqrt(static_cast<double>(n));
  std::vector<double> v(static_cast<std::size_t>(n), entry);
  v[0] += 1;
  const double scale = 1 / v[0];  // 2 / |v|^2, |v|^2 = 2 + 2 entry
  Small rows(std::max<std::int64_t>(a.rows(), n - 1), n - 1);
  for (Point i = 0; i < a.points; ++i) {
    for (std::int64_t r = a.first[i]; r < a.first[i + 1]; ++r) {
      double sum = 0;
      for (std::int64_t c = 0; c < a.width; ++c) {
        const Point col = a.cols[i * a.width + c];
        const double value = a.values[r * a.width + c];
        sum += value * v[col];
        if (col > 0) rows(r, col - 1) += value;
      }
      for (std::int64_t c = 1; c < n; ++c) rows(r, c - 1) -= sum * scale * v[c];
    }
  }
  const SingularValues svd = singular_values(ctx, triangle_of(std::move(rows)));
  Smallest found;
  found.converged = true;
  found.values.assign(svd.values.begin(), svd.values.begin() + wanted);
  found.angles.assign(static_cast<std::size_t>(wanted), 0.0);
  found.next = n - 1 > wanted ? svd.values[wanted] : 0;
  found.vectors = Vectors(n, wanted);
  for (std::int64_t c = 0; c < wanted; ++c) {
    double sum = 0;
    for (std::int64_t i = 1; i < n; ++i) sum += v[i] * svd.right(i - 1, c);
    found.vectors.row(0)[c] = -sum * scale * v[0];
    for (std::int64_t i = 1; i < n; ++i) found.vectors.row(i)[c] = svd.right(i - 1, c) - sum * scale * v[i];
  }
  remove_means(ctx, found.vectors);
  return found;
}

std::vector<double> residuals(const Context& ctx, const LocalRows& a, const Incidence& in, const Smallest& found) {
  return lengths(ctx, gradient(ctx, a, in, found.vectors, found.values));
}

}  // namespace vicinal::solver
