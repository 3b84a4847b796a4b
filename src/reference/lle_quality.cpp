// See lle_quality.hpp.
#include "reference/lle_quality.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "reference/lle.hpp"
#include "reference/reference.hpp"

namespace vicinal::reference {
namespace {

using Rows = std::span<const double>;

/// Rows of a piece but i, by (key, id).
std::vector<std::int64_t> ordered(Rows rows, std::int64_t d, const LleOptions& how, const Lle& fitted, std::int64_t i) {
  std::vector<std::pair<double, std::int64_t>> all;
  const auto width = static_cast<std::size_t>(d);
  for (std::int64_t j = 0; j < static_cast<std::int64_t>(fitted.piece.size()); ++j) {
    if (j == i || fitted.piece[j] != fitted.piece[i]) continue;
    all.emplace_back(key(how.metric, how.p, rows.subspan(i * width, width), rows.subspan(j * width, width)), j);
  }
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> ids;
  ids.reserve(all.size());
  for (const auto& [distance, id] : all) ids.push_back(id);
  return ids;
}

/// One minus row i's penalty over the most that it can be.
Real kept(const std::vector<std::int64_t>& near, const std::vector<std::int64_t>& order, std::int64_t k) {
  const auto n = static_cast<std::int64_t>(order.size()) + 1;
  const std::int64_t most_k = std::min(k, (n - 1) / 2);
  Real penalty = 0;
  for (std::int64_t at = 0; at < most_k; ++at) {
    const std::int64_t rank = std::find(order.begin(), order.end(), near[at]) - order.begin() + 1;
    penalty += static_cast<Real>(std::max<std::int64_t>(0, rank - most_k));
  }
  return 1 - penalty / (static_cast<Real>(most_k * (2 * n - 3 * most_k - 1)) / 2);
}

double condition(Rows table, std::int64_t d, const std::vector<std::int64_t>& order, const LleOptions& how,
                 std::int64_t i) {
  const std::int64_t k = how.k;
  std::vector<Real> gram(static_cast<std::size_t>(k * k), 0);
  Real trace = 0;
  for (std::int64_t a = 0; a < k; ++a) {
    for (std::int64_t b = 0; b < k; ++b) {
      for (std::int64_t c = 0; c < d; ++c) {
        const Real x = table[i * d + c];
        gram[a * k + b] += (table[order[a] * d + c] - x) * (table[order[b] * d + c] - x);
      }
    }
    trace += gram[a * k + a];
  }
  const std::vector<Real> values = lle_problem(gram).values;
  const Real added = trace > 0 ? how.reg * trace : how.reg;
  return static_cast<double>((values.back() + added) / (values.front() + added));
}

}  // namespace

EmbeddingQuality embedding_quality(Rows table, std::int64_t d, const Lle& fitted, std::int64_t k, std::int64_t judged) {
  const auto n = static_cast<std::int64_t>(fitted.piece.size());
  const std::int64_t s = judged == 0 ? n : std::min(n, judged);
  EmbeddingQuality found;
  Real trust = 0;
  Real continuity = 0;
  for (std::int64_t t = 0; t < s; ++t) {
    const std::int64_t i = n * t / s;
    found.rows.push_back(i);
    const auto given = ordered(table, d, fitted.options, fitted, i);
    const auto made = ordered(fitted.embedding, fitted.options.dim, {}, fitted, i);
    trust += kept(made, given, k);
    continuity += kept(given, made, k);
    found.conditions.push_back(condition(table, d, given, fitted.options, i));
  }
  found.trustworthiness = static_cast<double>(trust / static_cast<Real>(s));
  found.continuity = static_cast<double>(continuity / static_cast<Real>(s));
  return found;
}

LleParameterFit parameter_fit(Rows parameters, std::int64_t c, const Lle& fitted) {
  const std::int64_t dim = fitted.options.dim;
  std::vector<Real> all(static_cast<std::size_t>(c), 0);
  std::vector<Real> left(static_cast<std::size_t>(c), 0);
  Real apart = 0;
  for (std::int64_t p = 0; p < static_cast<std::int64_t>(fitted.pieces.size()); ++p) {
    std::vector<std::vector<Real>> y(static_cast<std::size_t>(dim));
    std::vector<std::vector<Real>> x(static_cast<std::size_t>(c));
    for (std::size_t i = 0; i < fitted.piece.size(); ++i) {
      if (fitted.piece[i] != p) continue;
      for (std::int64_t e = 0; e < dim; ++e) y[e].push_back(fitted.embedding[i * dim + e]);
      for (std::int64_t j = 0; j < c; ++j) x[j].push_back(parameters[i * c + j]);
    }
    for (auto* side : {&y, &x}) {
      for (auto& column : *side) {
        Real mean = 0;
        for (const Real value : column) mean += value / static_cast<Real>(column.size());
        for (Real& value : column) value -= mean;
      }
    }
    const auto dot = [](const std::vector<Real>& a, const std::vector<Real>& b) {
      Real sum = 0;
      for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
      return sum;
    };
    // Gram and Schmidt on the embedding's columns, then the rest of each parameter.
    std::vector<std::vector<Real>> basis;
    for (auto column : y) {
      for (int pass = 0; pass < 2; ++pass) {
        for (const auto& b : basis) {
          const Real share = dot(b, column);
          for (std::size_t i = 0; i < b.size(); ++i) column[i] -= share * b[i];
        }
      }
      const Real length = std::sqrt(dot(column, column));
      for (Real& value : column) value /= length;
      basis.push_back(column);
    }
    Real of_x = 0;
    Real of_y = 0;
    for (std::int64_t j = 0; j < c; ++j) {
      all[j] += dot(x[j], x[j]);
      of_x += dot(x[j], x[j]);
      auto rest = x[j];
      for (const auto& b : basis) {
        const Real share = dot(b, rest);
        for (std::size_t i = 0; i < b.size(); ++i) rest[i] -= share * b[i];
      }
      left[j] += dot(rest, rest);
    }
    for (const auto& column : y) of_y += dot(column, column);
    // Singular values of x'y: roots of the eigenvalues of the smaller square.
    const auto& small = c < dim ? x : y;
    const auto& large = c < dim ? y : x;
    std::vector<Real> square;
    for (const auto& a : small) {
      for (const auto& b : small) {
        Real sum = 0;
        for (const auto& e : large) sum += dot(a, e) * dot(b, e);
        square.push_back(sum);
      }
    }
    Real sum = 0;
    for (const Real value : lle_problem(square).values) sum += std::sqrt(std::max<Real>(0, value));
    apart += of_x - sum * sum / of_y;
  }
  LleParameterFit found;
  Real everything = 0;
  Real rest = 0;
  for (std::int64_t j = 0; j < c; ++j) {
    found.columns.push_back(static_cast<double>(left[j] / all[j]));
    everything += all[j];
    rest += left[j];
  }
  found.affine = static_cast<double>(rest / everything);
  found.procrustes = static_cast<double>(apart / everything);
  return found;
}

}  // namespace vicinal::reference
