// spectral_cocluster: the normalized matrix, its leading vectors (leading_vectors.cpp), and k-means (contract clause
// 16).
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "backend/graph.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "ops/common/refuse.hpp"
#include "ops/graph/groups.hpp"
#include "ops/graph/leading_vectors.hpp"
#include "ops/graph/plans.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/spectral_cocluster.hpp"

namespace vicinal {
namespace {

double weight_of(const BipartiteEdges& edges, std::int64_t e) {
  return edges.weights().empty() ? 1 : edges.weights()[static_cast<std::size_t>(e)];
}

/// Weights of each member of a side, added up by ascending edge.
std::vector<double> sums_of(const BipartiteEdges& edges, bool of_a) {
  std::vector<double> sums(static_cast<std::size_t>(of_a ? edges.n_a() : edges.n_b()));
  for (std::int64_t e = 0; e < edges.size(); ++e) {
    sums[static_cast<std::size_t>(of_a ? edges.a(e) : edges.b(e))] += weight_of(edges, e);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (std::isfinite(sums[i])) continue;
    throw Error(ErrorCode::bad_data,
                fmt::format("weights: those of member {} of side {} overflow when added up", i, of_a ? 'a' : 'b'));
  }
  return sums;
}

/// D_a^-1/2 A D_b^-1/2, a row a member of one side.
ops::SparseRows normalised(const BipartiteEdges& edges, const std::vector<double>& sums_a,
                           const std::vector<double>& sums_b, bool by_a) {
  ops::SparseRows rows;
  rows.offsets.assign((by_a ? sums_a : sums_b).size() + 1, 0);
  for (std::int64_t e = 0; e < edges.size(); ++e)
    ++rows.offsets[static_cast<std::size_t>(by_a ? edges.a(e) : edges.b(e)) + 1];
  for (std::size_t i = 1; i < rows.offsets.size(); ++i) rows.offsets[i] += rows.offsets[i - 1];
  rows.columns.resize(static_cast<std::size_t>(edges.size()));
  rows.values.resize(rows.columns.size());
  std::vector<std::int64_t> next(rows.offsets.begin(), rows.offsets.end() - 1);
  for (std::int64_t e = 0; e < edges.size(); ++e) {
    const auto a = static_cast<std::size_t>(edges.a(e));
    const auto b = static_cast<std::size_t>(edges.b(e));
    const double weight = weight_of(edges, e);
    const auto at = static_cast<std::size_t>(next[by_a ? a : b]++);
    rows.columns[at] = static_cast<std::int64_t>(by_a ? b : a);
    rows.values[at] = weight > 0 ? weight / std::sqrt(sums_a[a]) / std::sqrt(sums_b[b]) : 0;
  }
  return rows;
}

void check(const BipartiteEdges& edges, const SpectralOptions& options) {
  const std::int64_t most = std::min(edges.n_a(), edges.n_b());
  if (options.clusters < 2 || options.clusters > most) {
    refuse(fmt::format("clusters: is {}, must be between 2 and {}, the members of the smaller side", options.clusters,
                       most));
  }
  if (options.runs < 1) refuse(fmt::format("runs: is {}, must be at least 1", options.runs));
  for (std::int64_t e = 0; e < edges.size(); ++e) kernels::require_in_range(edges, e);
}

/// Rows of one side in the table that k-means clusters: vectors divided by the roots of the sums.
void place(const std::vector<double>& vectors, const std::vector<double>& sums, std::int64_t count, double* table) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    for (std::int64_t j = 0; j < count; ++j) {
      const auto at = i * static_cast<std::size_t>(count) + static_cast<std::size_t>(j);
      table[at] = sums[i] > 0 ? vectors[at] / std::sqrt(sums[i]) : 0;
    }
  }
}

/// Singular vectors that so many clusters are found by.
std::int64_t vectors_of(const SpectralOptions& options) {
  return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(options.clusters - 1)));
}

}  // namespace

std::uint64_t ops::spectral_bytes(const BipartiteEdges& edges, const SpectralOptions& options) noexcept {
  const auto members = static_cast<std::uint64_t>(edges.n_a() + edges.n_b());
  const auto vectors = static_cast<std::uint64_t>(vectors_of(options));
  // Both orders of the edges; five blocks of vectors, some of them of both sides.
  return static_cast<std::uint64_t>(edges.size()) * 32 + members * 8 * (6 * (vectors + 8) + 4);
}

SpectralCocluster spectral_cocluster(const Context& ctx, const BipartiteEdges& edges,
                                     const SpectralOptions& options) try {
  const core::Entry entry;
  ops::check_weights(ctx, edges.weights());
  check(edges, options);
  const std::int64_t count = vectors_of(options);
  core::require_memory(ctx, ops::spectral_bytes(edges, options), "spectral_cocluster");
  const std::vector<double> sums_a = sums_of(edges, true);
  const std::vector<double> sums_b = sums_of(edges, false);
  double total = 0;
  for (const double sum : sums_a) total += sum;
  if (!(total > 0) || !std::isfinite(total)) {
    throw Error(ErrorCode::bad_data, fmt::format("weights: add up to {}, must be above 0 and finite", total));
  }
  // Vectors of the smaller side are looked for; the first is known: the roots of its sums.
  const bool by_a = edges.n_a() <= edges.n_b();
  const ops::SparseRows matrix = normalised(edges, sums_a, sums_b, by_a);
  const ops::SparseRows across = normalised(edges, sums_a, sums_b, !by_a);
  std::vector<double> first = by_a ? sums_a : sums_b;
  for (double& one : first) one = std::sqrt(one / total);
  SpectralCocluster result;
  result.clusters = options.clusters;
  const std::int64_t found = std::min(count, matrix.rows() - 1);
  const ops::LeadingVectors leading = ops::leading_vectors(ctx, matrix, across, first, found, options.seed);
  result.residual = leading.residual;
  result.rounds = leading.rounds;
  result.singular_values = {1};
  result.singular_values.insert(result.singular_values.end(), leading.values.begin(), leading.values.end());
  // The other side's: M' u / s, or 0 where s is.
  std::vector<double> other(static_cast<std::size_t>(across.rows() * found));
  for (std::int64_t i = 0; i < across.rows(); ++i) {
    for (std::int64_t e = across.offsets[static_cast<std::size_t>(i)];
         e < across.offsets[static_cast<std::size_t>(i) + 1]; ++e) {
      const auto at = static_cast<std::size_t>(e);
      for (std::int64_t j = 0; j < found; ++j) {
        const double s = leading.values[static_cast<std::size_t>(j)];
        if (!(s > 1e-7)) continue;  // the root of the residual: no singular vector can be told from it
        other[static_cast<std::size_t>(i * found + j)] +=
            across.values[at] * leading.vectors[static_cast<std::size_t>(across.columns[at] * found + j)] / s;
      }
    }
  }
  const std::int64_t members = edges.n_a() + edges.n_b();
  std::vector<double> table(static_cast<std::size_t>(members) * static_cast<std::size_t>(found));
  place(by_a ? leading.vectors : other, sums_a, found, table.data());
  place(by_a ? other : leading.vectors, sums_b, found, table.data() + edges.n_a() * found);
  KMeansOptions clustering;
  clustering.clusters = options.clusters;
  clustering.runs = options.runs;
  clustering.seed = options.seed;
  const KMeans clusters = kmeans(ctx, TableView(table.data(), static_cast<std::int64_t>(members), found), clustering);
  result.labels_a.assign(clusters.labels.begin(), clusters.labels.begin() + edges.n_a());
  result.labels_b.assign(clusters.labels.begin() + edges.n_a(), clusters.labels.end());
  return result;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
