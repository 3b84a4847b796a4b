// One point's neighborhood, a warp's: its columns lie in shared memory (in scratch where that is too small), and
// coordinates pass through it in strips, so that nothing of size n k d is made. The formulas are those of contract
// clause 17.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/base/fold.cuh"
#include "cuda/lle/weights.hpp"
#include "formulas/lle/constants.hpp"

namespace vicinal::cuda::lle {

inline constexpr int kFrameStrip = 32;  // coordinates at a time

/// What is asked for, of all points.
struct FrameShape {
  const double* table;
  const std::int32_t* ids;
  int d;
  int k;
  int nev;  // singular values there are
  int dim;
  LleVariant variant;
  double reg;

  explicit FrameShape(const LocalTask& task)
      : table(task.table),
        ids(task.ids),
        d(static_cast<int>(task.d)),
        k(static_cast<int>(task.k)),
        nev(static_cast<int>(std::min(task.k, task.d))),
        dim(static_cast<int>(task.dim)),
        variant(task.variant),
        reg(task.reg) {}

  __host__ __device__ int strip() const { return d < kFrameStrip ? d : kFrameStrip; }
  // Numbers a warp has room for.
  __host__ __device__ std::int64_t numbers() const {
    const std::int64_t squares = variant == LleVariant::standard ? 1 : variant == LleVariant::modified ? 3 : 2;
    return (strip() + squares * k + 5) * static_cast<std::int64_t>(k);
  }
};

/// One point's neighborhood. All lanes call every function together.
class Frame {
 public:
  __device__ Frame(const FrameShape& shape, double* room)
      : s_(shape),
        k_(shape.k),
        lane_(static_cast<int>(threadIdx.x) & 31),
        strip_(room),
        columns_(strip_ + shape.strip() * k_),
        vector_(columns_ + k_ * k_),
        weights_(vector_ + k_),
        scales_(weights_ + k_),
        squares_(scales_ + k_),
        mirror_(squares_ + k_),
        basis_(mirror_ + k_),
        v_(basis_ + k_ * k_) {}

  __device__ void go_to(std::int64_t point) {
    point_ = point;
    // A power of two that brings the largest difference to [1, 2): squares stay in range, and nothing here depends on a
    // common factor.
    double largest = 0;
    if (s_.d < 32) {
      for (int j = lane_; j < k_; j += 32) {
        for (int c = 0; c < s_.d; ++c) largest = fmax(largest, fabs(difference(j, c)));
      }
    } else {
      for (int j = 0; j < k_; ++j) {
        for (int c = lane_; c < s_.d; c += 32) largest = fmax(largest, fabs(difference(j, c)));
      }
    }
    largest = most_of_warp(largest);
    exponent_ = largest == 0 || !isfinite(largest) ? 0 : -ilogb(largest);
  }

  /// Weights [k] that make the row of its neighbors, in `weights_`. False where they are not determined.
  __device__ bool find_weights() {
    double* const gram = columns_;
    for (int at = lane_; at < k_ * k_; at += 32) gram[at] = 0;
    for (int begin = 0; begin < s_.d; begin += kFrameStrip) {
      const int count = min(kFrameStrip, s_.d - begin);
      load(begin, count, strip_);
      for (int at = lane_; at < k_ * k_; at += 32) {
        const int i = at / k_;
        const int j = at - i * k_;
        if (j > i) continue;
        double sum = gram[at];
        for (int c = 0; c < count; ++c) sum += strip_[c * k_ + i] * strip_[c * k_ + j];
        gram[at] = sum;
      }
      __syncwarp();
    }
    double trace = 0;
    for (int i = 0; i < k_; ++i) trace += gram[i * k_ + i];
    const double added = trace > 0 ? s_.reg * trace : s_.reg;
    // Cholesky, then G w = 1.
    bool good = true;
    for (int j = 0; j < k_; ++j) {
      double pivot = gram[j * k_ + j] + added;
      for (int c = 0; c < j; ++c) pivot -= gram[j * k_ + c] * gram[j * k_ + c];
      good = good && pivot > 0;
      const double root = sqrt(pivot);
      __syncwarp();
      for (int i = j + 1 + lane_; i < k_; i += 32) {
        double sum = gram[i * k_ + j];
        for (int c = 0; c < j; ++c) sum -= gram[i * k_ + c] * gram[j * k_ + c];
        gram[i * k_ + j] = sum / root;
      }
      if (lane_ == 0) gram[j * k_ + j] = root;
      __syncwarp();
    }
    for (int i = lane_; i < k_; i += 32) weights_[i] = 1;
    for (int j = 0; j < k_; ++j) {
      __syncwarp();
      const double solved = weights_[j] / gram[j * k_ + j];
      __syncwarp();
      if (lane_ == 0) weights_[j] = solved;
      for (int i = j + 1 + lane_; i < k_; i += 32) weights_[i] -= gram[i * k_ + j] * solved;
    }
    for (int j = k_ - 1; j >= 0; --j) {
      __syncwarp();
      const double solved = weights_[j] / gram[j * k_ + j];
      __syncwarp();
      if (lane_ == 0) weights_[j] = solved;
      for (int i = lane_; i < j; i += 32) weights_[i] -= gram[j * k_ + i] * solved;
    }
    __syncwarp();
    double total = 0;
    for (int i = 0; i < k_; ++i) total += weights_[i];
    __syncwarp();
    for (int i = lane_; i < k_; i += 32) weights_[i] /= total;
    __syncwarp();
    return good && isfinite(total) && total > 0;
  }
  __device__ double weight(int j) const { return weights_[j]; }

  /// Squared singular values of neighbors less the row, descending: squares()[nev].
  __device__ void find_spectrum() { decompose(false); }
  __device__ const double* squares() const { return squares_; }

  /// Rows of ltsa [k - 1 - dim, k].
  __device__ void tangent_rows(double* out) {
    decompose(true);
    start_basis();
    reflectors(1 + s_.dim);
    complete(1 + s_.dim, 1 + s_.dim, k_, out);
  }

  /// Rows of the true Hessian [dim (dim + 1) / 2, k].
  __device__ void hessian_rows(double* out) {
    decompose(true);
    start_basis();
    const int count = 1 + s_.dim + s_.dim * (s_.dim + 1) / 2;
    double* column = basis_ + (1 + s_.dim) * k_;
    for (int a = 0; a < s_.dim; ++a) {
      for (int b = a; b < s_.dim; ++b, column += k_) {
        for (int j = lane_; j < k_; j += 32) column[j] = basis_[(1 + a) * k_ + j] * basis_[(1 + b) * k_ + j];
      }
    }
    __syncwarp();
    reflectors(count);
    complete(count, 1 + s_.dim, count, out);
  }

  /// Rows of modified [s, 1 + k], the row's own column first.
  __device__ void modified_rows(int s, double* out) {
    decompose(false);
    // All of V: the singular vectors, completed.
    place_vectors(basis_, s_.nev);
    reflectors(s_.nev);
    complete(s_.nev, 0, k_, v_);
    __syncwarp();
    double total = 0;
    for (int c = 0; c < s_.nev; ++c) total += squares_[c];
    const double reg = total > 0 ? solver::kModifiedReg * total : 1;
    for (int j = lane_; j < k_; j += 32) weights_[j] = 0;
    for (int c = 0; c < k_; ++c) {
      const double* v = v_ + c * k_;
      const double share = sum_of(v) / ((c < s_.nev ? squares_[c] : 0) + reg);
      for (int j = lane_; j < k_; j += 32) weights_[j] += share * v[j];
    }
    __syncwarp();
    const double sum = sum_of(weights_);
    for (int j = lane_; j < k_; j += 32) weights_[j] /= sum;

    const double* last = v_ + (k_ - s) * k_;  // V_i, column by column
    double length = 0;
    for (int c = 0; c < s; ++c) {
      const double entry = sum_of(last + c * k_);
      if (lane_ == 0) mirror_[c] = entry;
      length += entry * entry;
    }
    const double alpha = sqrt(length / s);
    __syncwarp();
    length = 0;
    for (int c = 0; c < s; ++c) length += (alpha - mirror_[c]) * (alpha - mirror_[c]);
    length = sqrt(length);
    __syncwarp();
    for (int c = lane_; c < s; c += 32) mirror_[c] = length < solver::kNoReflection ? 0 : (alpha - mirror_[c]) / length;
    __syncwarp();
    for (int j = lane_; j < k_; j += 32) {
      double along = 0;
      for (int c = 0; c < s; ++c) along += last[c * k_ + j] * mirror_[c];
      vector_[j] = along;
    }
    for (int c = 0; c < s; ++c, out += 1 + k_) {
      if (lane_ == 0) out[0] = -1;
      for (int j = lane_; j < k_; j += 32) {
        out[1 + j] = last[c * k_ + j] - 2 * vector_[j] * mirror_[c] + (1 - alpha) * weights_[j];
      }
    }
    __syncwarp();
  }

 private:
  __device__ double difference(int j, int c) const {
    const std::int64_t id = s_.ids[point_ * k_ + j];
    return s_.table[id * s_.d + c] - s_.table[point_ * s_.d + c];
  }

  /// Coordinates [begin, begin + count) of the neighbors less the row: to[count, k].
  __device__ void load(int begin, int count, double* to) {
    __syncwarp();
    for (int at = lane_; at < count * k_; at += 32) {
      const int j = at / count;
      const int c = at - j * count;
      to[c * k_ + j] = scalbn(difference(j, begin + c), exponent_);
    }
    __syncwarp();
  }

  __device__ void less_mean(int count, double* rows) const {
    for (int c = lane_; c < count; c += 32) {
      double mean = 0;
      for (int j = 0; j < k_; ++j) mean += rows[c * k_ + j];
      mean /= k_;
      for (int j = 0; j < k_; ++j) rows[c * k_ + j] -= mean;
    }
    __syncwarp();
  }

  __device__ double sum_of(const double* x) const {
    double sum = 0;
    for (int j = lane_; j < k_; j += 32) sum += x[j];
    return sum_of_warp(sum);
  }

  /// Left singular vectors, not yet of length one, of the neighbors less the row (and less their mean): columns_[nev,
  /// k]; their squared lengths by rank in squares_, ranks in scales_.
  __device__ void decompose(bool centred) {
    if (s_.d <= k_) {
      load(0, s_.d, columns_);
      if (centred) less_mean(s_.d, columns_);
    } else {
      // C' = Q R, so that C = R' Q' has the left singular vectors of R'; rows of R are columns of R'.
      for (int at = lane_; at < k_ * k_; at += 32) columns_[at] = 0;
      for (int begin = 0; begin < s_.d; begin += kFrameStrip) {
        const int count = min(kFrameStrip, s_.d - begin);
        load(begin, count, strip_);
        if (centred) less_mean(count, strip_);
        fold(columns_, strip_, count, k_);
      }
    }
    make_orthogonal();
    for (int c = 0; c < s_.nev; ++c) {
      double square = 0;
      for (int j = lane_; j < k_; j += 32) square += columns_[c * k_ + j] * columns_[c * k_ + j];
      square = sum_of_warp(square);
      if (lane_ == 0) mirror_[c] = square;
    }
    __syncwarp();
    for (int c = lane_; c < s_.nev; c += 32) {
      int rank = 0;
      for (int other = 0; other < s_.nev; ++other) {
        rank += mirror_[other] > mirror_[c] || (mirror_[other] == mirror_[c] && other < c) ? 1 : 0;
      }
      scales_[c] = rank;
      squares_[rank] = mirror_[c];
    }
    __syncwarp();
  }

  /// One-sided Jacobi rotations (solver/tall.hpp).
  __device__ void make_orthogonal() {
    bool rotated = true;
    for (int sweep = 0; sweep < solver::kMaxJacobiSweeps && rotated; ++sweep) {
      rotated = false;
      for (int p = 0; p + 1 < s_.nev; ++p) {
        for (int r = p + 1; r < s_.nev; ++r) {
          double* const a = columns_ + p * k_;
          double* const b = columns_ + r * k_;
          double aa = 0;
          double bb = 0;
          double ab = 0;
          for (int j = lane_; j < k_; j += 32) {
            aa += a[j] * a[j];
            bb += b[j] * b[j];
            ab += a[j] * b[j];
          }
          aa = sum_of_warp(aa);
          bb = sum_of_warp(bb);
          ab = sum_of_warp(ab);
          if (!(fabs(ab) > solver::kOrthogonal * sqrt(aa) * sqrt(bb))) continue;
          rotated = true;
          const double zeta = (bb - aa) / (2 * ab);
          const double t = (zeta >= 0 ? 1.0 : -1.0) / (fabs(zeta) + sqrt(1 + zeta * zeta));
          const double c = 1 / sqrt(1 + t * t);
          const double s = c * t;
          for (int j = lane_; j < k_; j += 32) {
            const double was = a[j];
            a[j] = c * was - s * b[j];
            b[j] = s * was + c * b[j];
          }
        }
      }
    }
    __syncwarp();
  }

  /// The first `count` singular vectors, at length one: to[count, k]. Those of value 0 are zeros.
  __device__ void place_vectors(double* to, int count) const {
    for (int c = 0; c < s_.nev; ++c) {
      const int rank = static_cast<int>(scales_[c]);
      if (rank >= count) continue;
      const double square = squares_[rank];
      const double length = sqrt(square);
      for (int j = lane_; j < k_; j += 32) to[rank * k_ + j] = square > 0 ? columns_[c * k_ + j] / length : 0;
    }
    __syncwarp();
  }

  // basis_: the constant and the first `dim` singular vectors.
  __device__ void start_basis() {
    for (int j = lane_; j < k_; j += 32) basis_[j] = 1;
    for (int at = lane_; at < s_.dim * k_; at += 32) basis_[k_ + at] = 0;
    __syncwarp();
    place_vectors(basis_ + k_, min(s_.dim, s_.nev));
  }

  /// Makes Householder's reflectors of the first `count` columns of basis_, in their place.
  __device__ void reflectors(int count) {
    for (int c = 0; c < count; ++c) {
      double* const v = basis_ + c * k_;
      for (int b = 0; b < c; ++b) reflect(b, v);
      double square = 0;
      for (int j = c + lane_; j < k_; j += 32) square += v[j] * v[j];
      square = sum_of_warp(square);
      const double head = v[c];
      const double length = sqrt(square);
      __syncwarp();
      // A column without length: its place is taken by a unit vector. Else 2 / |v|^2 with v[c] changed.
      if (lane_ == 0) {
        scales_[c] = square == 0 ? 0 : 1 / (square + fabs(head) * length);
        v[c] = square == 0 ? head : head + (head > 0 ? length : -length);
      }
      __syncwarp();
    }
  }

  /// Columns [from, to) of the orthogonal matrix that the reflectors make, as rows out[to - from, k].
  __device__ void complete(int count, int from, int to, double* out) {
    for (int c = from; c < to; ++c, out += k_) {
      for (int j = lane_; j < k_; j += 32) vector_[j] = j == c ? 1 : 0;
      __syncwarp();
      for (int b = count - 1; b >= 0; --b) reflect(b, vector_);
      for (int j = lane_; j < k_; j += 32) out[j] = vector_[j];
    }
  }

  __device__ void reflect(int by, double* x) const {
    const double scale = scales_[by];
    if (scale == 0) return;
    const double* const v = basis_ + by * k_;
    double sum = 0;
    for (int j = by + lane_; j < k_; j += 32) sum += v[j] * x[j];
    sum = sum_of_warp(sum) * scale;
    for (int j = by + lane_; j < k_; j += 32) x[j] -= sum * v[j];
    __syncwarp();
  }

  const FrameShape& s_;
  int k_;
  int lane_;
  std::int64_t point_ = 0;
  int exponent_ = 0;
  double* strip_;
  double* columns_;
  double* vector_;
  double* weights_;
  double* scales_;
  double* squares_;
  double* mirror_;
  double* basis_;
  double* v_;
};

}  // namespace vicinal::cuda::lle
