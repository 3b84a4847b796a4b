// See tall.hpp.
#include "solver/tall.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/parallel.hpp"
#include "formulas/lle/constants.hpp"
#include "simd/tall_kernels.hpp"

namespace vicinal::solver {
namespace {

constexpr std::int64_t kParts = 64;                // of a reduction
constexpr std::int64_t kStrip = cpu::kFoldedRows;  // rows folded into a triangle at a time
constexpr double kDependent = 1e-12;               // of a column's length: what is left of it is rounding
constexpr std::int64_t kFewColumns = 64;           // up to here one thread rotates all pairs

std::int64_t parts_of(std::int64_t n) {
  return std::min(kParts, (n + kTaskPoints - 1) / kTaskPoints);
}

struct Range {
  std::int64_t begin;
  std::int64_t end;
};
Range part(std::int64_t n, std::int64_t parts, std::int64_t i) {
  return {n * i / parts, n * (i + 1) / parts};
}

void for_each_row_chunk(const Context& ctx, std::int64_t n,
                        const std::function<void(std::int64_t, std::int64_t)>& body) {
  core::parallel_for(ctx, (n + kTaskPoints - 1) / kTaskPoints, [&](std::int64_t task, int /*worker*/) {
    body(task * kTaskPoints, std::min(n, (task + 1) * kTaskPoints));
  });
}

// Reflects the rows [r; strip] so that r is the triangle of all: r [q, q], strip [m, q] is used up. Rows are passed one
// after the other, whole, as they lie in memory. Where q is large, the caller says whom to ask before each column
// whether the work is still wanted.
void fold(double* r, double* strip, std::int64_t m, std::int64_t q, const Context* ctx = nullptr) {
  std::vector<double> sums(static_cast<std::size_t>(q));
  for (std::int64_t j = 0; j < q; ++j) {
    if (ctx != nullptr) ctx->check_cancelled();
    double largest = std::abs(r[j * q + j]);
    for (std::int64_t i = 0; i < m; ++i) largest = std::max(largest, std::abs(strip[i * q + j]));
    if (largest == 0) continue;
    double below = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      const double v = strip[i * q + j] /= largest;
      below += v * v;
    }
    if (below == 0) continue;
    const double head = r[j * q + j] / largest;
    const double length = std::sqrt(head * head + below);
    const double pivot =
        head > 0 ? head + length : head - length;  // the reflection's vector: pivot, column j of the strip
    const double scale = 2 / (pivot * pivot + below);
    for (std::int64_t c = j + 1; c < q; ++c) sums[c] = pivot * r[j * q + c];
    for (std::int64_t i = 0; i < m; ++i) {
      const double v = strip[i * q + j];
      for (std::int64_t c = j + 1; c < q; ++c) sums[c] += v * strip[i * q + c];
    }
    for (std::int64_t c = j + 1; c < q; ++c) {
      sums[c] *= scale;
      r[j * q + c] -= sums[c] * pivot;
    }
    for (std::int64_t i = 0; i < m; ++i) {
      const double v = strip[i * q + j];
      for (std::int64_t c = j + 1; c < q; ++c) strip[i * q + c] -= sums[c] * v;
      strip[i * q + j] = 0;
    }
    r[j * q + j] = (head > 0 ? -length : length) * largest;
  }
}

void make_positive(Small& r) {
  for (std::int64_t i = 0; i < r.rows; ++i) {
    if (r(i, i) >= 0) continue;
    for (std::int64_t j = i; j < r.cols; ++j) r(i, j) = -r(i, j);
  }
}

// The same for many rows of few columns. columns [q, kStrip]: room.
void fold_tall(const cpu::TallKernels& kernels, double* r, const double* rows, std::int64_t m, std::int64_t q,
               double* columns) {
  for (std::int64_t first = 0; first < m; first += kStrip) {
    const std::int64_t count = std::min(kStrip, m - first);
    for (std::int64_t j = 0; j < q; ++j) {
      double* const column = columns + j * kStrip;
      for (std::int64_t i = 0; i < count; ++i) column[i] = rows[(first + i) * q + j];
      std::fill(column + count, column + kStrip, 0.0);
    }
    for (std::int64_t j = 0; j < q; ++j) kernels.reflect(r, columns, q, j);
  }
}

// The triangle of rows that `fill` writes strip by strip: fill(begin, end, out) for points [begin, end) and returns the
// number of rows.
Small triangle_by_parts(const Context& ctx, std::int64_t n, std::int64_t q, std::int64_t rows_at_once,
                        const std::function<std::int64_t(std::int64_t, std::int64_t, double*)>& fill) {
  const std::int64_t parts = parts_of(n);
  std::vector<Small> triangles(static_cast<std::size_t>(parts), Small(q, q));
  const cpu::TallKernels& kernels = cpu::tall_kernels(ctx.isa());
  core::parallel_for(ctx, parts, [&](std::int64_t i, int /*worker*/) {
    std::vector<double> strip(static_cast<std::size_t>(rows_at_once * q));
    std::vector<double> columns(static_cast<std::size_t>(kStrip * q));
    const Range range = part(n, parts, i);
    for (std::int64_t begin = range.begin; begin < range.end; begin += kStrip) {
      const std::int64_t rows = fill(begin, std::min(range.end, begin + kStrip), strip.data());
      fold_tall(kernels, triangles[i].values.data(), strip.data(), rows, q, columns.data());
    }
  });
  for (std::int64_t i = 1; i < parts; ++i) fold(triangles[0].values.data(), triangles[i].values.data(), q, q);
  make_positive(triangles[0]);
  return std::move(triangles[0]);
}

}  // namespace

Small inner(const Context& ctx, const Vectors& x, const Vectors& y) {
  const std::int64_t parts = parts_of(x.rows);
  std::vector<Small> sums(static_cast<std::size_t>(parts), Small(x.width, y.width));
  const cpu::TallKernels& kernels = cpu::tall_kernels(ctx.isa());
  core::parallel_for(ctx, parts, [&](std::int64_t p, int /*worker*/) {
    const Range range = part(x.rows, parts, p);
    kernels.inner(range.end - range.begin, x.row(range.begin), x.width, y.row(range.begin), y.width,
                  sums[p].values.data());
  });
  for (std::int64_t p = 1; p < parts; ++p) {
    for (std::size_t i = 0; i < sums[0].values.size(); ++i) sums[0].values[i] += sums[p].values[i];
  }
  return std::move(sums[0]);
}

void subtract_product(const Context& ctx, const Vectors& x, const Small& c, Vectors& y) {
  const cpu::TallKernels& kernels = cpu::tall_kernels(ctx.isa());
  for_each_row_chunk(ctx, x.rows, [&](std::int64_t begin, std::int64_t end) {
    kernels.subtract(end - begin, x.row(begin), x.width, c.values.data(), y.row(begin), y.width);
  });
}

void product(const Context& ctx, const Vectors& x, const Small& c, Vectors& y) {
  y.reshape(x.rows, c.cols);
  const cpu::TallKernels& kernels = cpu::tall_kernels(ctx.isa());
  for_each_row_chunk(ctx, x.rows, [&](std::int64_t begin, std::int64_t end) {
    kernels.product(end - begin, x.row(begin), x.width, c.values.data(), y.row(begin), y.width);
  });
}

Vectors product(const Context& ctx, const Vectors& x, const Small& c) {
  Vectors y;
  product(ctx, x, c, y);
  return y;
}

void multiply(const Context& ctx, Vectors& x, const Small& c) {
  if (c.cols != x.width) {
    x = product(ctx, x, c);
    return;
  }
  const cpu::TallKernels& kernels = cpu::tall_kernels(ctx.isa());
  for_each_row_chunk(ctx, x.rows, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> rows(static_cast<std::size_t>(kStrip * x.width));
    for (std::int64_t i = begin; i < end; i += kStrip) {
      const std::int64_t count = std::min(kStrip, end - i);
      std::copy_n(x.row(i), count * x.width, rows.begin());
      kernels.product(count, rows.data(), x.width, c.values.data(), x.row(i), x.width);
    }
  });
}

void remove_means(const Context& ctx, Vectors& x) {
  const std::int64_t parts = parts_of(x.rows);
  const cpu::TallKernels& kernels = cpu::tall_kernels(ctx.isa());
  const std::vector<double> ones(static_cast<std::size_t>(kTaskPoints), 1.0);
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<Small> sums(static_cast<std::size_t>(parts), Small(1, x.width));
    core::parallel_for(ctx, parts, [&](std::int64_t p, int /*worker*/) {
      const Range range = part(x.rows, parts, p);
      for (std::int64_t i = range.begin; i < range.end; i += kTaskPoints) {
        kernels.inner(std::min(kTaskPoints, range.end - i), ones.data(), 1, x.row(i), x.width, sums[p].values.data());
      }
    });
    std::vector<double>& means = sums[0].values;
    for (std::int64_t p = 1; p < parts; ++p) {
      for (std::size_t c = 0; c < means.size(); ++c) means[c] += sums[p].values[c];
    }
    for (double& mean : means) mean /= static_cast<double>(x.rows);
    for_each_row_chunk(ctx, x.rows, [&](std::int64_t begin, std::int64_t end) {
      kernels.subtract(end - begin, ones.data(), 1, means.data(), x.row(begin), x.width);
    });
  }
}

Small triangle_of(const Context& ctx, const Vectors& x) {
  return triangle_by_parts(ctx, x.rows, x.width, kStrip, [&](std::int64_t begin, std::int64_t end, double* out) {
    std::copy(x.row(begin), x.row(end), out);
    return end - begin;
  });
}

Small triangle_of(const Context& ctx, const LocalRows& a, const Vectors& x) {
  std::int64_t tallest = 0;
  for (Point i = 0; i < a.points; ++i) tallest = std::max(tallest, a.first[i + 1] - a.first[i]);
  return triangle_by_parts(ctx, a.points, x.width, kStrip * tallest,
                           [&](std::int64_t begin, std::int64_t end, double* out) {
                             apply_blocks(ctx, a, x, static_cast<Point>(begin), static_cast<Point>(end), out);
                             return a.first[end] - a.first[begin];
                           });
}

Small orthonormal_change(const Small& r, bool& whole) {
  // Columns that stand on their own; a dropped one takes its row of the triangle with it.
  std::vector<std::int64_t> kept;
  for (std::int64_t j = 0; j < r.cols; ++j) {
    double length = 0;
    for (std::int64_t i = 0; i <= j; ++i) length = std::hypot(length, r(i, j));
    if (r(j, j) > kDependent * length && length > 0) kept.push_back(j);
  }
  const auto width = static_cast<std::int64_t>(kept.size());
  whole = width == r.cols;
  Small change(r.cols, width);
  if (!whole) {
    for (std::int64_t j = 0; j < width; ++j) change(kept[j], j) = 1;
    return change;
  }
  for (std::int64_t j = 0; j < width; ++j) {
    change(j, j) = 1 / r(j, j);
    for (std::int64_t i = j - 1; i >= 0; --i) {
      double sum = 0;
      for (std::int64_t k = i + 1; k <= j; ++k) sum += r(i, k) * change(k, j);
      change(i, j) = -sum / r(i, i);
    }
  }
  return change;
}

void orthonormalize(const Context& ctx, Vectors& x) {
  for (int pass = 0; pass < 2 && x.width > 0; ++pass) {
    bool whole = true;
    multiply(ctx, x, orthonormal_change(triangle_of(ctx, x), whole));
    if (!whole) pass = -1;  // with the triangle of what is left
  }
}

namespace {
// a'a, b'b and a'b, each in eight sums that are added up in the end: a vector's lanes.
struct Products {
  double aa = 0;
  double bb = 0;
  double ab = 0;
};
Products products_of(const double* a, const double* b, std::int64_t n) {
  constexpr std::int64_t kLanes = 8;
  double aa[kLanes] = {};
  double bb[kLanes] = {};
  double ab[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      aa[lane] += a[i + lane] * a[i + lane];
      bb[lane] += b[i + lane] * b[i + lane];
      ab[lane] += a[i + lane] * b[i + lane];
    }
  }
  Products sums;
  for (; i < n; ++i) {
    sums.aa += a[i] * a[i];
    sums.bb += b[i] * b[i];
    sums.ab += a[i] * b[i];
  }
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    sums.aa += aa[lane];
    sums.bb += bb[lane];
    sums.ab += ab[lane];
  }
  return sums;
}

void rotate(double* a, double* b, std::int64_t n, double c, double s) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double t = a[i];
    a[i] = c * t - s * b[i];
    b[i] = s * t + c * b[i];
  }
}

// Whether columns p and r needed a rotation, which they have had.
bool rotate_pair(const Columns& columns, std::int64_t p, std::int64_t r) {
  double* const a = columns.values + p * columns.length;
  double* const b = columns.values + r * columns.length;
  const auto [aa, bb, ab] = products_of(a, b, columns.length);
  if (!(std::abs(ab) > kOrthogonal * std::sqrt(aa) * std::sqrt(bb))) return false;
  const double zeta = (bb - aa) / (2 * ab);
  const double t = (zeta >= 0 ? 1.0 : -1.0) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
  const double c = 1 / std::sqrt(1 + t * t);
  rotate(a, b, columns.length, c, c * t);
  if (columns.also != nullptr) {
    rotate(columns.also + p * columns.also_length, columns.also + r * columns.also_length, columns.also_length, c,
           c * t);
  }
  return true;
}

// Every pair once; those of a round have no column in common, and any thread may have them: one column stays where
// it is, the others go around it (a round robin; Brent and Luk 1985).
bool sweep_in_rounds(const Context& ctx, const Columns& columns) {
  constexpr std::int64_t kPairs = 16;                                 // of a task
  const std::int64_t around = columns.count - 1 + columns.count % 2;  // of an odd count nobody stays, and one rests
  const std::int64_t pairs = (around + 1) / 2;
  std::vector<char> rotated(static_cast<std::size_t>((pairs + kPairs - 1) / kPairs), 0);
  for (std::int64_t round = 0; round < around; ++round) {
    core::parallel_for(ctx, std::ssize(rotated), [&](std::int64_t task, int /*worker*/) {
      for (std::int64_t pair = task * kPairs; pair < std::min(pairs, (task + 1) * kPairs); ++pair) {
        const std::int64_t x = (round + pair) % around;
        const std::int64_t y = pair == 0 ? around : (round + around - pair) % around;
        if (std::max(x, y) >= columns.count) continue;
        if (rotate_pair(columns, std::min(x, y), std::max(x, y))) rotated[task] = 1;
      }
    });
  }
  return std::find(rotated.begin(), rotated.end(), 1) != rotated.end();
}

bool sweep_in_turn(const Columns& columns) {
  bool rotated = false;
  for (std::int64_t p = 0; p + 1 < columns.count; ++p) {
    for (std::int64_t r = p + 1; r < columns.count; ++r) rotated = rotate_pair(columns, p, r) || rotated;
  }
  return rotated;
}

}  // namespace

void make_orthogonal(const Context& ctx, const Columns& columns) {
  bool rotated = true;
  for (int sweep = 0; sweep < kMaxJacobiSweeps && rotated; ++sweep) {
    ctx.check_cancelled();
    rotated = columns.count > kFewColumns ? sweep_in_rounds(ctx, columns) : sweep_in_turn(columns);
  }
}

SingularValues singular_values(const Context& ctx, Small matrix) {
  const std::int64_t q = matrix.cols;
  const std::int64_t m = matrix.rows;
  // Columns as rows, so that a rotation runs along memory; v likewise.
  Small g(q, m);
  Small v(q, q);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < q; ++j) g(j, i) = matrix(i, j);
  }
  for (std::int64_t j = 0; j < q; ++j) v(j, j) = 1;
  make_orthogonal(ctx, {g.values.data(), m, q, v.values.data(), q});
  std::vector<double> lengths(static_cast<std::size_t>(q));
  for (std::int64_t j = 0; j < q; ++j) {
    const double* a = &g.values[j * m];
    lengths[j] = std::sqrt(std::inner_product(a, a + m, a, 0.0));
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(q));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) { return lengths[i] < lengths[j]; });
  SingularValues found{{}, Small(q, q)};
  for (std::int64_t j = 0; j < q; ++j) {
    found.values.push_back(lengths[order[j]]);
    for (std::int64_t i = 0; i < q; ++i) found.right(i, j) = v(order[j], i);
  }
  return found;
}

Small triangle_of(Small matrix, const Context* ctx) {
  Small r(matrix.cols, matrix.cols);
  for (std::int64_t i = 0; i < matrix.rows; i += kStrip) {  // a strip stays in a cache
    fold(r.values.data(), matrix.values.data() + i * matrix.cols, std::min(kStrip, matrix.rows - i), matrix.cols, ctx);
  }
  make_positive(r);
  return r;
}

}  // namespace vicinal::solver
