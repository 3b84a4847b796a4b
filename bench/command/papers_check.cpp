// See papers_check.hpp.
#include "command/papers_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "reference/cocluster.hpp"
#include "reference/kmeans.hpp"
#include "reference/lle.hpp"
#include "reference/lof.hpp"

namespace vicinal::cli {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
// A row of M's factor is a solution of a system whose condition is at most k / reg; float64 loses so many of its
// last bits, times the steps of the solution.
constexpr double kStepsOfWeights = 64;
// A product of so many entries of at most 1 rounds each product and each sum once.
constexpr double kProductTolerance = 1e-13;

bool same_list(const NeighborGraph& graph, std::int64_t row, const std::vector<reference::Candidate>& wanted) {
  const auto ids = graph.ids_of(row);
  const auto distances = graph.distances_of(row);
  if (ids.size() > wanted.size()) return false;
  for (std::size_t j = 0; j < ids.size(); ++j) {
    if (ids[j] != wanted[j].id || distances[j] != wanted[j].distance) return false;
  }
  return true;
}

/// Rows of A, those of a piece that are not placed.
struct Factor {
  std::vector<std::int64_t> rows;
  std::vector<std::vector<reference::Real>> weights;
};

Factor factor_of(std::span<const double> values, std::int64_t cols, const NeighborGraph& graph, const Lle& found,
                 std::int64_t piece) {
  Factor factor;
  std::vector<double> near(static_cast<std::size_t>(graph.k * cols));
  for (std::int64_t i = 0; i < graph.rows; ++i) {
    if (found.piece[static_cast<std::size_t>(i)] != piece) continue;
    if (std::binary_search(found.placed.begin(), found.placed.end(), i)) continue;
    const auto row = values.subspan(static_cast<std::size_t>(i * cols), static_cast<std::size_t>(cols));
    auto to = near.begin();
    for (const std::int64_t id : graph.ids_of(i)) to = std::copy_n(values.begin() + id * cols, cols, to);
    factor.rows.push_back(i);
    factor.weights.push_back(reference::lle_weights(row, near, graph.k, found.options.reg));
  }
  return factor;
}

/// A'(A v) = M v.
std::vector<reference::Real> times_m(const Factor& factor, const NeighborGraph& graph,
                                     const std::vector<reference::Real>& v) {
  std::vector<reference::Real> product(v.size());
  for (std::size_t r = 0; r < factor.rows.size(); ++r) {
    const std::int64_t i = factor.rows[r];
    const auto ids = graph.ids_of(i);
    reference::Real value = v[static_cast<std::size_t>(i)];
    for (std::size_t j = 0; j < ids.size(); ++j) value -= factor.weights[r][j] * v[static_cast<std::size_t>(ids[j])];
    product[static_cast<std::size_t>(i)] += value;
    for (std::size_t j = 0; j < ids.size(); ++j) {
      product[static_cast<std::size_t>(ids[j])] -= factor.weights[r][j] * value;
    }
  }
  return product;
}

bool is_eigenvector(const Factor& factor, const NeighborGraph& graph, const Lle& found, const LlePiece& piece,
                    std::int64_t column) {
  const std::int64_t dim = found.options.dim;
  std::vector<reference::Real> v(static_cast<std::size_t>(graph.rows));
  reference::Real length = 0;
  for (const std::int64_t i : factor.rows) {
    v[static_cast<std::size_t>(i)] = found.embedding[static_cast<std::size_t>(i * dim + column)];
    length += v[static_cast<std::size_t>(i)] * v[static_cast<std::size_t>(i)];
  }
  const std::vector<reference::Real> product = times_m(factor, graph, v);
  const reference::Real sigma = piece.singular_values[static_cast<std::size_t>(column)];
  reference::Real square = 0;
  for (const std::int64_t i : factor.rows) {
    const reference::Real rest = product[static_cast<std::size_t>(i)] - sigma * sigma * v[static_cast<std::size_t>(i)];
    square += rest * rest;
  }
  const double tolerance = kStepsOfWeights * static_cast<double>(graph.k) / found.options.reg * kEpsilon * piece.norm;
  return std::sqrt(static_cast<double>(square)) <= tolerance &&
         std::abs(static_cast<double>(length) - 1) <= 1e-9;  // clause 17: a column has length one
}

}  // namespace

ListCheck::ListCheck(const TableView& table, const TableView* queries, std::int64_t sample) : table_(table) {
  const TableView& asked = queries != nullptr ? *queries : table;
  const std::int64_t count = std::min(sample, asked.rows());
  for (std::int64_t i = 0; i < count; ++i) {
    rows_.push_back(asked.rows() * i / count);
    const std::vector<double> row = reference::widen(asked.slice(rows_.back(), rows_.back() + 1));
    sample_.insert(sample_.end(), row.begin(), row.end());
  }
  reference::Question question;
  if (queries == nullptr) question.exclude = rows_;
  ranking_ = reference::rank(table, TableView(sample_.data(), count, asked.cols()), question);
}

Verdict ListCheck::of(const NeighborGraph& graph) const {
  Verdict verdict;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    ++verdict.checked;
    if (!same_list(graph, rows_[i], ranking_[i])) ++verdict.wrong;
  }
  return verdict;
}

std::vector<std::int32_t> ListCheck::votes(std::int64_t k, const Labels& labels) const {
  return reference::vote(reference::knn(ranking_, k), labels, Weighting::uniform).codes;
}

Verdict ListCheck::of_votes(std::int64_t k, const Labels& labels, std::span<const std::int32_t> codes) const {
  const std::vector<std::int32_t> wanted = votes(k, labels);
  Verdict verdict;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    ++verdict.checked;
    if (codes[static_cast<std::size_t>(rows_[i])] != wanted[i]) ++verdict.wrong;
  }
  return verdict;
}

Verdict ListCheck::of_scores(const NeighborGraph& within, const LofOptions& options,
                             std::span<const double> scores) const {
  const Lof model = reference::lof(within, &table_, options);
  const TableView asked(sample_.data(), static_cast<std::int64_t>(rows_.size()), table_.cols());
  const std::vector<double> wanted = reference::novelty(table_, model, asked, ranking_);
  Verdict verdict;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    ++verdict.checked;
    if (scores[static_cast<std::size_t>(rows_[i])] != wanted[i]) ++verdict.wrong;
  }
  return verdict;
}

Verdict check_classical(const TableView& table, const KMeansOptions& options, const KMeans& found) {
  const auto serial = reference::classical_kmeans(table, options.clusters, options.changed_share);
  if (found.labels == serial.labels && found.iterations == serial.loops + 1) return {1, 0};
  const KMeans wanted = reference::kmeans(table, options);
  const bool same = found.labels == wanted.labels && found.centres == wanted.centres;
  return {1, same && found.iterations == wanted.iterations ? 0 : 1};
}

Verdict check_groups(const BipartiteEdges& edges, const Cocluster& found) {
  const Cocluster wanted = reference::cocluster(edges);
  Verdict verdict{1, found.labels_a == wanted.labels_a && found.labels_b == wanted.labels_b ? 0 : 1};
  if (!found.nonzeros.empty()) verdict += {1, found.nonzeros == reference::closure_nonzeros(edges) ? 0 : 1};
  return verdict;
}

Verdict check_embedding(std::span<const double> rows, std::int64_t cols, const NeighborGraph& graph, const Lle& found) {
  Verdict verdict;
  for (std::size_t p = 0; p < found.pieces.size(); ++p) {
    const Factor factor = factor_of(rows, cols, graph, found, static_cast<std::int64_t>(p));
    for (std::int64_t c = 0; c < found.options.dim; ++c) {
      ++verdict.checked;
      if (!is_eigenvector(factor, graph, found, found.pieces[p], c)) ++verdict.wrong;
    }
  }
  return verdict;
}

Verdict check_product(const SparseView& a, std::span<const double> x, std::span<const double> product) {
  Verdict verdict;
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    long double sum = 0;
    for (auto e = static_cast<std::size_t>(a.offsets[at]); e < static_cast<std::size_t>(a.offsets[at + 1]); ++e) {
      sum += static_cast<long double>(a.values[e]) * x[static_cast<std::size_t>(a.index[e])];
    }
    ++verdict.checked;
    if (!(std::abs(static_cast<double>(sum) - product[at]) <= kProductTolerance)) ++verdict.wrong;
  }
  return verdict;
}

}  // namespace vicinal::cli
