// See check.hpp; and the names of the options.
#include "ops/lle/check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/names.hpp"
#include "ops/common/refuse.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<LleVariant>, 5> kVariants = {{
    {LleVariant::standard, "standard"},
    {LleVariant::modified, "modified"},
    {LleVariant::hessian, "hessian"},
    {LleVariant::hessian_sklearn, "hessian_sklearn"},
    {LleVariant::ltsa, "ltsa"},
}};
constexpr std::array<core::Named<LleSolver>, 6> kSolvers = {{
    {LleSolver::automatic, "automatic"},
    {LleSolver::dense, "dense"},
    {LleSolver::direct, "direct"},
    {LleSolver::cpu, "cpu"},
    {LleSolver::lanczos, "lanczos"},
    {LleSolver::arnoldi, "arnoldi"},
}};
constexpr std::array<core::Named<LlePieces>, 2> kPieces = {
    {{LlePieces::apart, "apart"}, {LlePieces::refuse, "refuse"}}};

constexpr std::array<core::Named<LleCount>, 6> kCounts = {{
    {LleCount::complete, "complete"},
    {LleCount::clustered, "clustered"},
    {LleCount::skipped, "skipped"},
    {LleCount::unresolved, "unresolved"},
    {LleCount::not_asked, "not_asked"},
    {LleCount::by_solver, "by_solver"},
}};

}  // namespace

std::string_view name_of(LleCount count) noexcept {
  return core::name_in(kCounts, count);
}
std::string_view name_of(LleVariant variant) noexcept {
  return core::name_in(kVariants, variant);
}
std::string_view name_of(LleSolver solver) noexcept {
  return core::name_in(kSolvers, solver);
}
std::string_view name_of(LlePieces pieces) noexcept {
  return core::name_in(kPieces, pieces);
}
LleVariant lle_variant_from(std::string_view name) {
  return core::value_in(kVariants, "variant", name);
}
LleSolver lle_solver_from(std::string_view name) {
  return core::value_in(kSolvers, "solver", name);
}
LlePieces lle_pieces_from(std::string_view name) {
  return core::value_in(kPieces, "way with pieces", name);
}

namespace ops {

void check_lle_options(const LleOptions& options, std::int64_t n) {
  if (options.dim < 1) refuse(fmt::format("dim: is {}, must be at least 1", options.dim));
  if (options.k < 1) refuse(fmt::format("k: is {}, must be at least 1", options.k));
  if (options.k > n - 1) {
    refuse(fmt::format("k: is {}, but at most {} of the {} table rows can be neighbors; a row is not its own neighbor",
                       options.k, n - 1, n));
  }
  if (options.dim >= options.k) {
    refuse(fmt::format("dim: is {}, must be below k, which is {}", options.dim, options.k));
  }
  if (!(options.reg >= 0 && std::isfinite(options.reg))) {
    refuse(fmt::format("reg: is {}, must be at least 0 and finite", options.reg));
  }
  if (options.max_steps < 1) refuse(fmt::format("max_steps: is {}, must be at least 1", options.max_steps));
  const std::int64_t hessian = options.dim * (options.dim + 3) / 2;
  if ((options.variant == LleVariant::hessian || options.variant == LleVariant::hessian_sklearn) &&
      options.k <= hessian) {
    refuse(fmt::format("k: is {}, but {} of dimension {} needs more than {} neighbors", options.k,
                       name_of(options.variant), options.dim, hessian));
  }
  if (options.variant == LleVariant::ltsa && options.k <= options.dim + 1) {
    refuse(fmt::format("k: is {}, but ltsa of dimension {} needs more than {} neighbors", options.k, options.dim,
                       options.dim + 1));
  }
}

void check_lle_table(const TableView& table) {
  if (table.is_block_source()) refuse("table: lle needs it in memory, but it comes in blocks");
  if (table.rows() >= std::numeric_limits<std::int32_t>::max()) {
    refuse(fmt::format("table: has {} rows, more than lle can number", table.rows()));
  }
}

void check_lle_graph(const NeighborGraph& graph, std::int64_t n) {
  if (graph.is_csr() || graph.k < 1) refuse("graph: lle needs one of k neighbors a row");
  if (graph.rows != n || graph.table_rows != n) {
    refuse(
        fmt::format("graph: joins {} rows with {} table rows, but the table has {}", graph.rows, graph.table_rows, n));
  }
  if (graph.k > n - 1 || static_cast<std::int64_t>(graph.ids.size()) != n * graph.k) {
    refuse(fmt::format("graph: has {} ids, which are not {} rows of {}", graph.ids.size(), n, graph.k));
  }
  std::vector<std::int64_t> sorted;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto ids = graph.ids_of(i);
    sorted.assign(ids.begin(), ids.end());
    std::sort(sorted.begin(), sorted.end());
    const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    if (sorted.front() >= 0 && sorted.back() < n && !twice && !std::binary_search(sorted.begin(), sorted.end(), i)) {
      continue;
    }
    throw Error(
        ErrorCode::bad_data,
        fmt::format("graph: the neighbors of row {} contain the row itself, a row twice or a number that is not a row",
                    i));
  }
}

void check_lle_fitted(const Lle& fitted, std::int64_t n) {
  const auto rows = static_cast<std::size_t>(n);
  if (fitted.piece.size() != rows || fitted.options.dim < 1 || fitted.options.k < 1 || fitted.options.k > n ||
      fitted.embedding.size() != rows * static_cast<std::size_t>(fitted.options.dim)) {
    refuse(fmt::format("fitted: is an embedding of {} rows, but the table has {}", fitted.piece.size(), n));
  }
  if (!std::all_of(fitted.piece.begin(), fitted.piece.end(), [n](std::int64_t p) { return p >= 0 && p < n; })) {
    refuse("fitted: has a piece number that is not that of a piece");
  }
}

}  // namespace ops
}  // namespace vicinal
