// See weights.hpp. The formulas are those of contract clause 17.
#include "solver/weights.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "formulas/lle/block_shape.hpp"
#include "formulas/lle/constants.hpp"
#include "simd/barycentre_kernels.hpp"
#include "solver/tall.hpp"

namespace vicinal::solver {
namespace {

constexpr std::int64_t kTaskRows = 512;
constexpr std::int64_t kMaxTogether = 1 << 14;  // numbers of a row: then several rows' fit into a near cache

/// Whether weights of several rows of d columns are computed at once.
bool are_together(std::int64_t k, std::int64_t d) {
  return k * (k + d) <= kMaxTogether;
}

/// Multiplies by the power of two that brings the largest magnitude to [1, 2), so that squares stay in range: no result
/// here depends on a common factor.
void bring_into_range(double* values, std::int64_t count) {
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(values[i]));
  if (largest == 0 || !std::isfinite(largest)) return;
  const int exponent = -std::ilogb(largest);
  const double factor = std::scalbn(1.0, exponent);
  if (std::isnormal(factor)) {
    for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
  } else {
    for (std::int64_t i = 0; i < count; ++i) values[i] = std::scalbn(values[i], exponent);
  }
}

/// Neighbors [k, d] less `row` [d], in range.
void take_differences(double* neighbors, std::int64_t k, std::int64_t d, const double* row) {
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t c = 0; c < d; ++c) neighbors[i * d + c] -= row[c];
  }
  bring_into_range(neighbors, k * d);
}

/// The neighborhoods of one worker.
class LocalFrame {
 public:
  LocalFrame(const Context& ctx, const LocalTask& task)
      : ctx_(ctx),
        task_(task),
        k_(task.k),
        d_(task.table.cols()),
        nev_(std::min(k_, d_)),
        barycentres_(cpu::barycentres(ctx.isa())) {
    room_.neighbors.resize(static_cast<std::size_t>(k_ * d_));
    room_.row.resize(static_cast<std::size_t>(d_));
    room_.gram.resize(static_cast<std::size_t>(k_ * k_));
  }

  [[nodiscard]] std::int64_t nev() const { return nev_; }

  /// Of the rows [begin, end), of which there are at most kBarycentreRows: those of a row are `step` after those of the
  /// row before.
  void weights(Point begin, Point end, std::int64_t step, double* out) {
    if (!are_together(k_, d_) || !weights_together(begin, end, step, out)) {
      for (Point i = begin; i < end; ++i, out += step) weights_of_one(i, out);
    }
  }

  /// Squared singular values of neighbors less the row, descending.
  const std::vector<double>& spectrum(Point i) {
    less_row(i);
    decompose();
    return squares_;
  }

  /// Rows of ltsa [k - 1 - dim, k].
  void tangent_rows(Point i, double* out) {
    less_mean(i);
    start_basis(1 + task_.dim);
    complete(1 + task_.dim, 1 + task_.dim, k_, out);
  }

  /// Rows of the true Hessian [dim (dim + 1) / 2, k].
  void hessian_rows(Point i, double* out) {
    const std::int64_t pairs = task_.dim * (task_.dim + 1) / 2;
    less_mean(i);
    start_basis(1 + task_.dim + pairs);
    double* column = basis_.data() + (1 + task_.dim) * k_;
    for (std::int64_t a = 0; a < task_.dim; ++a) {
      for (std::int64_t b = a; b < task_.dim; ++b, column += k_) {
        for (std::int64_t j = 0; j < k_; ++j) column[j] = basis_[(1 + a) * k_ + j] * basis_[(1 + b) * k_ + j];
      }
    }
    complete(1 + task_.dim + pairs, 1 + task_.dim, 1 + task_.dim + pairs, out);
  }

  /// Rows of modified [s, 1 + k], the row's own column first.
  void modified_rows(Point i, std::int64_t s, double* out) {
    spectrum(i);
    // All of V: the singular vectors, completed.
    basis_.assign(static_cast<std::size_t>(k_ * k_), 0.0);
    std::copy(vectors_.begin(), vectors_.end(), basis_.begin());
    v_.resize(static_cast<std::size_t>(k_ * k_));
    complete(nev_, 0, k_, v_.data());
    double total = 0;
    for (const double value : squares_) total += value;
    const double reg = total > 0 ? kModifiedReg * total : 1;
    weights_.assign(static_cast<std::size_t>(k_), 0.0);
    for (std::int64_t c = 0; c < k_; ++c) {
      const double* v = v_.data() + c * k_;
      double sum = 0;
      for (std::int64_t j = 0; j < k_; ++j) sum += v[j];
      sum /= (c < nev_ ? squares_[c] : 0) + reg;
      for (std::int64_t j = 0; j < k_; ++j) weights_[j] += sum * v[j];
    }
    double sum = 0;
    for (const double weight : weights_) sum += weight;
    for (double& weight : weights_) weight /= sum;

    const double* last = v_.data() + (k_ - s) * k_;  // V_i, column by column
    mirror_.assign(static_cast<std::size_t>(s), 0.0);
    double length = 0;
    for (std::int64_t c = 0; c < s; ++c) {
      for (std::int64_t j = 0; j < k_; ++j) mirror_[c] += last[c * k_ + j];
      length += mirror_[c] * mirror_[c];
    }
    const double alpha = std::sqrt(length / static_cast<double>(s));
    length = 0;
    for (double& h : mirror_) {
      h = alpha - h;
      length += h * h;
    }
    length = std::sqrt(length);
    for (double& h : mirror_) h = length < kNoReflection ? 0 : h / length;
    weights_of_h_.assign(static_cast<std::size_t>(k_), 0.0);
    for (std::int64_t c = 0; c < s; ++c) {
      for (std::int64_t j = 0; j < k_; ++j) weights_of_h_[j] += last[c * k_ + j] * mirror_[c];
    }
    for (std::int64_t c = 0; c < s; ++c, out += 1 + k_) {
      out[0] = -1;
      for (std::int64_t j = 0; j < k_; ++j) {
        out[1 + j] = last[c * k_ + j] - 2 * weights_of_h_[j] * mirror_[c] + (1 - alpha) * weights_[j];
      }
    }
  }

 private:
  void gather(Point i) {
    core::widen_rows(task_.table, i, i + 1, room_.row.data());
    for (std::int64_t j = 0; j < k_; ++j) {
      const Point id = task_.ids[i * k_ + j];
      core::widen_rows(task_.table, id, id + 1, room_.neighbors.data() + j * d_);
    }
  }

  // False where those of a row are not determined.
  bool weights_together(Point begin, Point end, std::int64_t step, double* out) {
    constexpr std::int64_t kRows = cpu::kBarycentreRows;
    differences_.resize(static_cast<std::size_t>(k_ * d_ * kRows));
    grams_.resize(static_cast<std::size_t>(k_ * k_ * kRows));
    weights_.resize(static_cast<std::size_t>(k_ * kRows));
    for (std::int64_t lane = 0; lane < kRows; ++lane) {
      gather(static_cast<Point>(std::min<std::int64_t>(begin + lane, end - 1)));
      take_differences(room_.neighbors.data(), k_, d_, room_.row.data());
      for (std::int64_t e = 0; e < k_ * d_; ++e) differences_[e * kRows + lane] = room_.neighbors[e];
    }
    if (!barycentres_({k_, d_, task_.reg, differences_.data(), grams_.data(), weights_.data()})) return false;
    for (std::int64_t lane = 0; lane < end - begin; ++lane, out += step) {
      for (std::int64_t j = 0; j < k_; ++j) out[j] = weights_[j * kRows + lane];
    }
    return true;
  }

  void weights_of_one(Point i, double* out) {
    gather(i);
    if (barycentre(room_, k_, d_, task_.reg, out)) return;
    throw Error(ErrorCode::bad_data,
                fmt::format("reg: is {}, but the neighbors of row {} do not determine its weights; a larger share does",
                            task_.reg, i));
  }

  void less(const std::vector<double>& from) {
    for (std::int64_t j = 0; j < k_; ++j) {
      for (std::int64_t c = 0; c < d_; ++c) room_.neighbors[j * d_ + c] -= from[c];
    }
  }

  void less_row(Point i) {
    gather(i);
    take_differences(room_.neighbors.data(), k_, d_, room_.row.data());
  }

  void less_mean(Point i) {
    less_row(i);  // first, so that an offset of the table costs no digits
    mean_.assign(static_cast<std::size_t>(d_), 0.0);
    for (std::int64_t j = 0; j < k_; ++j) {
      for (std::int64_t c = 0; c < d_; ++c) mean_[c] += room_.neighbors[j * d_ + c];
    }
    for (double& mean : mean_) mean /= static_cast<double>(k_);
    less(mean_);
    decompose();
  }

  // Left singular vectors [nev, k] and squared singular values of room_.neighbors [k, d], descending; vectors of value
  // 0 are zeros.
  void decompose() {
    columns_.assign(static_cast<std::size_t>(nev_ * k_), 0.0);
    if (d_ <= k_) {
      for (std::int64_t j = 0; j < k_; ++j) {
        for (std::int64_t c = 0; c < d_; ++c) columns_[c * k_ + j] = room_.neighbors[j * d_ + c];
      }
    } else {
      // C' = Q R, so that C = R' Q' has the left singular vectors of R'.
      Small transposed(d_, k_);
      for (std::int64_t j = 0; j < k_; ++j) {
        for (std::int64_t c = 0; c < d_; ++c) transposed(c, j) = room_.neighbors[j * d_ + c];
      }
      const Small r = triangle_of(std::move(transposed));
      std::copy(r.values.begin(), r.values.end(), columns_.begin());  // rows of R are columns of R'
    }
    make_orthogonal(ctx_, {columns_.data(), k_, nev_});
    order_.resize(static_cast<std::size_t>(nev_));
    lengths_.resize(static_cast<std::size_t>(nev_));
    for (std::int64_t c = 0; c < nev_; ++c) {
      double sum = 0;
      for (std::int64_t j = 0; j < k_; ++j) sum += columns_[c * k_ + j] * columns_[c * k_ + j];
      lengths_[c] = sum;
      order_[c] = c;
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::int64_t a, std::int64_t b) { return lengths_[a] > lengths_[b]; });
    vectors_.assign(static_cast<std::size_t>(nev_ * k_), 0.0);
    squares_.resize(static_cast<std::size_t>(nev_));
    for (std::int64_t c = 0; c < nev_; ++c) {
      squares_[c] = lengths_[order_[c]];
      if (!(squares_[c] > 0)) continue;
      const double length = std::sqrt(squares_[c]);
      for (std::int64_t j = 0; j < k_; ++j) vectors_[c * k_ + j] = columns_[order_[c] * k_ + j] / length;
    }
  }

  // basis_: the constant and the first `dim` singular vectors, in room for `count` columns.
  void start_basis(std::int64_t count) {
    basis_.assign(static_cast<std::size_t>(count * k_), 0.0);
    std::fill_n(basis_.begin(), k_, 1.0);
    std::copy_n(vectors_.begin(), std::min(task_.dim, nev_) * k_, basis_.begin() + k_);
  }

  // Columns [from, to) of the orthogonal matrix whose first `count` columns span those of basis_, as rows [to - from,
  // k].
  void complete(std::int64_t count, std::int64_t from, std::int64_t to, double* out) {
    scales_.assign(static_cast<std::size_t>(count), 0.0);
    for (std::int64_t c = 0; c < count; ++c) {
      double* v = basis_.data() + c * k_;
      for (std::int64_t b = 0; b < c; ++b) reflect(b, v);
      double square = 0;
      for (std::int64_t j = c; j < k_; ++j) square += v[j] * v[j];
      if (square == 0) continue;  // the column's place is taken by a unit vector
      const double length = std::sqrt(square);
      scales_[c] = 1 / (square + std::abs(v[c]) * length);  // 2 / |v|^2 with v[c] changed
      v[c] += v[c] > 0 ? length : -length;
    }
    for (std::int64_t c = from; c < to; ++c, out += k_) {
      std::fill_n(out, k_, 0.0);
      out[c] = 1;
      for (std::int64_t b = count - 1; b >= 0; --b) reflect(b, out);
    }
  }

  void reflect(std::int64_t by, double* x) const {
    if (scales_[by] == 0) return;
    const double* v = basis_.data() + by * k_;
    double sum = 0;
    for (std::int64_t j = by; j < k_; ++j) sum += v[j] * x[j];
    sum *= scales_[by];
    for (std::int64_t j = by; j < k_; ++j) x[j] -= sum * v[j];
  }

  const Context& ctx_;
  const LocalTask& task_;
  std::int64_t k_;
  std::int64_t d_;
  std::int64_t nev_;
  cpu::BarycentresFn barycentres_;
  WeightRoom room_;
  std::vector<double> differences_;  // of several rows side by side, as are their Gram matrices
  std::vector<double> grams_;
  std::vector<double> mean_;
  std::vector<double> columns_;
  std::vector<double> lengths_;
  std::vector<std::int64_t> order_;
  std::vector<double> vectors_;  // [nev, k]
  std::vector<double> squares_;  // [nev]
  std::vector<double> basis_;    // column by column
  std::vector<double> scales_;
  std::vector<double> v_;
  std::vector<double> weights_;
  std::vector<double> weights_of_h_;
  std::vector<double> mirror_;
};

/// Calls body(neighborhood, first, end) for ranges of rows, each worker with a neighborhood of its own.
template <class Body>
void for_each_range(const Context& ctx, const LocalTask& task, const Body& body) {
  const std::int64_t n = task.table.rows();
  std::vector<LocalFrame> rooms(static_cast<std::size_t>(ctx.threads()), LocalFrame(ctx, task));
  const std::int64_t tasks = (n + kTaskRows - 1) / kTaskRows;
  ctx.report("weights", 0);
  core::parallel_for(ctx, tasks, [&](std::int64_t part, int worker) {
    const auto end = static_cast<Point>(std::min(n, (part + 1) * kTaskRows));
    body(rooms[worker], static_cast<Point>(part * kTaskRows), end);
    if (worker == 0) ctx.report("weights", static_cast<double>(part) / static_cast<double>(tasks));
  });
}

/// Calls body(neighborhood, row) for every row.
template <class Body>
void for_each_row(const Context& ctx, const LocalTask& task, const Body& body) {
  for_each_range(ctx, task, [&](LocalFrame& near, Point begin, Point end) {
    for (Point i = begin; i < end; ++i) body(near, i);
  });
}

/// How many sets of weights each row of `modified` has.
std::vector<std::int64_t> weight_sets(const Context& ctx, const LocalTask& task) {
  const auto n = static_cast<std::size_t>(task.table.rows());
  const std::int64_t nev = std::min(task.k, task.table.cols());
  std::vector<double> spectra(n * static_cast<std::size_t>(nev));
  std::vector<double> ratios(n);
  for_each_row(ctx, task, [&](LocalFrame& near, Point i) {
    const std::vector<double>& squares = near.spectrum(i);
    std::copy(squares.begin(), squares.end(), spectra.begin() + i * nev);
    ratios[i] = share_left_out(squares.data(), nev, task.dim);
  });
  // The median, of an even number the mean of the two in the middle.
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  double eta = *middle;
  if (n % 2 == 0) eta = (eta + *std::max_element(ratios.begin(), middle)) / 2;
  std::vector<std::int64_t> sets(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double* squares = spectra.data() + i * static_cast<std::size_t>(nev);
    // The row whose own share is the median compares equal, because both are made in the same way.
    std::int64_t below = 0;
    for (std::int64_t kept = 1; kept < nev; ++kept) below += share_left_out(squares, nev, kept) < eta ? 1 : 0;
    sets[i] = std::max<std::int64_t>(1, task.k - nev + below);
  }
  return sets;
}

}  // namespace

bool barycentre(WeightRoom& room, std::int64_t k, std::int64_t d, double reg, double* weights) {
  double* gram = room.gram.data();
  take_differences(room.neighbors.data(), k, d, room.row.data());
  for (std::int64_t i = 0; i < k; ++i) {
    const double* a = room.neighbors.data() + i * d;
    for (std::int64_t j = 0; j <= i; ++j) {
      const double* b = room.neighbors.data() + j * d;
      double sum = 0;
      for (std::int64_t c = 0; c < d; ++c) sum += a[c] * b[c];
      gram[i * k + j] = sum;
    }
  }
  double trace = 0;
  for (std::int64_t i = 0; i < k; ++i) trace += gram[i * k + i];
  const double added = trace > 0 ? reg * trace : reg;
  // Cholesky, then G w = 1.
  for (std::int64_t i = 0; i < k; ++i) {
    gram[i * k + i] += added;
    for (std::int64_t j = 0; j <= i; ++j) {
      double sum = gram[i * k + j];
      for (std::int64_t c = 0; c < j; ++c) sum -= gram[i * k + c] * gram[j * k + c];
      if (i > j) {
        gram[i * k + j] = sum / gram[j * k + j];
      } else if (sum > 0) {
        gram[i * k + i] = std::sqrt(sum);
      } else {
        return false;
      }
    }
  }
  for (std::int64_t i = 0; i < k; ++i) {
    double sum = 1;
    for (std::int64_t j = 0; j < i; ++j) sum -= gram[i * k + j] * weights[j];
    weights[i] = sum / gram[i * k + i];
  }
  double total = 0;
  for (std::int64_t i = k - 1; i >= 0; --i) {
    double sum = weights[i];
    for (std::int64_t j = i + 1; j < k; ++j) sum -= gram[j * k + i] * weights[j];
    weights[i] = sum / gram[i * k + i];
    total += weights[i];
  }
  for (std::int64_t i = 0; i < k; ++i) weights[i] /= total;
  return std::isfinite(total) && total > 0;
}

Placer::Placer(const TableView& table, std::int64_t k, double reg)
    : table_(table), reg_(reg), weights_(static_cast<std::size_t>(k)) {
  room_.row.resize(static_cast<std::size_t>(table.cols()));
  room_.neighbors.resize(static_cast<std::size_t>(k * table.cols()));
  room_.gram.resize(static_cast<std::size_t>(k * k));
}

void Placer::add(std::int64_t id) {
  core::widen_rows(table_, id, id + 1, room_.neighbors.data() + std::ssize(kept_) * table_.cols());
  kept_.push_back(id);
}

bool Placer::place(const double* places, std::int64_t dim, double* place) {
  if (!barycentre(room_, std::ssize(kept_), table_.cols(), reg_, weights_.data())) return false;
  std::fill_n(place, dim, 0.0);
  for (std::size_t j = 0; j < kept_.size(); ++j) {
    for (std::int64_t c = 0; c < dim; ++c) place[c] += weights_[j] * places[kept_[j] * dim + c];
  }
  kept_.clear();
  return true;
}

double weight_condition(const Context& ctx, WeightRoom& room, std::int64_t k, std::int64_t d, double reg) {
  take_differences(room.neighbors.data(), k, d, room.row.data());
  const bool wide = d > k;
  Small differences(wide ? d : k, wide ? k : d);
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t c = 0; c < d; ++c) (wide ? differences(c, i) : differences(i, c)) = room.neighbors[i * d + c];
  }
  if (wide) differences = triangle_of(std::move(differences));
  const std::vector<double> values = singular_values(ctx, std::move(differences)).values;
  double trace = 0;
  for (const double value : values) trace += value * value;
  const double added = trace > 0 ? reg * trace : reg;
  // The Gram has k eigenvalues, of which those beyond d are 0.
  const double least = (k > d ? 0 : values.front() * values.front()) + added;
  return least > 0 ? (values.back() * values.back() + added) / least : std::numeric_limits<double>::infinity();
}

std::int64_t block_rows(const LocalTask& task) {
  return most_block_rows(task.variant, task.k, task.dim);
}

LocalRows local_columns(const Context& ctx, const LocalTask& task) {
  const auto n = static_cast<Point>(task.table.rows());
  LocalRows a;
  a.points = n;
  a.width = block_width(task.variant, task.k);
  a.first.assign(static_cast<std::size_t>(n) + 1, 0);
  a.cols.resize(static_cast<std::size_t>(n) * static_cast<std::size_t>(a.width));
  core::parallel_for(ctx, (n + kTaskRows - 1) / kTaskRows, [&](std::int64_t part, int /*worker*/) {
    const auto end = static_cast<Point>(std::min<std::int64_t>(n, (part + 1) * kTaskRows));
    for (auto i = static_cast<Point>(part * kTaskRows); i < end; ++i) {
      Point* cols = a.cols.data() + i * a.width;
      if (a.width > task.k) *cols++ = i;
      std::copy_n(task.ids.begin() + i * task.k, task.k, cols);
    }
  });
  return a;
}

std::uint64_t weight_room_bytes(const Context& ctx, std::int64_t k, std::int64_t d) {
  const std::int64_t rows = are_together(k, d) ? 1 + cpu::kBarycentreRows : 1;
  return static_cast<std::uint64_t>(ctx.threads() * (rows * k * (k + d + 1) + d)) * sizeof(double);
}

LocalRows local_rows(const Context& ctx, const LocalTask& task) {
  const auto n = static_cast<Point>(task.table.rows());
  LocalRows a = local_columns(ctx, task);
  if (task.variant == LleVariant::modified) {
    const std::vector<std::int64_t> sets = weight_sets(ctx, task);
    for (Point i = 0; i < n; ++i) a.first[i + 1] = a.first[i] + sets[i];
  } else {
    for (Point i = 0; i < n; ++i) a.first[i + 1] = a.first[i] + block_rows(task);
  }
  a.values.resize(static_cast<std::size_t>(a.rows() * a.width));
  if (task.variant == LleVariant::standard) {
    for_each_range(ctx, task, [&](LocalFrame& near, Point begin, Point end) {
      constexpr std::int64_t kRows = cpu::kBarycentreRows;
      double* out = a.values.data() + begin * a.width;
      for (std::int64_t i = begin; i < end; i += kRows) {
        const auto last = static_cast<Point>(std::min<std::int64_t>(end, i + kRows));
        near.weights(static_cast<Point>(i), last, a.width, out + (i - begin) * a.width + 1);
      }
      for (Point i = begin; i < end; ++i, out += a.width) {
        out[0] = 1;
        for (std::int64_t j = 1; j < a.width; ++j) out[j] = -out[j];
      }
    });
    return a;
  }
  for_each_row(ctx, task, [&](LocalFrame& near, Point i) {
    double* out = a.values.data() + a.first[i] * a.width;
    switch (task.variant) {
      case LleVariant::modified:
        near.modified_rows(i, a.first[i + 1] - a.first[i], out);
        break;
      case LleVariant::hessian:
        near.hessian_rows(i, out);
        break;
      default:
        near.tangent_rows(i, out);
    }
  });
  return a;
}

}  // namespace vicinal::solver
