// compare_parameters: what is left of known parameters after the best affine map and the best similarity of an
// embedding, piece by piece (contract clause 17). The columns of an embedding are orthonormal and orthogonal to the
// constant, so that the affine map is a projection.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/entry.hpp"
#include "core/table_access.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/lle/check.hpp"
#include "solver/tall.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lle_quality.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kRowsBetweenLooks = 65536;  // at a cancel

/// Sums of squares within one piece, of each parameter: all of it, and what no affine map gives.
struct PieceFit {
  std::vector<double> all;
  std::vector<double> left;
  double apart = 0;  ///< what no similarity gives, of all parameters together
};

PieceFit fit_of(const Context& ctx, const std::vector<std::int64_t>& rows, const Lle& fitted,
                const TableView& parameters) {
  const auto size = static_cast<std::int64_t>(rows.size());
  const std::int64_t c = parameters.cols();
  const std::int64_t dim = fitted.options.dim;
  std::vector<double> values(static_cast<std::size_t>(size * c));  // less their means
  std::vector<double> means(static_cast<std::size_t>(c), 0.0);
  std::vector<double> first(static_cast<std::size_t>(c));
  core::widen_rows(parameters, rows[0], rows[0] + 1, first.data());
  for (std::int64_t i = 0; i < size; ++i) {
    if (i % kRowsBetweenLooks == 0) ctx.check_cancelled();
    core::widen_rows(parameters, rows[i], rows[i] + 1, values.data() + i * c);
    for (std::int64_t j = 0; j < c; ++j) {
      values[i * c + j] -= first[j];  // so that an offset costs no digits, and a constant is one
      means[j] += values[i * c + j] / static_cast<double>(size);
    }
  }
  PieceFit found{std::vector<double>(static_cast<std::size_t>(c), 0.0),
                 std::vector<double>(static_cast<std::size_t>(c), 0.0)};
  solver::Small products(dim, c);
  double lengths = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    if (i % kRowsBetweenLooks == 0) ctx.check_cancelled();
    const double* y = fitted.embedding.data() + rows[i] * dim;
    for (std::int64_t j = 0; j < c; ++j) {
      double& x = values[i * c + j];
      x -= means[j];
      found.all[j] += x * x;
      for (std::int64_t e = 0; e < dim; ++e) products(e, j) += y[e] * x;
    }
    for (std::int64_t e = 0; e < dim; ++e) lengths += y[e] * y[e];
  }
  for (std::int64_t i = 0; i < size; ++i) {
    if (i % kRowsBetweenLooks == 0) ctx.check_cancelled();
    const double* y = fitted.embedding.data() + rows[i] * dim;
    for (std::int64_t j = 0; j < c; ++j) {
      double rest = values[i * c + j];
      for (std::int64_t e = 0; e < dim; ++e) rest -= products(e, j) * y[e];
      found.left[j] += rest * rest;
    }
  }
  double all = 0;
  for (const double one : found.all) all += one;
  if (!(all > 0)) return found;
  if (dim < c) {
    solver::Small turned(c, dim);
    for (std::int64_t j = 0; j < c; ++j) {
      for (std::int64_t e = 0; e < dim; ++e) turned(j, e) = products(e, j);
    }
    products = std::move(turned);
  }
  double sum = 0;
  for (const double value : solver::singular_values(ctx, std::move(products)).values) sum += value;
  found.apart = std::max(0.0, all - sum * sum / lengths);
  return found;
}

}  // namespace

LleParameterFit compare_parameters(const Context& ctx, const Lle& fitted, const TableView& parameters) try {
  const core::Entry entry;
  check_table(ctx, parameters, "parameters");
  if (parameters.is_block_source() || parameters.memory() == Memory::cuda) {
    refuse("parameters: are needed in host memory");
  }
  const std::int64_t n = parameters.rows();
  if (n != static_cast<std::int64_t>(fitted.piece.size())) {
    refuse(fmt::format("parameters: are of {} rows, but the embedding has {}", n, fitted.piece.size()));
  }
  ops::check_lle_fitted(fitted, n);
  const Index checked(ctx, parameters);  // refuses what is not finite
  const auto count = static_cast<std::size_t>(*std::max_element(fitted.piece.begin(), fitted.piece.end()) + 1);
  std::vector<std::vector<std::int64_t>> rows_of(count);
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::binary_search(fitted.placed.begin(), fitted.placed.end(), i)) rows_of[fitted.piece[i]].push_back(i);
  }
  const auto columns = static_cast<std::size_t>(parameters.cols());
  std::vector<double> all(columns, 0.0);
  std::vector<double> left(columns, 0.0);
  double apart = 0;
  for (const std::vector<std::int64_t>& rows : rows_of) {
    const PieceFit fit = fit_of(ctx, rows, fitted, parameters);
    for (std::size_t j = 0; j < columns; ++j) {
      all[j] += fit.all[j];
      left[j] += fit.left[j];
    }
    apart += fit.apart;
  }
  LleParameterFit found;
  double everything = 0;
  double rest = 0;
  for (std::size_t j = 0; j < columns; ++j) {
    found.columns.push_back(all[j] > 0 ? left[j] / all[j] : 0);
    everything += all[j];
    rest += left[j];
  }
  if (everything > 0) {
    found.affine = rest / everything;
    found.procrustes = apart / everything;
  }
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
