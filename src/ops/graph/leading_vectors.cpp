// See leading_vectors.hpp.
#include "ops/graph/leading_vectors.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/parallel.hpp"
#include "core/philox.hpp"
#include "vicinal/error.hpp"

namespace vicinal::ops {
namespace {

constexpr std::int64_t kSpare = 8;   // vectors beyond those asked for: the filter separates them from the rest
constexpr int kDegree = 8;           // of a filter
constexpr double kMinCut = 1e-3;     // of the interval that is damped: what it gains stays below 10^30
constexpr double kResidual = 1e-10;  // M M' has values of at most 1
constexpr std::int64_t kMaxRounds = 300;
constexpr std::int64_t kRows = 1024;  // of a task, and between two polls
constexpr std::uint64_t kStartStream = 0x73630000;
constexpr double kLost = 1e-8;  // of a vector's length, left after others are taken out of it

/// Vectors side by side: [rows, count].
struct Block {
  std::int64_t rows = 0;
  std::int64_t count = 0;
  std::vector<double> values;

  Block(std::int64_t n, std::int64_t k) : rows(n), count(k), values(static_cast<std::size_t>(n * k)) {}
  double& at(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * count + j)]; }
  [[nodiscard]] double at(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * count + j)];
  }
};

void multiply(const Context& ctx, const SparseRows& matrix, const Block& x, Block& y) {
  core::parallel_for(ctx, (matrix.rows() + kRows - 1) / kRows, [&](std::int64_t task, int /*worker*/) {
    for (std::int64_t i = task * kRows; i < std::min(matrix.rows(), (task + 1) * kRows); ++i) {
      for (std::int64_t j = 0; j < x.count; ++j) y.at(i, j) = 0;
      const auto row = static_cast<std::size_t>(i);
      for (std::int64_t e = matrix.offsets[row]; e < matrix.offsets[row + 1]; ++e) {
        const double value = matrix.values[static_cast<std::size_t>(e)];
        const std::int64_t other = matrix.columns[static_cast<std::size_t>(e)];
        for (std::int64_t j = 0; j < x.count; ++j) y.at(i, j) += value * x.at(other, j);
      }
    }
  });
}

/// Polls first: nearly all work between two products is of this kind.
double dot(const Context& ctx, const Block& x, std::int64_t i, const Block& y, std::int64_t j) {
  ctx.check_cancelled();
  double sum = 0;
  for (std::int64_t row = 0; row < x.rows; ++row) sum += x.at(row, i) * y.at(row, j);
  return sum;
}

/// Eigenvalues, descending, and vectors (columns) of a small symmetric matrix, by Jacobi's rotations.
void eigen_of(Block& matrix, Block& vectors) {
  const std::int64_t n = matrix.rows;
  for (std::int64_t i = 0; i < n; ++i) vectors.at(i, i) = 1;
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0;
    for (std::int64_t p = 0; p < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q) off = std::max(off, std::fabs(matrix.at(p, q)));
    }
    if (!(off > 1e-18)) break;
    for (std::int64_t p = 0; p < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q) {
        if (matrix.at(p, q) == 0) continue;
        const double theta = (matrix.at(q, q) - matrix.at(p, p)) / (2 * matrix.at(p, q));
        const double t = (theta >= 0 ? 1 : -1) / (std::fabs(theta) + std::hypot(theta, 1.0));
        const double c = 1 / std::hypot(t, 1.0);
        const double s = t * c;
        for (std::int64_t i = 0; i < n; ++i) {
          const double x = matrix.at(i, p);
          const double y = matrix.at(i, q);
          matrix.at(i, p) = c * x - s * y;
          matrix.at(i, q) = s * x + c * y;
        }
        for (std::int64_t i = 0; i < n; ++i) {
          const double x = matrix.at(p, i);
          const double y = matrix.at(q, i);
          matrix.at(p, i) = c * x - s * y;
          matrix.at(q, i) = s * x + c * y;
        }
        for (std::int64_t i = 0; i < n; ++i) {
          const double x = vectors.at(i, p);
          const double y = vectors.at(i, q);
          vectors.at(i, p) = c * x - s * y;
          vectors.at(i, q) = s * x + c * y;
        }
      }
    }
  }
}

class Iteration {
 public:
  Iteration(const Context& ctx, const SparseRows& matrix, const SparseRows& across, const std::vector<double>& first,
            std::uint64_t seed)
      : ctx_(ctx), matrix_(matrix), across_(across), first_(first), seed_(seed) {}

  LeadingVectors find(std::int64_t count) {
    const std::int64_t n = matrix_.rows();
    const std::int64_t width = std::min(n - 1, count + kSpare);
    Block x(n, width);
    for (std::int64_t j = 0; j < width; ++j) draw(x, j);
    orthonormalise(x);
    Block y(n, width);
    LeadingVectors found;
    for (;; ++found.rounds) {
      apply(x, y);
      found.values = rotate(x, y);
      found.residual = residual(x, y, found.values, count);
      if (found.residual <= kResidual) break;
      if (found.rounds == kMaxRounds) {
        throw Error(ErrorCode::bad_data,
                    "edges: the iteration for their singular vectors did not converge; try another number of clusters");
      }
      x = filtered(x, y, std::clamp(found.values.back(), kMinCut, 0.999));
      orthonormalise(x);
    }
    found.values.resize(static_cast<std::size_t>(count));
    for (double& value : found.values) value = std::sqrt(std::max(0.0, value));
    found.vectors.resize(static_cast<std::size_t>(n * count));
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < count; ++j) found.vectors[static_cast<std::size_t>(i * count + j)] = x.at(i, j);
    }
    return found;
  }

 private:
  void draw(Block& x, std::int64_t j) {
    for (std::int64_t i = 0; i < x.rows; ++i) x.at(i, j) = core::philox_uniform(seed_, kStartStream, drawn_++) - 0.5;
  }
  /// y = M M' x.
  void apply(const Block& x, Block& y) const {
    Block between(across_.rows(), x.count);
    multiply(ctx_, across_, x, between);
    multiply(ctx_, matrix_, between, y);
  }
  /// Takes what lies along the first vector and the columns before j out of column j, twice against rounding. Returns
  /// the length that is left, of what was of length 1.
  double take_out(Block& x, std::int64_t j) const {
    double length = std::sqrt(dot(ctx_, x, j, x, j));
    double left = 1;
    for (int turn = 0; turn < 2 && length > 0; ++turn) {
      for (std::int64_t i = 0; i < x.rows; ++i) x.at(i, j) /= length;
      double along = 0;
      for (std::int64_t i = 0; i < x.rows; ++i) along += first_[static_cast<std::size_t>(i)] * x.at(i, j);
      for (std::int64_t i = 0; i < x.rows; ++i) x.at(i, j) -= along * first_[static_cast<std::size_t>(i)];
      for (std::int64_t before = 0; before < j; ++before) {
        const double shared = dot(ctx_, x, before, x, j);
        for (std::int64_t i = 0; i < x.rows; ++i) x.at(i, j) -= shared * x.at(i, before);
      }
      length = std::sqrt(dot(ctx_, x, j, x, j));
      left *= length;
    }
    if (length > 0) {
      for (std::int64_t i = 0; i < x.rows; ++i) x.at(i, j) /= length;
    }
    return left;
  }
  void orthonormalise(Block& x) {
    for (std::int64_t j = 0; j < x.count; ++j) {
      while (!(take_out(x, j) > kLost)) draw(x, j);
    }
  }
  /// Turns x (and y = M M' x with it) so that its columns are as near to eigenvectors as its span allows. Returns their
  /// values, descending.
  [[nodiscard]] std::vector<double> rotate(Block& x, Block& y) const {
    const std::int64_t k = x.count;
    Block small(k, k);
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t j = i; j < k; ++j) small.at(i, j) = small.at(j, i) = dot(ctx_, x, i, y, j);
    }
    Block vectors(k, k);
    eigen_of(small, vectors);
    std::vector<std::int64_t> order(static_cast<std::size_t>(k));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t i, std::int64_t j) { return small.at(i, i) > small.at(j, j); });
    std::vector<double> values(order.size());
    std::transform(order.begin(), order.end(), values.begin(), [&](std::int64_t j) { return small.at(j, j); });
    for (Block* const block : {&x, &y}) {
      std::vector<double> row(static_cast<std::size_t>(k));
      for (std::int64_t i = 0; i < block->rows; ++i) {
        if (i % kRows == 0) ctx_.check_cancelled();
        for (std::int64_t j = 0; j < k; ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < k; ++l)
            sum += block->at(i, l) * vectors.at(l, order[static_cast<std::size_t>(j)]);
          row[static_cast<std::size_t>(j)] = sum;
        }
        for (std::int64_t j = 0; j < k; ++j) block->at(i, j) = row[static_cast<std::size_t>(j)];
      }
    }
    return values;
  }
  static double residual(const Block& x, const Block& y, const std::vector<double>& values, std::int64_t count) {
    double largest = 0;
    for (std::int64_t j = 0; j < count; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < x.rows; ++i) {
        const double off = y.at(i, j) - values[static_cast<std::size_t>(j)] * x.at(i, j);
        sum += off * off;
      }
      largest = std::max(largest, std::sqrt(sum));
    }
    return largest;
  }
  /// T(x), T being the Chebyshev polynomial that is at most 1 on values in [0, cut] and grows fast above.
  [[nodiscard]] Block filtered(const Block& x, const Block& y, double cut) const {
    const double half = cut / 2;
    Block before = x;
    Block now = y;
    for (std::size_t i = 0; i < now.values.size(); ++i) now.values[i] = (y.values[i] - half * x.values[i]) / half;
    Block next(x.rows, x.count);
    for (int degree = 2; degree <= kDegree; ++degree) {
      apply(now, next);
      for (std::size_t i = 0; i < next.values.size(); ++i) {
        next.values[i] = 2 * (next.values[i] - half * now.values[i]) / half - before.values[i];
      }
      std::swap(before, now);
      std::swap(now, next);
    }
    return now;
  }

  const Context& ctx_;
  const SparseRows& matrix_;
  const SparseRows& across_;
  const std::vector<double>& first_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

}  // namespace

LeadingVectors leading_vectors(const Context& ctx, const SparseRows& matrix, const SparseRows& across,
                               const std::vector<double>& first, std::int64_t count, std::uint64_t seed) {
  return Iteration(ctx, matrix, across, first, seed).find(count);
}

}  // namespace vicinal::ops
