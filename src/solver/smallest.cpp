// See smallest.hpp.
#include "solver/smallest.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/parallel.hpp"
#include "formulas/lle/constants.hpp"
#include "formulas/lle/start.hpp"
#include "solver/ritz.hpp"

namespace vicinal::solver {
namespace {

constexpr double kConverged = 1e-10;  // sine of an angle
constexpr double kResolved = 1e-15;   // of M's norm
constexpr double kGuarded = 1e-3;     // of the first guard: its value then bounds the next one well enough to count by
constexpr double kAllowed = 1e-14;    // of M's norm: what the contract allows a residual (clause 17)
constexpr double kUseful = 1e-3;      // an angle that rounding stays at is an answer still, if its residual is allowed
constexpr int kStalls = 2;            // steps without halving the angle, that end the iteration
constexpr int kMaxSteps = 2000;       // where many eigenvalues lie close together, each step gains little

constexpr std::int64_t kWhole = 8;  // columns that a factor solves for at once

std::int64_t padded(std::int64_t width) {
  return (width + kWhole - 1) / kWhole * kWhole;
}

// As many as the factor solves for anyway, where that is not much more work, nor most of the space.
std::int64_t guards_of(std::int64_t points, std::int64_t wanted) {
  const std::int64_t whole = padded(wanted + kGuards) - wanted;
  return whole < 2 * kGuards && whole + wanted < points / 2 ? whole : kGuards;
}

// Vectors in host memory. They come and go in the same memory: of millions of points, fresh pages take as long as what
// is written into them.
class HostSpace final : public Space {
 public:
  HostSpace(const Context& ctx, const LocalRows& a, const Incidence& in, const Factor& factor)
      : ctx_(ctx), a_(a), in_(in), factor_(factor) {}

  [[nodiscard]] std::int64_t points() const override { return a_.points; }
  [[nodiscard]] std::int64_t width(Set set) const override { return set == Set::best ? best_.width : next_.width; }
  void start(std::int64_t width) override {
    best_.reshape(a_.points, width);
    for_each_point(ctx_, a_.points, [&](std::int64_t i) {
      for (std::int64_t c = 0; c < width; ++c) best_.row(i)[c] = first_entry(i, c);
    });
    remove_means(ctx_, best_);
  }
  void solve(Set set) override {
    Vectors& x = at(set);
    if (x.width % kWhole == 0) {
      factor_.solve(ctx_, x);
      return remove_means(ctx_, x);
    }
    room_.reshape(x.rows, padded(x.width));
    for_each_point(ctx_, x.rows, [&](std::int64_t i) {
      std::copy_n(x.row(i), x.width, room_.row(i));
      std::fill(room_.row(i) + x.width, room_.row(i) + room_.width, 0.0);
    });
    factor_.solve(ctx_, room_);
    for_each_point(ctx_, x.rows, [&](std::int64_t i) { std::copy_n(room_.row(i), x.width, x.row(i)); });
    remove_means(ctx_, x);
  }
  void gradient(const std::vector<double>& values) override {
    solver::gradient(ctx_, a_, in_, best_, values, room_, next_);
  }
  Small inner_with_next(Set x) override { return inner(ctx_, at(x), next_); }
  void subtract(const Small& c) override {
    subtract_product(ctx_, best_, c, next_);
    remove_means(ctx_, next_);
  }
  void multiply(Set set, const Small& c) override {
    if (set == Set::next || c.cols == best_.width) return solver::multiply(ctx_, at(set), c);
    product(ctx_, best_, c, spare_);
    std::swap(best_, spare_);
  }
  Small triangle(Set set) override { return triangle_of(ctx_, at(set)); }
  Small triangle_of_rows() override { return triangle_of(ctx_, a_, best_); }
  void join() override {
    spare_.reshape(best_.rows, best_.width + next_.width);
    for_each_point(ctx_, best_.rows, [&](std::int64_t i) {
      std::copy_n(best_.row(i), best_.width, spare_.row(i));
      std::copy_n(next_.row(i), next_.width, spare_.row(i) + best_.width);
    });
    std::swap(best_, spare_);
  }
  Vectors fetch(std::int64_t width) override { return columns(ctx_, best_, 0, width, width); }
  double norm_bound() override { return solver::norm_bound(ctx_, a_, in_); }

 private:
  Vectors& at(Set set) { return set == Set::best ? best_ : next_; }

  const Context& ctx_;
  const LocalRows& a_;
  const Incidence& in_;
  const Factor& factor_;
  Vectors best_;
  Vectors next_;
  Vectors spare_;  // what best is made of next
  Vectors room_;   // of a solve, and of A best
};

std::vector<double> lengths_of(const Small& squares) {
  std::vector<double> found;
  for (std::int64_t j = 0; j < squares.cols; ++j) found.push_back(std::sqrt(squares(j, j)));
  return found;
}

void orthonormalize_set(Space& space, Set set) {
  for (int pass = 0; pass < 2 && space.width(set) > 0; ++pass) {
    bool whole = true;
    space.multiply(set, orthonormal_change(space.triangle(set), whole));
    if (!whole) pass = -1;  // with the triangle of what is left
  }
}

// best: the `width` vectors of its space, orthonormal, for which A x is least; their values.
std::vector<double> choose_best(const Context& ctx, Space& space, std::int64_t width) {
  const SingularValues svd = singular_values(ctx, space.triangle_of_rows());
  const std::int64_t all = space.width(Set::best);
  width = std::min(width, all);
  Small chosen(all, width);
  for (std::int64_t i = 0; i < all; ++i) {
    for (std::int64_t j = 0; j < width; ++j) chosen(i, j) = svd.right(i, j);
  }
  space.multiply(Set::best, chosen);
  return {svd.values.begin(), svd.values.begin() + width};
}

}  // namespace

std::uint64_t inverse_iteration_bytes(const LocalRows& a, std::int64_t wanted) {
  const auto width = static_cast<std::uint64_t>(wanted + guards_of(a.points, wanted));
  const auto points = static_cast<std::uint64_t>(a.points);
  const std::uint64_t room = std::max(static_cast<std::uint64_t>(padded(wanted + kGuards)) * points,
                                      width * static_cast<std::uint64_t>(a.rows()));
  return (5 * width * points + room) * sizeof(double);  // best and what it is made of have twice the width
}

Smallest inverse_iteration(const Context& ctx, const LocalRows& a, const Incidence& in, const Factor& factor,
                           std::int64_t wanted) {
  HostSpace space(ctx, a, in, factor);
  return inverse_iteration(ctx, space, wanted, guards_of(a.points, wanted));
}

Smallest inverse_iteration(const Context& ctx, Space& space, std::int64_t wanted, std::int64_t guards) {
  const std::int64_t width = std::min(wanted + guards, space.points() - 1);
  space.start(width);
  for (int start = 0; start < 2; ++start) {
    space.solve(Set::best);
    orthonormalize_set(space, Set::best);
    if (space.width(Set::best) == 0) {
      throw Error(ErrorCode::internal,
                  "lle: the factor solves nothing; M has more zeros than the constant vector's, to rounding");
    }
  }
  if (space.width(Set::best) < width) {
    // A direction in which M is all but singular swamps the others beyond what rounding leaves of them. From vectors
    // that were not solved for, the steps below find it, and the others after it.
    space.start(width);
    orthonormalize_set(space, Set::best);
  }
  std::vector<double> values = choose_best(ctx, space, width);

  Smallest found;
  found.norm = space.norm_bound();
  double least = 2;
  int stalls = 0;
  while (true) {
    ++found.iterations;
    space.gradient(values);
    found.residuals = lengths_of(space.inner_with_next(Set::next));
    const double largest = *std::max_element(found.residuals.begin(), found.residuals.begin() + wanted);
    space.solve(Set::next);
    for (int pass = 0; pass < 2; ++pass) space.subtract(space.inner_with_next(Set::best));
    found.angles = lengths_of(space.inner_with_next(Set::next));
    double worst = 0;
    for (std::int64_t j = 0; j < wanted; ++j) worst = std::max(worst, found.angles[j]);
    if (std::isnan(worst)) break;
    stalls = worst > least / 2 ? stalls + 1 : 0;
    least = std::min(least, worst);
    ctx.report("solve", std::min(1.0, std::log10(std::max(worst, kConverged)) / std::log10(kConverged)));
    const bool guarded = width == wanted || found.angles[wanted] <= kGuarded;
    found.converged = (largest <= kResolved * found.norm && guarded && worst <= kConverged) ||
                      (largest <= kAllowed * found.norm && stalls >= kStalls && worst <= kUseful);
    if (found.converged || found.iterations >= kMaxSteps) break;
    orthonormalize_set(space, Set::next);
    if (space.width(Set::next) == 0) break;
    space.subtract(space.inner_with_next(Set::best));
    orthonormalize_set(space, Set::next);
    space.join();
    values = choose_best(ctx, space, width);
  }
  found.next = width > wanted ? values[wanted] : 0;
  found.vectors = space.fetch(wanted);
  found.values.assign(values.begin(), values.begin() + wanted);
  found.angles.resize(static_cast<std::size_t>(wanted));
  found.residuals.resize(static_cast<std::size_t>(wanted));
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
    ctx.check_cancelled();
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
  const SingularValues svd = singular_values(ctx, triangle_of(std::move(rows), &ctx));
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
  const Vectors left = gradient(ctx, a, in, found.vectors, found.values);
  return lengths_of(inner(ctx, left, left));
}

}  // namespace vicinal::solver
