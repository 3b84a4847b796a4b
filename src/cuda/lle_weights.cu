// See lle_weights.hpp. A warp has one point: its neighborhood, a few columns wide, lies in shared memory (in scratch
// where that is too small), and passes through it in strips of coordinates, so that nothing of size n k d is made. The
// formulas are those of contract clause 17.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "cuda/fold.cuh"
#include "cuda/lle_weights.hpp"

namespace vicinal::cuda {
namespace {

constexpr int kWarps = 4;                   // of a block
constexpr int kStrip = 32;                  // coordinates at a time
constexpr std::int64_t kPart = 1 << 20;     // points between two looks at the cancel token
constexpr std::int64_t kScratchBlocks = 4;  // a multiprocessor, where shared memory is too small
constexpr double kModifiedReg = 1e-3;
constexpr double kNoReflection = 1e-12;
constexpr double kOrthogonal = 1e-15;  // cosine at which two columns need no rotation
constexpr int kSweeps = 60;            // Jacobi's converge within ten

struct Shape {
  const double* table;
  const std::int32_t* ids;
  int d;
  int k;
  int nev;  // singular values there are
  int dim;
  LleVariant variant;
  double reg;

  explicit Shape(const LocalTask& task)
      : table(task.table),
        ids(task.ids),
        d(static_cast<int>(task.d)),
        k(static_cast<int>(task.k)),
        nev(static_cast<int>(std::min(task.k, task.d))),
        dim(static_cast<int>(task.dim)),
        variant(task.variant),
        reg(task.reg) {}

  __host__ __device__ int strip() const { return d < kStrip ? d : kStrip; }
  // Numbers a warp has room for.
  __host__ __device__ std::int64_t numbers() const {
    const std::int64_t squares = variant == LleVariant::standard ? 1 : variant == LleVariant::modified ? 3 : 2;
    return (strip() + squares * k + 5) * static_cast<std::int64_t>(k);
  }
};

/// One point's neighborhood. All lanes call every function together.
class Frame {
 public:
  __device__ Frame(const Shape& shape, double* room)
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
    for (int begin = 0; begin < s_.d; begin += kStrip) {
      const int count = min(kStrip, s_.d - begin);
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
    const double reg = total > 0 ? kModifiedReg * total : 1;
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
    for (int c = lane_; c < s; c += 32) mirror_[c] = length < kNoReflection ? 0 : (alpha - mirror_[c]) / length;
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
      for (int begin = 0; begin < s_.d; begin += kStrip) {
        const int count = min(kStrip, s_.d - begin);
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
    for (int sweep = 0; sweep < kSweeps && rotated; ++sweep) {
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
          if (!(fabs(ab) > kOrthogonal * sqrt(aa) * sqrt(bb))) continue;
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

  const Shape& s_;
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

extern __shared__ double lle_shared[];

/// Calls body(frame, point) for the points [begin, end), a warp each.
template <class Body>
__device__ void for_each_point(const Shape& shape, std::int64_t begin, std::int64_t end, double* scratch,
                               const Body& body) {
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  double* const room = scratch != nullptr ? scratch + warp * shape.numbers()
                                          : lle_shared + static_cast<std::int64_t>(threadIdx.x / 32) * shape.numbers();
  Frame frame(shape, room);
  for (std::int64_t i = begin + warp; i < end; i += static_cast<std::int64_t>(gridDim.x) * kWarps) {
    frame.go_to(i);
    body(frame, i);
  }
}

struct Output {
  const std::int64_t* first;
  double* values;
  std::int64_t width;
};

__global__ void rows_kernel(Shape shape, std::int64_t begin, std::int64_t end, double* scratch, Output to,
                            unsigned long long* wrong, unsigned long long* largest) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  for_each_point(shape, begin, end, scratch, [&](Frame& frame, std::int64_t i) {
    double* const out = to.values + to.first[i] * to.width;
    switch (shape.variant) {
      case LleVariant::standard: {
        const bool good = frame.find_weights();
        double most = 0;
        if (lane == 0) out[0] = 1;
        for (int j = lane; j < shape.k; j += 32) {
          const double weight = frame.weight(j);
          out[1 + j] = -weight;
          most = fmax(most, fabs(weight));
        }
        most = most_of_warp(most);
        if (lane == 0 && !good) atomicMin(wrong, static_cast<unsigned long long>(i));
        if (lane == 0) atomicMax(largest, static_cast<unsigned long long>(__double_as_longlong(most)));
        break;
      }
      case LleVariant::modified:
        frame.modified_rows(static_cast<int>(to.first[i + 1] - to.first[i]), out);
        break;
      case LleVariant::hessian:
        frame.hessian_rows(out);
        break;
      default:
        frame.tangent_rows(out);
    }
    __syncwarp();
  });
}

/// What the values after the first `kept` are to those, 0 where there are none.
__device__ double share_left_out(const double* squares, int count, int kept) {
  double head = 0;
  double tail = 0;
  for (int c = 0; c < count; ++c) (c < kept ? head : tail) += squares[c];
  return head > 0 ? tail / head : 0;
}

__global__ void spectrum_kernel(Shape shape, std::int64_t begin, std::int64_t end, double* scratch, double* spectra,
                                double* ratios) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  for_each_point(shape, begin, end, scratch, [&](Frame& frame, std::int64_t i) {
    frame.find_spectrum();
    for (int c = lane; c < shape.nev; c += 32) spectra[i * shape.nev + c] = frame.squares()[c];
    if (lane == 0) ratios[i] = share_left_out(frame.squares(), shape.nev, shape.dim);
    __syncwarp();
  });
}

/// How many sets of weights a row of `modified` has. The row whose own share is the median compares equal, because both
/// are made in the same way.
__global__ void sets_kernel(Shape shape, std::int64_t n, const double* spectra, double eta, std::int64_t* sets) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int below = 0;
  for (int kept = 1; kept < shape.nev; ++kept) {
    below += share_left_out(spectra + i * shape.nev, shape.nev, kept) < eta ? 1 : 0;
  }
  sets[i] = max(1, shape.k - shape.nev + below);
}

__global__ void even_first_kernel(std::int64_t points, std::int64_t rows_each, std::int64_t* first) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i <= points) first[i] = i * rows_each;
}

__global__ void cols_kernel(const std::int32_t* ids, std::int64_t n, int k, int own, std::int32_t* cols) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int width = k + own;
  if (at >= n * width) return;
  const std::int64_t i = at / width;
  const int j = static_cast<int>(at - i * width) - own;
  cols[at] = j < 0 ? static_cast<std::int32_t>(i) : ids[i * k + j];
}

bool has_own_column(LleVariant variant) {
  return variant == LleVariant::standard || variant == LleVariant::modified;
}

std::int64_t rows_at_most(const LocalTask& task) {
  switch (task.variant) {
    case LleVariant::standard:
      return 1;
    case LleVariant::modified:
      return task.k - 1;
    case LleVariant::hessian:
      return task.dim * (task.dim + 1) / 2;
    default:
      return task.k - 1 - task.dim;
  }
}

/// Where frames lie, and the launches over all points.
class Launches {
 public:
  Launches(const Engine& engine, const Host& host, const LocalTask& task)
      : engine_(engine), host_(host), n_(task.n), shape_(task) {
    shared_ = bytes(shape_);
    if (shared_ <= engine.shared_memory) {
      blocks_ = blocks_for(std::min(n_, kPart), kWarps);
      return;
    }
    shared_ = 0;
    blocks_ = static_cast<unsigned>(engine.multiprocessors * kScratchBlocks);
    scratch_ = Buffer<double>(engine, scratch_numbers(engine, shape_));
  }
  static std::size_t bytes(const Shape& shape) {
    return static_cast<std::size_t>(shape.numbers()) * kWarps * sizeof(double);
  }
  static std::int64_t scratch_numbers(const Engine& engine, const Shape& shape) {
    return bytes(shape) <= engine.shared_memory ? 0
                                                : engine.multiprocessors * kScratchBlocks * kWarps * shape.numbers();
  }

  template <class... Arguments>
  void run(void (*kernel)(Shape, std::int64_t, std::int64_t, double*, Arguments...), double from, double share,
           Arguments... arguments) const {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_)),
          "ask for shared memory");
    for (std::int64_t begin = 0; begin < n_; begin += kPart) {
      kernel<<<blocks_, kWarps * 32, shared_, engine_.stream>>>(shape_, begin, std::min(n_, begin + kPart),
                                                                scratch_.data(), arguments...);
      check_launch("weights of neighbors");
      engine_.synchronize();
      host_.check_cancelled();
      host_.progress("weights", from + share * static_cast<double>(begin) / static_cast<double>(n_));
    }
  }
  [[nodiscard]] const Shape& shape() const { return shape_; }

 private:
  const Engine& engine_;
  const Host& host_;
  std::int64_t n_;
  Shape shape_;
  std::size_t shared_ = 0;
  unsigned blocks_ = 0;
  Buffer<double> scratch_;
};

/// first[n + 1] of `modified`, on the host.
std::vector<std::int64_t> first_of_sets(const Engine& engine, const Launches& launches, std::int64_t n) {
  const Shape& shape = launches.shape();
  const Buffer<double> spectra(engine, n * shape.nev);
  std::vector<double> ratios(static_cast<std::size_t>(n));
  {
    const Buffer<double> found(engine, n);
    launches.run(spectrum_kernel, 0.0, 0.5, spectra.data(), found.data());
    to_host(engine, ratios.data(), found.data(), n);
    engine.synchronize();
  }
  // The median, of an even number the mean of the two in the middle.
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  double eta = *middle;
  if (n % 2 == 0) eta = (eta + *std::max_element(ratios.begin(), middle)) / 2;
  const Buffer<std::int64_t> sets(engine, n);
  sets_kernel<<<blocks_for(n, 256), 256, 0, engine.stream>>>(shape, n, spectra.data(), eta, sets.data());
  check_launch("sets of weights");
  std::vector<std::int64_t> first(static_cast<std::size_t>(n) + 1, 0);
  to_host(engine, first.data() + 1, sets.data(), n);
  engine.synchronize();
  for (std::int64_t i = 0; i < n; ++i) first[i + 1] += first[i];
  return first;
}

}  // namespace

std::int64_t block_width(const LocalTask& task) {
  return task.k + (has_own_column(task.variant) ? 1 : 0);
}

std::uint64_t local_bytes(const Engine& engine, const LocalTask& task) {
  const Shape shape(task);
  std::uint64_t bytes = DeviceBlocks::bytes(task.n, block_width(task), task.n * rows_at_most(task));
  bytes += static_cast<std::uint64_t>(Launches::scratch_numbers(engine, shape)) * sizeof(double);
  if (task.variant == LleVariant::modified) bytes += static_cast<std::uint64_t>(task.n) * (shape.nev + 2) * 8;
  return bytes;
}

namespace {

// As the host's sentence has it.
std::string shortest(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace

DeviceBlocks local_rows(const Engine& engine, const Host& host, const LocalTask& task, double& largest) {
  const std::int64_t n = task.n;
  const bool modified = task.variant == LleVariant::modified;
  const Launches launches(engine, host, task);
  std::vector<std::int64_t> first;
  if (modified) first = first_of_sets(engine, launches, n);
  DeviceBlocks a(engine, n, block_width(task), modified ? first.back() : n * rows_at_most(task));
  if (modified) {
    to_device(engine, a.first.data(), first.data(), n + 1);
  } else {
    even_first_kernel<<<blocks_for(n + 1, 256), 256, 0, engine.stream>>>(n, rows_at_most(task), a.first.data());
    check_launch("rows of blocks");
  }
  find_owners(engine, a);
  cols_kernel<<<blocks_for(n * a.width, 256), 256, 0, engine.stream>>>(
      task.ids, n, static_cast<int>(task.k), has_own_column(task.variant) ? 1 : 0, a.cols.data());
  check_launch("columns of blocks");
  const Buffer<unsigned long long> told(engine, 2);  // the first row that is wrong, and the largest weight
  check(cudaMemsetAsync(told.data(), 0xff, sizeof(unsigned long long), engine.stream), "clear device memory");
  check(cudaMemsetAsync(told.data() + 1, 0, sizeof(unsigned long long), engine.stream), "clear device memory");
  launches.run(rows_kernel, modified ? 0.5 : 0.0, modified ? 0.5 : 1.0,
               Output{a.first.data(), a.values.data(), a.width}, told.data(), told.data() + 1);
  unsigned long long wrong = 0;
  to_host(engine, &wrong, told.data(), 1);
  check(cudaMemcpyAsync(&largest, told.data() + 1, sizeof(double), cudaMemcpyDeviceToHost, engine.stream),
        "copy from the device");
  engine.synchronize();
  if (wrong != ~0ULL) {
    throw Failure{ErrorCode::bad_data, "reg: is " + shortest(task.reg) + ", but the neighbors of row " +
                                           std::to_string(wrong) +
                                           " do not determine its weights; a larger share does"};
  }
  return a;
}

}  // namespace vicinal::cuda
