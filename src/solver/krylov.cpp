// See krylov.hpp. The projected matrix is what orthogonalization finds: column j of H holds the products of the basis
// with the filter of block j, and H is symmetric: what is above its diagonal tells it whole. After a restart it is
// diagonal but for the next block's columns.
#include "solver/krylov.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/philox.hpp"
#include "formulas/lle/constants.hpp"
#include "solver/ritz.hpp"

namespace vicinal::solver {
namespace {

constexpr std::int64_t kLanczosColumns = 8;   // a block is some of these
constexpr std::int64_t kLanczosBlocks = 10;   // of a full basis
constexpr std::int64_t kArnoldiColumns = 60;  // of a full basis
constexpr double kGrowth = 3;                 // a filter grows to cosh of this where it must
constexpr double kMaxGrowth = 12;             // and nowhere above cosh of that
constexpr std::int64_t kBelow = 3;            // times a block's columns: eigenvalues that may grow
constexpr std::int64_t kSmoothing = 16;       // degree of a filter for rounding's sake
constexpr double kAbove = 1.5;                // times the last wanted: a filter's growth begins there or higher
constexpr double kSmaller = 0.5;              // a new filter is worth a new start where its end has moved so far
constexpr double kNoise = 1e-14;              // of a column's length before it was projected
constexpr double kNothing = 1e-24;            // of a squared length: what the basis left of a random column
constexpr double kDependentSquare = 1e-15;    // of a column's squared length, after a shifted Cholesky
constexpr double kResidual = 2e-15;           // of M's largest eigenvalue: what is asked for
constexpr double kNearlyThere = 1e-10;
constexpr double kStillAnswer = 9e-15;  // what is taken where no more is to be had; the contract allows 1e-14
constexpr double kAngle = 1e-7;
constexpr double kStillAngle = 1e-6;
constexpr double kGuardAngle = 1e-2;  // of the first guard, whose value bounds the next
constexpr double kSameCluster = 1e-3;
constexpr double kEpsilon = 0x1p-52;
constexpr int kStalledChecks = 3;
constexpr std::uint64_t kStream = 0x6b720000;

// Upper R of G = R'R, column by column; a column that depends on those before has a row and pivot of zeros, and is
// told. With its inverse, whose dead columns are zeros.
struct Triangle {
  Small r;
  Small inverse;
  std::vector<std::int64_t> dead;
};

Triangle cholesky(const Small& g, double least) {
  const std::int64_t b = g.cols;
  Triangle found{Small(b, b), Small(b, b), {}};
  Small& r = found.r;
  for (std::int64_t j = 0; j < b; ++j) {
    for (std::int64_t i = 0; i < j; ++i) {
      if (r(i, i) == 0) continue;
      double sum = g(i, j);
      for (std::int64_t k = 0; k < i; ++k) sum -= r(k, i) * r(k, j);
      r(i, j) = sum / r(i, i);
    }
    double square = g(j, j);
    for (std::int64_t k = 0; k < j; ++k) square -= r(k, j) * r(k, j);
    if (!(square > least * g(j, j)) || !(g(j, j) > 0)) {
      found.dead.push_back(j);
      continue;
    }
    r(j, j) = std::sqrt(square);
    found.inverse(j, j) = 1 / r(j, j);
    for (std::int64_t i = j - 1; i >= 0; --i) {
      if (r(i, i) == 0) continue;
      double sum = 0;
      for (std::int64_t k = i + 1; k <= j; ++k) sum += r(i, k) * found.inverse(k, j);
      found.inverse(i, j) = -sum / r(i, i);
    }
  }
  return found;
}

Small times(const Small& x, const Small& y) {
  Small z(x.rows, y.cols);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t k = 0; k < x.cols; ++k) {
      for (std::int64_t j = 0; j < y.cols; ++j) z(i, j) += x(i, k) * y(k, j);
    }
  }
  return z;
}

// Where the filter sees an eigenvalue: below -1 nothing is, above 1 is what it lets grow.
double place_of(const Filter& filter, double value) {
  return (filter.low + filter.high - 2 * value) / (filter.high - filter.low);
}

class Iteration {
 public:
  Iteration(const Context& ctx, const LocalRows& a, const Incidence& in, KrylovSpace& space,
            const KrylovOptions& options)
      : ctx_(ctx),
        a_(a),
        in_(in),
        space_(space),
        options_(options),
        b_(space.block()),
        full_(space.blocks() - 1),
        h_(full_ * b_, full_ * b_) {
    checked_ = std::min(options.wanted + kGuards, space.points() - 1);
    const std::int64_t least = (checked_ + b_ - 1) / b_;
    keep_ = std::min(full_, b_ > 1 ? least + 1 : least + full_ / 4);
  }

  KrylovResult run() {
    result_.bound = norm_bound(ctx_, a_, in_);
    if (!(result_.bound > 0)) result_.bound = 1;
    filter_ = {1, 0, result_.bound};
    begin(drawn());
    while (true) {
      if (!expand()) {
        result_.out_of_steps = true;
        break;
      }
      restart();
      Vectors best = examine(options_.filtered);
      if (!options_.filtered && result_.residual < kNearlyThere) best = examine(true);
      if (done_) break;
      if (options_.filtered && renew()) begin(best);
    }
    result_.smallest.iterations = steps_;
    return std::move(result_);
  }

 private:
  Vectors drawn() {
    Vectors x(space_.points(), b_);
    for_each_point(ctx_, x.rows, [&](std::int64_t i) {
      for (std::int64_t c = 0; c < b_; ++c) x.row(i)[c] = random(i, c);
    });
    remove_means(ctx_, x);
    return x;
  }

  [[nodiscard]] double random(std::int64_t row, std::int64_t column) const {
    const auto stream = kStream + static_cast<std::uint64_t>(draws_ * kLanczosColumns * 8 + column);
    return core::philox_uniform(0, stream, static_cast<std::uint64_t>(row)) - 0.5;
  }

  // A basis of this block alone; what of it a narrower start lacks is drawn.
  void begin(const Vectors& x) {
    space_.store(ctx_, 0, x);
    static_cast<void>(normalize(0, std::vector<double>(static_cast<std::size_t>(b_), 0.0)));
    known_ = 0;
    h_ = Small(full_ * b_, full_ * b_);
  }

  // The block's columns orthonormal: R of block = Q R by Cholesky's factor of its products, three times, the first one
  // shifted, so that any condition is served (Fukaya et al. 2020). Columns that rounding made, being as short as
  // `noise`, or that depend on others are drawn anew: R has zeros there.
  Small normalize(std::int64_t at, const std::vector<double>& noise) {
    Small r(b_, b_);
    for (std::int64_t i = 0; i < b_; ++i) r(i, i) = 1;
    std::vector<std::int64_t> dead;
    for (int pass = 0; pass < 3; ++pass) {
      Small g = space_.gram(ctx_, at);
      Small scaled(b_, b_);
      for (std::int64_t j = 0; j < b_; ++j) {
        const bool of_rounding = pass == 0 && !(std::sqrt(g(j, j)) > noise[j]);
        scaled(j, j) = g(j, j) > 0 && !of_rounding ? 1 / std::sqrt(g(j, j)) : 0;
      }
      g = times(times(scaled, g), scaled);
      if (pass == 0) {
        for (std::int64_t j = 0; j < b_; ++j) g(j, j) *= 1 + 8 * kEpsilon * static_cast<double>(b_);
      }
      Triangle t = cholesky(g, pass == 0 ? 0 : kDependentSquare);
      dead = t.dead;
      for (std::int64_t j = 0; j < b_; ++j) {
        for (std::int64_t i = 0; i <= j; ++i) {
          t.inverse(i, j) *= scaled(i, i);
          t.r(i, j) = scaled(j, j) > 0 ? t.r(i, j) / scaled(j, j) : 0;
        }
      }
      space_.scale(ctx_, at, t.inverse);
      r = times(t.r, r);
    }
    for (int attempt = 0; attempt < 2 && !dead.empty(); ++attempt) dead = draw_anew(at, dead);
    exhausted_ = exhausted_ || !dead.empty();
    return r;
  }

  // Columns drawn at random, less the basis before them. Those for which nothing is left stay zero, and are told.
  std::vector<std::int64_t> draw_anew(std::int64_t at, const std::vector<std::int64_t>& dead) {
    ++draws_;
    Vectors x = space_.load(ctx_, at);
    for_each_point(ctx_, x.rows, [&](std::int64_t i) {
      for (const std::int64_t c : dead) x.row(i)[c] = random(i, c);
    });
    remove_means(ctx_, x);
    space_.store(ctx_, at, x);
    // The others, which are orthonormal, come first, so that they stay what they are.
    std::vector<std::int64_t> order;
    for (std::int64_t c = 0; c < b_; ++c) {
      if (std::find(dead.begin(), dead.end(), c) == dead.end()) order.push_back(c);
    }
    order.insert(order.end(), dead.begin(), dead.end());
    std::vector<std::int64_t> left;
    for (int pass = 0; pass < 2; ++pass) {
      const Small before = space_.gram(ctx_, at);
      if (at > 0) static_cast<void>(space_.project(ctx_, at, at));
      const Small after = space_.gram(ctx_, at);
      Small g(b_, b_);
      for (std::int64_t i = 0; i < b_; ++i) {
        for (std::int64_t j = 0; j < b_; ++j) g(i, j) = after(order[i], order[j]);
        if (g(i, i) <= kNothing * before(order[i], order[i])) g(i, i) = 0;
      }
      const Triangle t = cholesky(g, kDependentSquare);
      Small change(b_, b_);
      for (std::int64_t i = 0; i < b_; ++i) {
        for (std::int64_t j = 0; j < b_; ++j) change(order[i], order[j]) = t.inverse(i, j);
      }
      space_.scale(ctx_, at, change);
      left.clear();
      for (const std::int64_t i : t.dead) left.push_back(order[i]);
    }
    return left;
  }

  // Until the basis is full. False: products are left neither for that nor for what `examine` takes then.
  bool expand() {
    const std::int64_t examined = (kSmoothing * ((checked_ + b_ - 1) / b_) + 1) * (options_.filtered ? 1 : 2);
    for (std::int64_t j = known_; j < full_; ++j) {
      if (steps_ + filter_.degree + examined > options_.max_steps) return false;
      space_.filter(ctx_, filter_, j, j + 1);
      steps_ += filter_.degree;
      Small c = space_.project(ctx_, j + 1, j + 1);
      std::vector<double> noise(static_cast<std::size_t>(b_), 0.0);
      for (std::int64_t i = 0; i < c.rows; ++i) {
        for (std::int64_t k = 0; k < b_; ++k) noise[k] = std::hypot(noise[k], kNoise * c(i, k));
      }
      tail_ = normalize(j + 1, noise);
      // Where the block's columns nearly depended on each other, what was left of the basis in them has grown.
      const Small again = times(space_.project(ctx_, j + 1, j + 1), tail_);
      tail_ = times(normalize(j + 1, std::vector<double>(noise.size(), 0.0)), tail_);
      for (std::int64_t i = 0; i < c.rows; ++i) {
        for (std::int64_t k = 0; k < b_; ++k) h_(i, j * b_ + k) = c(i, k) + again(i, k);
      }
    }
    return true;
  }

  // The best vectors of the basis, by what the filter makes of them, become its first blocks, and what is left of the
  // last product the one after them.
  void restart() {
    const std::int64_t m = full_ * b_;
    Small positive(m, m);  // the filter is nowhere below -1
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = i; j < m; ++j) {
        const double mean = i / b_ == j / b_ ? (h_(i, j) + h_(j, i)) / 2 : h_(i, j);
        positive(i, j) = positive(j, i) = mean + (i == j ? 2.0 : 0.0);
      }
    }
    const SingularValues svd = singular_values(ctx_, std::move(positive));
    const std::int64_t kept = keep_ * b_;
    Small chosen(m, kept);
    h_ = Small(m, m);
    for (std::int64_t j = 0; j < kept; ++j) {
      const std::int64_t from = m - 1 - j;
      for (std::int64_t i = 0; i < m; ++i) chosen(i, j) = svd.right(i, from);
      h_(j, j) = svd.values[from] - 2;
    }
    if (filter_.low == 0 && filter_.degree == 1) bound_by(svd);
    const double place = svd.values[m - 1 - std::min(kBelow * b_, m - 1)] - 2;
    const double grown = place > 1 ? std::cosh(std::acosh(place) / static_cast<double>(filter_.degree)) : place;
    below_ = filter_.degree > 1 && place <= 1 ? filter_.low
                                              : (filter_.low + filter_.high - grown * (filter_.high - filter_.low)) / 2;
    space_.rotate(ctx_, full_, chosen);
    space_.move(ctx_, full_, keep_);
    known_ = keep_;
    ++result_.restarts;
  }

  // The unfiltered basis knows the largest eigenvalue well: its residual bounds how far it may be.
  void bound_by(const SingularValues& svd) {
    const std::int64_t m = svd.right.cols;
    double left = 0;
    for (std::int64_t i = 0; i < b_; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < b_; ++k) sum += tail_(i, k) * svd.right(m - b_ + k, 0);
      left = std::hypot(left, sum);
    }
    const double place = svd.values[0] - 2 - left;
    const double top = (filter_.high + filter_.low - place * (filter_.high - filter_.low)) / 2;
    result_.bound = std::min(result_.bound, 1.02 * top);
  }

  // Takes the values from A, and says whether they will do. The best vectors, a block of them.
  Vectors examine(bool smoothed) {
    Vectors x(space_.points(), (checked_ + b_ - 1) / b_ * b_);
    for (std::int64_t first = 0; first < x.width; first += b_) {
      std::int64_t from = first / b_;
      // What rounding left in the directions of large eigenvalues, where it counts most, is damped away.
      const double low = std::max(result_.bound / kSmoothing, 4 * below_);
      if (smoothed && low < result_.bound / 2) {
        space_.filter(ctx_, {kSmoothing, low, result_.bound}, from, full_);
        steps_ += kSmoothing;
        from = full_;
      }
      const Vectors part = space_.load(ctx_, from);
      for_each_point(ctx_, x.rows, [&](std::int64_t i) { std::copy_n(part.row(i), b_, x.row(i) + first); });
    }
    remove_means(ctx_, x);
    orthonormalize(ctx_, x);
    values_ = best_of(ctx_, a_, x, x.width);
    const std::vector<double> left = lengths(ctx_, gradient(ctx_, a_, in_, x, values_));
    ++steps_;
    judge(left);
    Smallest& found = result_.smallest;
    if (done_) {
      found.vectors = columns(ctx_, x, 0, options_.wanted, options_.wanted);
      found.values.assign(values_.begin(), values_.begin() + options_.wanted);
      found.angles.resize(static_cast<std::size_t>(options_.wanted));
      found.residuals.assign(left.begin(), left.begin() + options_.wanted);
      found.norm = norm_bound(ctx_, a_, in_);
      found.next = std::cmp_greater(values_.size(), options_.wanted) ? values_[options_.wanted] : 0;
      return x;
    }
    return x.width == b_ ? std::move(x) : columns(ctx_, x, 0, std::min(b_, x.width), b_);
  }

  void judge(const std::vector<double>& left) {
    const auto width = static_cast<std::int64_t>(values_.size());
    const double largest = result_.bound;
    std::vector<double>& angles = result_.smallest.angles;
    angles.clear();
    bool asked = true;
    bool still = true;
    double worst = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      const double lambda = values_[j] * values_[j];
      double gap = largest;
      for (std::int64_t i = 0; i < width; ++i) {
        const double distance = std::abs(values_[i] * values_[i] - lambda);
        if (distance > kSameCluster * lambda + 100 * kEpsilon * largest) gap = std::min(gap, distance);
      }
      angles.push_back(std::min(1.0, left[j] / gap));
      if (j == options_.wanted && angles[j] > kGuardAngle) asked = still = false;
      if (j >= options_.wanted) continue;
      worst = std::max(worst, left[j] / largest);
      const double resolved = 10 * kEpsilon * largest / gap;
      if (!(left[j] <= kResidual * largest && angles[j] <= std::max(kAngle, resolved))) asked = false;
      if (!(left[j] <= kStillAnswer * largest && angles[j] <= std::max(kStillAngle, resolved))) still = false;
    }
    result_.residual = worst;
    result_.asked = kResidual;
    stalled_ = worst > least_ / 2 ? stalled_ + 1 : 0;
    least_ = std::min(least_, worst);
    ctx_.report(options_.filtered ? "lanczos" : "arnoldi",
                std::clamp(std::log10(std::max(worst, kResidual)) / std::log10(kResidual), 0.0, 1.0));
    result_.smallest.converged = asked || (still && (exhausted_ || stalled_ >= kStalledChecks));
    done_ = result_.smallest.converged || exhausted_ || std::isnan(worst);
  }

  // Whether the values that are known now make a filter that is worth a new start.
  bool renew() {
    const double largest = result_.bound;
    const bool beyond = values_.back() * values_.back() > largest;
    if (beyond) result_.bound = norm_bound(ctx_, a_, in_);
    // Above the wanted ones, also where these are many times the same.
    const double wanted = values_[options_.wanted - 1] * values_[options_.wanted - 1];
    const double low = std::clamp(std::max(below_, kAbove * wanted), 1e3 * kEpsilon * largest, largest / 2);
    if (filter_.degree > 1 && low > kSmaller * filter_.low && !beyond) return false;
    filter_ = {1, low, result_.bound};
    const auto degree_for = [&](double value, double growth) {
      return growth / std::acosh(std::max(place_of(filter_, value), 1 + 1e-12));
    };
    const double degree = std::min(degree_for(wanted, kGrowth), degree_for(0, kMaxGrowth));
    filter_.degree = std::max<std::int64_t>(2, static_cast<std::int64_t>(degree) + 1);
    return true;
  }

  const Context& ctx_;
  const LocalRows& a_;
  const Incidence& in_;
  KrylovSpace& space_;
  const KrylovOptions& options_;
  std::int64_t b_;
  std::int64_t full_;  // blocks of a full basis; one more follows
  std::int64_t checked_ = 0;
  std::int64_t keep_ = 1;
  std::int64_t known_ = 0;  // blocks whose columns of h_ are there
  Small h_;
  Small tail_;
  Filter filter_;
  double below_ = 0;  // an estimate of the eigenvalue that a new filter's growth should begin with
  std::vector<double> values_;
  std::int64_t steps_ = 0;
  std::int64_t draws_ = 0;
  double least_ = 1;
  int stalled_ = 0;
  bool exhausted_ = false;
  bool done_ = false;
  KrylovResult result_;
};

}  // namespace

KrylovShape krylov_shape(std::int64_t points, const KrylovOptions& options) {
  const std::int64_t room = points - 1;  // what is orthogonal to the constant
  const std::int64_t checked = options.wanted + kGuards;
  const std::int64_t block = (checked + kLanczosColumns - 1) / kLanczosColumns * kLanczosColumns;
  if (options.filtered && room >= 6 * block) {
    return {block, std::min(kLanczosBlocks + 1, room / block)};
  }
  return {1, std::min(std::max(kArnoldiColumns, 4 * checked), room) + 1};
}

std::uint64_t krylov_bytes(const LocalRows& a, const KrylovShape& shape, const KrylovOptions& options) {
  const auto width = static_cast<std::uint64_t>(std::max(shape.block, options.wanted + kGuards + shape.block));
  const auto columns = static_cast<std::uint64_t>(shape.block * shape.blocks);
  const auto points = static_cast<std::uint64_t>(a.points);
  // Four of what is examined, A of it, and the projected matrix with its vectors.
  return (width * (4 * points + static_cast<std::uint64_t>(a.rows())) + 8 * columns * columns) * sizeof(double) +
         points * sizeof(std::int64_t) + a.cols.size() * 2 * sizeof(Point);
}

KrylovResult krylov(const Context& ctx, const LocalRows& a, const Incidence& in, KrylovSpace& space,
                    const KrylovOptions& options) {
  return Iteration(ctx, a, in, space, options).run();
}

}  // namespace vicinal::solver
