// See lle.hpp.
#include "reference/lle.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace vicinal::reference {
namespace {

using Matrix = std::vector<std::vector<Real>>;

/// Eigenpairs of a symmetric matrix, ascending: `vectors` one a row.
void eigen(Matrix a, std::vector<Real>& values, Matrix& vectors) {
  const std::size_t n = a.size();
  vectors.assign(n, std::vector<Real>(n, 0));
  for (std::size_t i = 0; i < n; ++i) vectors[i][i] = 1;
  for (int sweep = 0; sweep < 50; ++sweep) {
    Real off = 0;
    Real all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        all += a[i][j] * a[i][j];
        if (i != j) off += a[i][j] * a[i][j];
      }
    }
    if (!(off > all * 1e-42L)) break;
    for (std::size_t p = 0; p + 1 < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a[p][q] == 0) continue;
        const Real theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const Real t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const Real c = 1 / std::sqrt(t * t + 1);
        const Real s = t * c;
        for (std::size_t i = 0; i < n; ++i) {
          const Real x = a[i][p];
          a[i][p] = c * x - s * a[i][q];
          a[i][q] = s * x + c * a[i][q];
        }
        for (std::size_t i = 0; i < n; ++i) {
          const Real x = a[p][i];
          a[p][i] = c * x - s * a[q][i];
          a[q][i] = s * x + c * a[q][i];
          const Real y = vectors[p][i];
          vectors[p][i] = c * y - s * vectors[q][i];
          vectors[q][i] = s * y + c * vectors[q][i];
        }
      }
    }
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return a[i][i] < a[j][j]; });
  Matrix sorted;
  values.clear();
  for (const std::size_t i : order) {
    values.push_back(a[i][i]);
    sorted.push_back(vectors[i]);
  }
  vectors = std::move(sorted);
}

/// Orthonormal rows of `given`, in order; a row of zeros stays one.
Matrix orthonormal(Matrix given) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (int pass = 0; pass < 3; ++pass) {
      for (std::size_t j = 0; j < i; ++j) {
        const Real dot = std::inner_product(given[i].begin(), given[i].end(), given[j].begin(), Real{0});
        for (std::size_t c = 0; c < given[i].size(); ++c) given[i][c] -= dot * given[j][c];
      }
    }
    const Real square = std::inner_product(given[i].begin(), given[i].end(), given[i].begin(), Real{0});
    for (Real& x : given[i]) x = square > 0 ? x / std::sqrt(square) : 0;
  }
  return given;
}

/// Differences of the neighbors from `from`, [k][d].
Matrix differences(std::span<const double> table, std::int64_t d, std::span<const std::int64_t> near,
                   std::span<const Real> from) {
  Matrix rows;
  for (const std::int64_t id : near) {
    std::vector<Real> row;
    for (std::int64_t c = 0; c < d; ++c) row.push_back(static_cast<Real>(table[id * d + c]) - from[c]);
    rows.push_back(row);
  }
  return rows;
}

/// Left singular vectors of rows [k][d], all k of them, and squared singular values, descending.
void decompose(const Matrix& rows, std::vector<Real>& squares, Matrix& left) {
  Matrix gram(rows.size(), std::vector<Real>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows.size(); ++j) {
      gram[i][j] = std::inner_product(rows[i].begin(), rows[i].end(), rows[j].begin(), Real{0});
    }
  }
  eigen(gram, squares, left);
  std::reverse(squares.begin(), squares.end());
  std::reverse(left.begin(), left.end());
}

std::vector<Real> values_of(std::span<const double> table, std::int64_t d, std::int64_t i) {
  return {table.begin() + i * d, table.begin() + (i + 1) * d};
}

std::vector<Real> mean_of(std::span<const double> table, std::int64_t d, std::span<const std::int64_t> near) {
  std::vector<Real> mean(static_cast<std::size_t>(d), 0);
  for (const std::int64_t id : near) {
    for (std::int64_t c = 0; c < d; ++c)
      mean[c] += static_cast<Real>(table[id * d + c]) / static_cast<Real>(near.size());
  }
  return mean;
}

/// Row by row: an equation over some columns.
struct Equation {
  std::vector<std::int64_t> cols;
  std::vector<Real> values;
};

struct Spectrum {
  std::vector<Real> squares;
  Matrix left;
};

std::vector<Equation> modified(std::span<const double> table, std::int64_t d, std::span<const std::int64_t> ids,
                               const LleOptions& options) {
  const auto k = static_cast<std::size_t>(options.k);
  const std::size_t n = ids.size() / k;
  const std::size_t nev = std::min(k, static_cast<std::size_t>(d));
  std::vector<Spectrum> of(n);
  std::vector<Real> ratios;
  for (std::size_t i = 0; i < n; ++i) {
    const auto near = ids.subspan(i * k, k);
    decompose(differences(table, d, near, values_of(table, d, static_cast<std::int64_t>(i))), of[i].squares,
              of[i].left);
    Real head = 0;
    Real tail = 0;
    for (std::size_t c = 0; c < nev; ++c) {
      (static_cast<std::int64_t>(c) < options.dim ? head : tail) += of[i].squares[c];
    }
    ratios.push_back(head > 0 ? tail / head : 0);
  }
  std::sort(ratios.begin(), ratios.end());
  const Real eta = n % 2 == 1 ? ratios[n / 2] : (ratios[n / 2] + ratios[n / 2 - 1]) / 2;
  std::vector<Equation> all;
  for (std::size_t i = 0; i < n; ++i) {
    const auto near = ids.subspan(i * k, k);
    const Real total =
        std::accumulate(of[i].squares.begin(), of[i].squares.begin() + static_cast<std::ptrdiff_t>(nev), Real{0});
    std::size_t s = k - nev;
    for (std::size_t kept = 1; kept < nev; ++kept) {
      const auto middle = of[i].squares.begin() + static_cast<std::ptrdiff_t>(kept);
      const Real head = std::accumulate(of[i].squares.begin(), middle, Real{0});
      const Real tail = std::accumulate(middle, of[i].squares.begin() + static_cast<std::ptrdiff_t>(nev), Real{0});
      if (tail / head < eta) ++s;
    }
    s = std::max<std::size_t>(1, s);
    std::vector<Real> weights(k, 0);
    for (std::size_t c = 0; c < k; ++c) {
      const Real ones = std::accumulate(of[i].left[c].begin(), of[i].left[c].end(), Real{0});
      const Real value = (c < nev ? of[i].squares[c] : 0) + 1e-3 * total;
      for (std::size_t j = 0; j < k; ++j) weights[j] += of[i].left[c][j] * ones / value;
    }
    const Real scale = std::accumulate(weights.begin(), weights.end(), Real{0});
    std::vector<Real> sums;
    Real square = 0;
    for (std::size_t c = k - s; c < k; ++c) {
      sums.push_back(std::accumulate(of[i].left[c].begin(), of[i].left[c].end(), Real{0}));
      square += sums.back() * sums.back();
    }
    const Real alpha = std::sqrt(square / static_cast<Real>(s));
    std::vector<Real> h;
    Real length = 0;
    for (const Real x : sums) {
      h.push_back(alpha - x);
      length += h.back() * h.back();
    }
    length = std::sqrt(length);
    for (Real& x : h) x = length < 1e-12L ? 0 : x / length;
    for (std::size_t c = 0; c < s; ++c) {
      Equation equation{{near.begin(), near.end()}, {}};
      for (std::size_t j = 0; j < k; ++j) {
        Real vh = 0;
        for (std::size_t e = 0; e < s; ++e) vh += of[i].left[k - s + e][j] * h[e];
        equation.values.push_back(of[i].left[k - s + c][j] - 2 * vh * h[c] + (1 - alpha) * weights[j] / scale);
      }
      equation.cols.push_back(static_cast<std::int64_t>(i));
      equation.values.push_back(-1);
      all.push_back(equation);
    }
  }
  return all;
}

std::vector<Equation> tangents(std::span<const double> table, std::int64_t d, std::span<const std::int64_t> near,
                               const LleOptions& options) {
  Spectrum of;
  decompose(differences(table, d, near, mean_of(table, d, near)), of.squares, of.left);
  const auto dim = static_cast<std::size_t>(options.dim);
  Matrix basis = {std::vector<Real>(near.size(), 1)};
  for (std::size_t c = 0; c < dim; ++c) basis.push_back(of.left[c]);
  const bool second = options.variant == LleVariant::hessian;
  if (second) {
    for (std::size_t a = 0; a < dim; ++a) {
      for (std::size_t b = a; b < dim; ++b) {
        std::vector<Real> product;
        for (std::size_t j = 0; j < near.size(); ++j) product.push_back(of.left[a][j] * of.left[b][j]);
        basis.push_back(product);
      }
    }
  }
  basis = orthonormal(basis);
  std::vector<Equation> all;
  for (std::size_t c = 1 + dim; second && c < basis.size(); ++c) all.push_back({{near.begin(), near.end()}, basis[c]});
  for (std::size_t j = 0; !second && j < near.size(); ++j) {  // a row of I - G G', whose square it is itself
    std::vector<Real> row(near.size(), 0);
    row[j] = 1;
    for (const auto& g : basis) {
      for (std::size_t c = 0; c < near.size(); ++c) row[c] -= g[c] * g[j];
    }
    all.push_back({{near.begin(), near.end()}, row});
  }
  return all;
}

}  // namespace

std::vector<Real> lle_weights(std::span<const double> row, std::span<const double> neighbors, std::int64_t k,
                              Real reg) {
  const auto d = static_cast<std::int64_t>(row.size());
  std::vector<std::int64_t> all(static_cast<std::size_t>(k));
  std::iota(all.begin(), all.end(), 0);
  const Matrix c = differences(neighbors, d, all, std::vector<Real>(row.begin(), row.end()));
  const auto count = static_cast<std::size_t>(k);
  Matrix g(count, std::vector<Real>(count + 1, 1));
  Real trace = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j)
      g[i][j] = std::inner_product(c[i].begin(), c[i].end(), c[j].begin(), Real{0});
    trace += g[i][i];
  }
  for (std::size_t i = 0; i < count; ++i) g[i][i] += trace > 0 ? reg * trace : reg;
  for (std::size_t p = 0; p < count; ++p) {  // Gauss and Jordan; the matrix is positive definite
    for (std::size_t i = 0; i < count; ++i) {
      if (i == p) continue;
      const Real factor = g[i][p] / g[p][p];
      for (std::size_t j = p; j <= count; ++j) g[i][j] -= factor * g[p][j];
    }
  }
  std::vector<Real> weights;
  Real sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    weights.push_back(g[i][count] / g[i][i]);
    sum += weights.back();
  }
  for (Real& weight : weights) weight /= sum;
  return weights;
}

LlePartition lle_pieces(std::span<const std::int64_t> ids, std::int64_t k) {
  const auto n = static_cast<std::int64_t>(ids.size()) / k;
  std::vector<std::vector<bool>> leads(static_cast<std::size_t>(n), std::vector<bool>(static_cast<std::size_t>(n)));
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<std::int64_t> left = {i};
    leads[i][i] = true;
    while (!left.empty()) {
      const std::int64_t at = left.back();
      left.pop_back();
      for (std::int64_t j = 0; j < k; ++j) {
        const std::int64_t to = ids[at * k + j];
        if (!leads[i][to]) left.push_back(to);
        leads[i][to] = true;
      }
    }
  }
  // A closed class goes by its smallest row.
  std::vector<std::int64_t> class_of(static_cast<std::size_t>(n), -1);
  for (std::int64_t i = 0; i < n; ++i) {
    bool closed = true;
    for (std::int64_t j = 0; j < n; ++j) closed = closed && (!leads[i][j] || leads[j][i]);
    if (!closed) continue;
    class_of[i] = std::find(leads[i].begin(), leads[i].end(), true) - leads[i].begin();
  }
  LlePartition found{std::vector<std::int64_t>(static_cast<std::size_t>(n), -1),
                     std::vector<std::int64_t>(static_cast<std::size_t>(n), -1)};
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<std::int64_t> reached;
    for (std::int64_t j = 0; j < n; ++j) {
      if (leads[i][j] && class_of[j] == j) reached.push_back(j);
    }
    if (reached.size() != 1) continue;
    found.piece[i] = reached[0];
    found.round[i] = 0;
  }
  bool open = true;
  for (std::int64_t round = 1; open; ++round) {
    const LlePartition before = found;
    open = false;
    for (std::int64_t i = 0; i < n; ++i) {
      if (before.round[i] >= 0) continue;
      open = true;
      for (std::int64_t j = k - 1; j >= 0; --j) {
        if (before.round[ids[i * k + j]] < 0) continue;
        found.piece[i] = before.piece[ids[i * k + j]];
        found.round[i] = round;
      }
    }
  }
  std::vector<std::int64_t> numbered(static_cast<std::size_t>(n), -1);
  std::int64_t count = 0;
  for (std::int64_t& piece : found.piece) {
    if (numbered[piece] < 0) numbered[piece] = count++;
    piece = numbered[piece];
  }
  return found;
}

std::vector<Real> lle_matrix(std::span<const double> table, std::int64_t d, std::span<const std::int64_t> ids,
                             const LleOptions& options) {
  const auto n = static_cast<std::int64_t>(table.size()) / d;
  std::vector<Equation> equations;
  if (options.variant == LleVariant::modified) {
    equations = modified(table, d, ids, options);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      const auto near = ids.subspan(static_cast<std::size_t>(i * options.k), static_cast<std::size_t>(options.k));
      if (options.variant != LleVariant::standard) {
        for (Equation& equation : tangents(table, d, near, options)) equations.push_back(std::move(equation));
        continue;
      }
      std::vector<double> rows;
      for (const std::int64_t id : near) rows.insert(rows.end(), table.begin() + id * d, table.begin() + (id + 1) * d);
      Equation equation{{near.begin(), near.end()},
                        lle_weights(table.subspan(static_cast<std::size_t>(i * d), static_cast<std::size_t>(d)), rows,
                                    options.k, options.reg)};
      equation.cols.push_back(i);
      equation.values.push_back(-1);
      equations.push_back(std::move(equation));
    }
  }
  std::vector<Real> m(static_cast<std::size_t>(n * n), 0);
  for (const Equation& equation : equations) {
    for (std::size_t a = 0; a < equation.cols.size(); ++a) {
      for (std::size_t b = 0; b < equation.cols.size(); ++b) {
        m[equation.cols[a] * n + equation.cols[b]] += equation.values[a] * equation.values[b];
      }
    }
  }
  return m;
}

LleProblem lle_problem(std::vector<Real> matrix) {
  LleProblem found;
  found.n = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(matrix.size()))));
  const auto n = static_cast<std::size_t>(found.n);
  Matrix a;
  for (std::size_t i = 0; i < n; ++i) {
    a.emplace_back(matrix.begin() + static_cast<std::ptrdiff_t>(i * n),
                   matrix.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
  }
  Matrix vectors;
  eigen(std::move(a), found.values, vectors);
  for (const auto& row : vectors) found.vectors.insert(found.vectors.end(), row.begin(), row.end());
  found.matrix = std::move(matrix);
  return found;
}

}  // namespace vicinal::reference
