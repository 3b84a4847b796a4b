// lle: locally linear embedding and its variants, the eigenvectors that best preserve each row's reconstruction from
// its neighbors (docs/contract.md, clause 17).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// What is preserved of each row's neighborhood.
enum class LleVariant : std::uint8_t {
  standard,         ///< one set of weights that reconstructs the row from its neighbors (Roweis and Saul 2000)
  modified,         ///< several sets of weights, as many as the neighbors allow (Zhang and Wang 2006)
  hessian,          ///< second derivatives on the tangent plane, dim (dim + 1) / 2 per row (Donoho and Grimes 2003)
  hessian_sklearn,  ///< what scikit-learn calls hessian, which is LTSA
  ltsa,             ///< local tangent space alignment (Zhang and Zha 2004)
};

/// How the eigenvectors are found.
enum class LleSolver : std::uint8_t {
  automatic,  ///< dense for few rows; direct; lanczos where the factor would not fit, or costs more
  dense,      ///< all singular values, O(n^3); for checking the others
  direct,     ///< a sparse factor by nested dissection and inverse iteration, on the context's device
  cpu,        ///< direct, on the host for every context
  lanczos,    ///< block Lanczos with a filter: products with M only, for data of high dimension, whose factor is large
  arnoldi,    ///< one vector at a time, as in Li, Yan and Zhang 2021, for comparison: it may miss repeated eigenvalues
};

/// How a neighbor graph in several pieces is treated. Pieces are connected components; for `standard` they are closed
/// classes: rows that reach each other through their neighbors, and no other rows.
enum class LlePieces : std::uint8_t {
  apart,   ///< each piece is embedded on its own; rows that reach several closed classes are placed afterwards
  refuse,  ///< an error that states their number
};

/// What the count of a piece's eigenvalues (`LlePiece::counted`) shows, or why they were not counted.
enum class LleCount : std::uint8_t {
  complete,    ///< the count equals the number found: none was skipped
  clustered,   ///< the last eigenvalue and the next agree to 1e-3 or to rounding, so that the cut at `dim` goes through
               ///< a cluster. None below the cluster was skipped; vectors of the cluster are one choice of several
  skipped,     ///< eigenvalues below the last one were not found
  unresolved,  ///< not counted: eigenvalues are too close to each other or to 0 for the signs of a factor
  not_asked,   ///< not counted: `certify` was false
  by_solver,   ///< not counted: dense finds all of them, lanczos and arnoldi have no factor
};

VICINAL_API std::string_view name_of(LleCount count) noexcept;
VICINAL_API std::string_view name_of(LleVariant variant) noexcept;
VICINAL_API std::string_view name_of(LleSolver solver) noexcept;
VICINAL_API std::string_view name_of(LlePieces pieces) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API LleVariant lle_variant_from(std::string_view name);
VICINAL_API LleSolver lle_solver_from(std::string_view name);
VICINAL_API LlePieces lle_pieces_from(std::string_view name);

struct LleOptions {
  std::int64_t k = 12;   ///< neighbors per row, itself not counted; dim < k <= n - 1
  std::int64_t dim = 2;  ///< columns of the embedding
  LleVariant variant = LleVariant::standard;
  double reg = 1e-3;  ///< standard and `transform`: fraction of a local Gram matrix's trace added to its diagonal
  LleSolver solver = LleSolver::automatic;
  std::int64_t max_steps = 200'000;  ///< lanczos, arnoldi: maximum products with M per piece
  LlePieces pieces = LlePieces::apart;
  bool certify = true;                ///< direct: count the eigenvalues below the last one found, by a second factor
  Metric metric = Metric::euclidean;  ///< of the neighbors; weights are Euclidean
  double p = 2;
  Method method = Method::automatic;
};

/// One piece of the neighbor graph and the eigenpairs of its own problem, in ascending order.
struct LlePiece {
  std::int64_t rows = 0;                ///< with those that were placed
  std::int64_t placed = 0;              ///< of these, rows that lead to several closed classes: not part of its problem
  std::int64_t component = 0;           ///< of the neighbor graph, that the piece is, or is of
  std::int64_t closed_classes = 0;      ///< of that component; 0: the variant has none
  LleSolver solver = LleSolver::dense;  ///< that found them: dense, direct, lanczos or arnoldi
  std::vector<double> singular_values;  ///< [dim] of the factor A of M = A'A: eigenvalues are their squares
  std::vector<double> residuals;        ///< [dim] length of M v - lambda v
  std::vector<double> angles;        ///< [dim] estimated sine of the angle that is left to the true vectors; 0: dense
  std::vector<double> localization;  ///< [dim] participation ratio 1 / (n sum v^4): 1 spread out, 1 / n one row
  double next_singular_value = 0;    ///< the first that was left out (an upper bound; 0: there is none)
  double norm = 0;                   ///< a bound of M's norm
  std::int64_t zeros = 0;     ///< of the singular values, those that are 0 to rounding: at most 1e-14 of A's norm
  std::int64_t counted = -1;  ///< eigenvalues below the middle of the last and the next one, by a factor's
                              ///< signs, the constant vector's left out; -1: not counted
  LleCount count = LleCount::by_solver;  ///< what that says
  std::int64_t iterations = 0;           ///< direct: steps; lanczos, arnoldi: products with M
  std::int64_t fill = 0;                 ///< entries of the direct factor
  double flops = 0;                      ///< and its multiplications and additions
};

struct Lle {
  std::vector<double> embedding;    ///< [n, dim] columns of length one within each piece, orthogonal to the constant;
                                    ///< the entry of largest magnitude (within 1e-6: of smallest id) is above 0
  std::vector<std::int64_t> piece;  ///< [n] number of the row's piece; pieces are numbered by their smallest rows
  std::vector<LlePiece> pieces;
  std::vector<std::int64_t> placed;  ///< rows that were placed by their neighbors in their piece, ascending; not saved
  LleOptions options;
  std::string warning;  ///< what the memory limit cost: a solver that takes longer, instead of which; empty: nothing
  double eigenvalue_sum = 0;  ///< of all pieces; scikit-learn's reconstruction_error_
  double largest_weight = 0;  ///< of standard: the largest magnitude of a weight; large where neighbors do not surround
  Plan plan;                  ///< of the search, with the solver's memory and time, and what it adds to `reason`
  SearchStats stats;
  double weight_seconds = 0;
  double order_seconds = 0;
  double factor_seconds = 0;
  double solve_seconds = 0;  ///< with the count
};

/// Embeds the rows of a table [n, d]: embedding [n, dim]. Rows in device memory are searched there and copied to the
/// host, where the order of elimination is found.
///
/// Time: the search, O(n k^3) for the weights, and the solver: `direct` O(n^1.5) for data of intrinsic dimension two
/// and O(n^2) for three; `lanczos` about sqrt(largest / smallest eigenvalue) products with M, few for high dimensions
/// and very many for two. The same bits for every thread count on one instruction set; other instruction sets and
/// devices differ in the last bits.
///
/// Throws `invalid_argument` for options outside their domain and tables that come in blocks, `bad_data` for NaN,
/// infinity, weights that are not determined (reg 0) and, with LlePieces::refuse, graphs in several pieces,
/// `over_memory` before the search with the bytes that `plan_lle` states, and before the factor, `internal` if the
/// iteration does not converge (for `lanczos` and `arnoldi` perhaps because max_steps is too small), `cancelled`.
VICINAL_API Lle lle(const Context& ctx, const TableView& table, const LleOptions& options = {});
/// As above, with known neighbors: a graph of k neighbors per row of the table within itself. `options.k` is ignored.
VICINAL_API Lle lle(const Context& ctx, const TableView& table, const NeighborGraph& graph, const LleOptions& options);

/// Coordinates [m, dim] of other rows. Each query is expressed by standard weights over its k nearest table rows,
/// restricted to the piece of the nearest one; its coordinates are the same weighted sum of their coordinates.
/// Throws `invalid_argument` for an embedding of another table and queries of another width, `bad_data` for NaN,
/// infinity and weights that are not determined, `over_memory`, `cancelled`. Cost of `knn`, and O(m k^3).
VICINAL_API std::vector<double> transform(const Context& ctx, const Index& index, const Lle& fitted,
                                          const TableView& queries);

/// The plan of `lle`, as far as it can be foreseen before neighbors are known.
struct LlePlan : Plan {
  LleSolver solver = LleSolver::automatic;  ///< of the largest piece; `automatic`: not foreseen
  std::string warning;                      ///< what the memory limit costs; empty: nothing
};

/// The plan of `lle`. `memory` is what it needs to run in `expected_seconds`, search included; with less, `automatic`
/// uses products with M if that is enough, and `warning` states the cost. Two samples of at most 6,144 rows are
/// embedded and their factors extrapolated, so that the plan is exact up to 6,144 rows. The solver's time on a device
/// is not foreseen. Throws `invalid_argument` for options outside their domain and `bad_data` for NaN and infinity.
VICINAL_API LlePlan plan_lle(const Context& ctx, const TableView& table, const LleOptions& options = {});

}  // namespace vicinal
