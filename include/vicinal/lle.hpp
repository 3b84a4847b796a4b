// lle: locally linear embedding and its variants. The embedding consists of the eigenvectors that best preserve how
// each row is composed of its neighbors (docs/contract.md, clause 17).
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
  automatic,  ///< dense for few rows, else direct, or lanczos if the factor would not fit or would cost more
  dense,      ///< all singular values, O(n^3); for checking the others
  direct,     ///< a sparse factor (nested dissection) and inverse iteration, on the context's device
  cpu,        ///< direct, on the host for every context
  lanczos,  ///< block Lanczos with a polynomial filter: only products with M; for data of high dimension, whose factor
            ///< is large
  arnoldi,  ///< one vector at a time, as in Li, Yan and Zhang 2021, for comparison: it may miss repeated eigenvalues
};

/// How a neighbor graph in several pieces is treated. A piece is a connected component. For the variant `standard` a
/// component with several closed classes has one piece for each of them; a closed class is a set of rows that reach
/// each other, and no other row, through their neighbors.
enum class LlePieces : std::uint8_t {
  apart,   ///< each piece is embedded separately; rows that reach several closed classes are placed afterwards
  refuse,  ///< an error that states the number of pieces
};

/// The result of counting the eigenvalues of a piece (`LlePiece::counted`), or the reason why they were not counted.
enum class LleCount : std::uint8_t {
  complete,   ///< the count equals the number found: none was skipped
  clustered,  ///< the last eigenvalue and the next one are equal to 1e-3 or to rounding, so `dim` divides a cluster of
              ///< eigenvalues. None below the cluster was skipped; the vectors of the cluster are one choice of several
  skipped,    ///< eigenvalues below the last one were not found
  unresolved,  ///< not counted: eigenvalues are too close to each other or to 0 to be separated by a factor's signs
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
  std::int64_t k = 12;   ///< neighbors per row, without the row itself; dim < k <= n - 1
  std::int64_t dim = 2;  ///< columns of the embedding
  LleVariant variant = LleVariant::standard;
  double reg = 1e-3;  ///< standard and `transform`: fraction of a local Gram matrix's trace added to its diagonal
  LleSolver solver = LleSolver::automatic;
  std::int64_t max_steps = 200'000;  ///< lanczos, arnoldi: maximum products with M per piece
  LlePieces pieces = LlePieces::apart;
  bool certify = true;                ///< direct: count the eigenvalues below the last one found, with a second factor
  Metric metric = Metric::euclidean;  ///< for the neighbors; weights are Euclidean
  double p = 2;
  Method method = Method::automatic;
};

/// One piece of the neighbor graph and the eigenpairs of its eigenproblem, in ascending order.
struct LlePiece {
  std::int64_t rows = 0;            ///< including those that were placed
  std::int64_t placed = 0;          ///< of these, rows that reach several closed classes: not part of the eigenproblem
  std::int64_t component = 0;       ///< number of the connected component that contains the piece
  std::int64_t closed_classes = 0;  ///< number of closed classes in that component; 0: not computed for the variant
  LleSolver solver = LleSolver::dense;  ///< the solver used: dense, direct, lanczos or arnoldi
  std::vector<double> singular_values;  ///< [dim] of the factor A of M = A'A: eigenvalues are their squares
  std::vector<double> residuals;        ///< [dim] length of M v - lambda v for each column v
  std::vector<double> angles;           ///< [dim] estimated sine of the angle to the true vectors; 0: dense
  std::vector<double> localization;     ///< [dim] participation ratio 1 / (n sum v^4): 1 spread out, 1 / n one row
  double next_singular_value = 0;       ///< the first one after these (an upper bound; 0: there is none)
  double norm = 0;                      ///< an upper bound of the norm of M
  std::int64_t zeros = 0;     ///< number of singular values that are 0 to rounding: at most 1e-14 of the norm of A
  std::int64_t counted = -1;  ///< eigenvalues below the midpoint of the last and the next one, from the signs of a
                              ///< factor, without that of the constant vector; -1: not counted
  LleCount count = LleCount::by_solver;  ///< the meaning of `counted`
  std::int64_t iterations = 0;           ///< direct: steps; lanczos, arnoldi: products with M
  std::int64_t fill = 0;                 ///< direct: entries of the factor
  double flops = 0;                      ///< direct: multiplications and additions of the factor
};

struct Lle {
  std::vector<double> embedding;    ///< [n, dim] columns of length one within each piece, orthogonal to the constant;
                                    ///< the entry of largest magnitude (within 1e-6: of smallest id) is above 0
  std::vector<std::int64_t> piece;  ///< [n] number of the row's piece; pieces are numbered by their smallest rows
  std::vector<LlePiece> pieces;
  std::vector<std::int64_t> placed;  ///< rows that were placed by their neighbors in their piece, ascending; not saved
  LleOptions options;
  std::string warning;  ///< if the memory limit forced a slower solver: which one, and instead of which; else empty
  double eigenvalue_sum = 0;  ///< sum over all pieces; scikit-learn's reconstruction_error_
  /// Variant `standard`: the largest magnitude of a weight; large if neighbors are on one side of a row.
  double largest_weight = 0;
  Plan plan;  ///< plan of the search, with the solver's memory and time; `reason` names the solver, too
  SearchStats stats;
  double weight_seconds = 0;
  double order_seconds = 0;
  double factor_seconds = 0;
  double solve_seconds = 0;  ///< including the count
};

/// Embeds the rows of a table [n, d]: embedding [n, dim]. Rows in device memory are searched there and copied to the
/// host, which computes the elimination order.
///
/// Time: the search, O(n k^3) for the weights, and the solver: `direct` O(n^1.5) for data of intrinsic dimension two
/// and O(n^2) for three; `lanczos` about sqrt(largest / smallest eigenvalue) products with M, few for high dimensions
/// and very many for two. The same bits for every thread count on one instruction set; other instruction sets and
/// devices differ in the last bits.
///
/// Throws `invalid_argument` for options outside their domain and block sources, `bad_data` for NaN, infinity, weights
/// that are not determined (reg 0) and, with LlePieces::refuse, graphs in several pieces, `over_memory` before the
/// search with the bytes that `plan_lle` states, and before the factor, `internal` if the iteration does not converge
/// (for `lanczos` and `arnoldi` perhaps because max_steps is too small), `cancelled`.
VICINAL_API Lle lle(const Context& ctx, const TableView& table, const LleOptions& options = {});
/// As above, with known neighbors: a graph of k neighbors for each row of the table within itself. `options.k` is
/// ignored. Throws also `invalid_argument` for a graph of another table.
VICINAL_API Lle lle(const Context& ctx, const TableView& table, const NeighborGraph& graph, const LleOptions& options);

/// Coordinates [m, dim] of other rows. Each query is expressed by standard weights over its k nearest table rows,
/// restricted to the piece of the nearest one; its coordinates are the same weighted sum of their coordinates.
/// Throws `invalid_argument` for an embedding of another table and queries of another width, `bad_data` for NaN,
/// infinity and weights that are not determined, `over_memory`, `cancelled`. Cost of `knn`, and O(m k^3).
VICINAL_API std::vector<double> transform(const Context& ctx, const Index& index, const Lle& fitted,
                                          const TableView& queries);

/// The plan of `lle`, as far as it is known before the search.
struct LlePlan : Plan {
  LleSolver solver = LleSolver::automatic;  ///< solver of the largest piece; `automatic`: not known yet
  std::string warning;                      ///< the slower solver that the memory limit forces; empty: none
};

/// The plan of `lle`. With `memory`, the call, search included, takes about `expected_seconds`. With less memory
/// `automatic` uses products with M if that is enough, and `warning` states the cost. Two samples of at most 6,144 rows
/// are embedded and the sizes of their factors extrapolated, so the plan is exact up to 6,144 rows. The solver's time
/// on a device is not estimated. Throws `invalid_argument` for options outside their domain and `bad_data` for NaN and
/// infinity.
VICINAL_API LlePlan plan_lle(const Context& ctx, const TableView& table, const LleOptions& options = {});

}  // namespace vicinal
