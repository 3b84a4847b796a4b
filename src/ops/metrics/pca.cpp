// Principal components (contract clause 23). Up to as many columns as vectors the block spans everything, and the
// result is that of Jacobi's method alone; beyond, a vector outside of the components fades by the ratio of the last
// vector's to the component's variance an iteration. A vector is one worker's, so that threads do not show.
#include "vicinal/pca.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/orthonormal.hpp"
#include "core/parallel.hpp"
#include "core/philox.hpp"
#include "core/table_access.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/clustered_rows.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kMinBlock = 8;
constexpr std::int64_t kSpareVectors = 6;
constexpr int kSweeps = 30;
constexpr double kSettled = 1e-9;
constexpr std::int64_t kTaskValues = std::int64_t{1} << 16;       // between two looks at a cancel
constexpr std::int64_t kTransformValues = std::int64_t{1} << 20;  // that `transform` widens at a time

using Vectors = core::DenseVectors;
using core::dot;

/// Eigenvalues in descending order with their vectors, of a symmetric matrix, by Jacobi's rotations.
std::vector<std::pair<double, std::vector<double>>> eigenpairs(const Context& ctx, Vectors a) {
  const std::size_t b = a.size();
  Vectors v(b, std::vector<double>(b, 0));
  for (std::size_t i = 0; i < b; ++i) v[i][i] = 1;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t p = 0; p < b; ++p) {
      ctx.check_cancelled();
      for (std::size_t q = p + 1; q < b; ++q) {
        if (a[p][q] == 0) continue;
        const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = (theta >= 0 ? 1 : -1) / (std::fabs(theta) + std::hypot(theta, 1.0));
        const double c = 1 / std::hypot(t, 1.0);
        const double s = t * c;
        for (std::size_t i = 0; i < b; ++i) {
          std::tie(a[i][p], a[i][q]) = std::pair(c * a[i][p] - s * a[i][q], s * a[i][p] + c * a[i][q]);
        }
        for (std::size_t i = 0; i < b; ++i) {
          std::tie(a[p][i], a[q][i]) = std::pair(c * a[p][i] - s * a[q][i], s * a[p][i] + c * a[q][i]);
          std::tie(v[p][i], v[q][i]) = std::pair(c * v[p][i] - s * v[q][i], s * v[p][i] + c * v[q][i]);
        }
        a[p][q] = a[q][p] = 0;
      }
    }
  }
  std::vector<std::pair<double, std::vector<double>>> found;
  for (std::size_t i = 0; i < b; ++i) found.emplace_back(a[i][i], v[i]);
  std::stable_sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  return found;
}

void check_finite(const double* values, std::int64_t first, std::int64_t count, std::int64_t d) {
  for (std::int64_t i = 0; i < count * d; ++i) {
    if (std::isfinite(values[i])) continue;
    throw Error(ErrorCode::bad_data,
                fmt::format("table: row {}, column {} is {}, must be finite", first + i / d, i % d, values[i]));
  }
}

/// The rows less their mean, over the largest deviation.
class CentredRows {
 public:
  CentredRows(const Context& ctx, const TableView& table, Pca& model)
      : ctx_(ctx),
        n_(table.rows()),
        d_(table.cols()),
        block_(std::max<std::int64_t>(1, kTaskValues / d_)),
        values_(static_cast<std::size_t>(n_ * d_)) {
    model.mean.assign(static_cast<std::size_t>(d_), 0);
    for_blocks([&](std::int64_t first, std::int64_t last) {
      double* const rows = values_.data() + first * d_;
      core::widen_rows(table, first, last, rows);
      check_finite(rows, first, last - first, d_);
      for_values(first, last, [&](double& value, std::size_t j) { model.mean[j] += value / static_cast<double>(n_); });
    });
    for_blocks([&](std::int64_t first, std::int64_t last) {
      for_values(first, last, [&](double& value, std::size_t j) {
        value -= model.mean[j];
        model.scale = std::max(model.scale, std::fabs(value));
      });
    });
    if (!std::isfinite(model.scale)) {
      throw Error(ErrorCode::bad_data, "table: the deviations from the mean overflow float64; scale the data down");
    }
    for_blocks([&](std::int64_t first, std::int64_t last) {
      for_values(first, last, [&](double& value, std::size_t) {
        value = model.scale > 0 ? value / model.scale : 0;
        total_ += value * value;
      });
    });
  }

  /// n times the total variance, in units of the scale.
  [[nodiscard]] double total() const noexcept { return total_; }

  /// The covariance times n times each vector.
  [[nodiscard]] Vectors times(const Vectors& vectors) const {
    Vectors product(vectors.size(), std::vector<double>(static_cast<std::size_t>(d_), 0));
    core::parallel_for(ctx_, static_cast<std::int64_t>(vectors.size()), [&](std::int64_t b, int /*worker*/) {
      const std::vector<double>& vector = vectors[static_cast<std::size_t>(b)];
      std::vector<double>& sums = product[static_cast<std::size_t>(b)];
      for_blocks([&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          const double* const row = values_.data() + i * d_;
          const double along = std::inner_product(row, row + d_, vector.begin(), 0.0);
          for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += along * row[c];
        }
      });
    });
    return product;
  }

 private:
  template <class Body>
  void for_blocks(const Body& body) const {
    for (std::int64_t first = 0; first < n_; first += block_) {
      ctx_.check_cancelled();
      body(first, std::min(first + block_, n_));
    }
  }
  template <class Body>
  void for_values(std::int64_t first, std::int64_t last, const Body& body) {
    double* value = values_.data() + first * d_;
    for (std::int64_t i = first; i < last; ++i) {
      for (std::size_t j = 0; j < static_cast<std::size_t>(d_); ++j) body(*value++, j);
    }
  }

  const Context& ctx_;
  std::int64_t n_;
  std::int64_t d_;
  std::int64_t block_;  // rows
  std::vector<double> values_;
  double total_ = 0;
};

Vectors first_vectors(std::size_t count, std::size_t d) {
  Vectors vectors(count, std::vector<double>(d));
  for (std::size_t b = 0; b < count; ++b) {
    for (std::size_t c = 0; c < d; ++c) vectors[b][c] = core::philox_uniform(0, b, c) - 0.5;
  }
  return vectors;
}

/// Iterates from `vectors`, which become the axes; returns their variances times n.
std::vector<double> iterate(const Context& ctx, const CentredRows& rows, const PcaOptions& options, Vectors& vectors,
                            Pca& model) {
  const auto p = static_cast<std::size_t>(options.components);
  std::vector<double> variances(p, 0);
  core::make_orthonormal(ctx, vectors);
  for (;;) {
    ctx.report("pca", static_cast<double>(model.iterations) / static_cast<double>(options.max_iterations));
    const Vectors product = rows.times(vectors);
    Vectors small(vectors.size(), std::vector<double>(vectors.size()));
    for (std::size_t i = 0; i < small.size(); ++i) {
      for (std::size_t j = 0; j < small.size(); ++j) {
        small[i][j] = (dot(vectors[i], product[j]) + dot(vectors[j], product[i])) / 2;
      }
    }
    const auto found = eigenpairs(ctx, small);
    model.converged = true;
    for (std::size_t i = 0; i < p; ++i) {
      const double before = std::exchange(variances[i], found[i].first);
      if (!(std::fabs(variances[i] - before) <= kSettled * variances[0])) model.converged = false;
    }
    // The best of what the vectors span, and, for the next iteration, what the covariance makes of it.
    ++model.iterations;
    const bool last = model.converged || model.iterations == options.max_iterations;
    const Vectors& from = last ? vectors : product;
    Vectors turned(vectors.size(), std::vector<double>(vectors[0].size(), 0));
    core::parallel_for(ctx, static_cast<std::int64_t>(turned.size()), [&](std::int64_t at, int /*worker*/) {
      const auto i = static_cast<std::size_t>(at);
      for (std::size_t j = 0; j < turned.size(); ++j) {
        for (std::size_t c = 0; c < turned[i].size(); ++c) turned[i][c] += found[i].second[j] * from[j][c];
      }
    });
    vectors = std::move(turned);
    if (last) return variances;
    core::make_orthonormal(ctx, vectors);
  }
}

void check_model(const Pca& model) {
  const bool counted = model.cols >= 1 && model.components >= 1 && model.components <= model.cols;
  const auto d = static_cast<std::uint64_t>(model.cols);
  if (!counted || model.mean.size() != d || model.axes.size() % d != 0 ||
      model.axes.size() / d != static_cast<std::uint64_t>(model.components) || !(model.scale >= 0)) {
    refuse("model: its arrays do not fit its columns and components");
  }
}

}  // namespace

Pca pca(const Context& ctx, const TableView& table, const PcaOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  const std::int64_t d = table.cols();
  if (options.components < 1 || options.components > d) {
    refuse(fmt::format("components: is {}, must be from 1 to {}, the number of columns", options.components, d));
  }
  if (options.max_iterations < 1) {
    refuse(fmt::format("max_iterations: is {}, must be at least 1", options.max_iterations));
  }
  const std::int64_t block = std::min(d, std::max(kMinBlock, options.components + kSpareVectors));
  const auto vectors_bytes = static_cast<std::uint64_t>(block) * static_cast<std::uint64_t>(3 * d + 4 * block) * 8;
  core::require_memory(ctx,
                       static_cast<std::uint64_t>(table.rows()) * static_cast<std::uint64_t>(d) * 8 + vectors_bytes +
                           static_cast<std::uint64_t>(options.components + 1) * static_cast<std::uint64_t>(d) * 8 +
                           ops::bytes_on_host(table),
                       "pca");
  Pca model;
  model.cols = d;
  model.components = options.components;
  const ops::RowCopy host = ops::rows_on_host(ctx, table);
  const CentredRows rows(ctx, host.table, model);
  Vectors vectors = first_vectors(static_cast<std::size_t>(block), static_cast<std::size_t>(d));
  const std::vector<double> variances = iterate(ctx, rows, options, vectors, model);
  for (std::size_t i = 0; i < static_cast<std::size_t>(options.components); ++i) {
    // An axis has two directions: the one in which its largest element is positive.
    std::vector<double>& axis = vectors[i];
    const auto largest =
        std::max_element(axis.begin(), axis.end(), [](double x, double y) { return std::fabs(x) < std::fabs(y); });
    if (*largest < 0) {
      for (double& value : axis) value = -value;
    }
    model.axes.insert(model.axes.end(), axis.begin(), axis.end());
    model.explained_variance_ratio.push_back(rows.total() > 0 ? std::clamp(variances[i] / rows.total(), 0.0, 1.0) : 0);
  }
  return model;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> transform(const Context& ctx, const Pca& model, const TableView& table) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  check_model(model);
  const std::int64_t d = model.cols;
  const std::int64_t p = model.components;
  if (table.cols() != d) refuse(fmt::format("table: {} columns, but the model has {}", table.cols(), d));
  const std::int64_t m = table.rows();
  const std::int64_t block = std::clamp<std::int64_t>(kTransformValues / d, 1, m);
  core::require_memory(ctx,
                       static_cast<std::uint64_t>(m) * static_cast<std::uint64_t>(p) * 8 +
                           static_cast<std::uint64_t>(block) * static_cast<std::uint64_t>(d) * 8 +
                           ops::bytes_on_host(table),
                       "transform");
  const ops::RowCopy host = ops::rows_on_host(ctx, table);
  const double unit = model.scale > 0 ? model.scale : 1;  // products of scaled rows do not overflow before the end
  std::vector<double> places(static_cast<std::size_t>(m * p));
  std::vector<double> rows(static_cast<std::size_t>(block * d));
  for (std::int64_t first = 0; first < m; first += block) {
    const std::int64_t last = std::min(first + block, m);
    core::widen_rows(host.table, first, last, rows.data());
    core::parallel_for(ctx, last - first, [&](std::int64_t i, int /*worker*/) {
      double* const row = rows.data() + i * d;
      check_finite(row, first + i, 1, d);
      for (std::int64_t c = 0; c < d; ++c) row[c] = (row[c] - model.mean[static_cast<std::size_t>(c)]) / unit;
      for (std::int64_t a = 0; a < p; ++a) {
        const double place = std::inner_product(row, row + d, model.axes.data() + a * d, 0.0) * unit;
        if (!std::isfinite(place)) {
          throw Error(ErrorCode::bad_data,
                      fmt::format("table: the coordinates of row {} overflow float64; scale the data down", first + i));
        }
        places[static_cast<std::size_t>((first + i) * p + a)] = place;
      }
    });
  }
  return places;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
