// lle: locally linear embedding and its family, the eigenvectors that keep each row where its neighbors say
// (docs/contract.md, clause 17).
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

/// What each row's neighbors are asked to keep.
enum class LleVariant : std::uint8_t {
  standard,         ///< one set of weights that makes the row of its neighbors (Roweis and Saul 2000)
  modified,         ///< several sets of weights, as many as the neighbors allow (Zhang and Wang 2006)
  hessian,          ///< second derivatives on the tangent plane (Donoho and Grimes 2003), dim (dim + 1) / 2 a row
  hessian_sklearn,  ///< what scikit-learn calls hessian, and is in truth ltsa
  ltsa,             ///< all that differs from the tangent plane (Zhang and Zha 2004)
};

/// How the eigenvectors are found.
enum class LleSolver : std::uint8_t {
  automatic,  ///< dense for few rows; direct; lanczos where the factor would not fit, or costs more
  dense,      ///< every singular value, O(n^3); to check others by
  direct,     ///< a sparse factor by nested dissection and inverse iteration, on the context's device
  cpu,        ///< direct, on the host wherever the context is
  lanczos,    ///< products with M alone, in blocks, filtered: for data of high dimension, whose factor is too large
  arnoldi,    ///< one vector at a time, as Li, Yan and Zhang 2021 have it, to compare with: of equal eigenvalues it may
              ///< find fewer than there are
};

/// What becomes of a table whose neighbor graph is in pieces: components, and of `standard` closed classes, which are
/// rows that lead to each other, each to its neighbors, and to no others.
enum class LlePieces : std::uint8_t {
  apart,   ///< each piece is embedded on its own; rows that lead to several closed classes are placed afterwards
  refuse,  ///< an error that says how many there are
};

/// What a piece's count of its eigenvalues (`LlePiece::counted`) says, or why nothing was counted.
enum class LleCount : std::uint8_t {
  complete,    ///< as many as were found: none was skipped
  clustered,   ///< the cut at `dim` goes through a cluster: the last eigenvalue and the next agree to 1e-3, or to
               ///< rounding. None below the cluster was skipped; of it, other vectors would do as well
  skipped,     ///< eigenvalues below the last one were not found
  unresolved,  ///< not counted: eigenvalues too close to each other, or to 0, for a factor's signs to tell them apart
  not_asked,   ///< not counted: `certify` was false
  by_solver,   ///< not counted: dense finds them all, lanczos and arnoldi have no factor
};

VICINAL_API std::string_view name_of(LleCount count) noexcept;
VICINAL_API std::string_view name_of(LleVariant variant) noexcept;
VICINAL_API std::string_view name_of(LleSolver solver) noexcept;
VICINAL_API std::string_view name_of(LlePieces pieces) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the names there are.
VICINAL_API LleVariant lle_variant_from(std::string_view name);
VICINAL_API LleSolver lle_solver_from(std::string_view name);
VICINAL_API LlePieces lle_pieces_from(std::string_view name);

struct LleOptions {
  std::int64_t k = 12;   ///< neighbors of a row, itself left out; dim < k <= n - 1
  std::int64_t dim = 2;  ///< columns of the embedding
  LleVariant variant = LleVariant::standard;
  double reg = 1e-3;  ///< of standard, and of `transform`: this share of a local Gram's trace is added to its diagonal
  LleSolver solver = LleSolver::automatic;
  std::int64_t max_steps = 200'000;  ///< lanczos, arnoldi: products with M, of a piece, after which they give up
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

/// Embeds the rows of a table; those in a device's memory are searched there, and copied to the host's, where the order
/// of elimination is found. The search's cost, then O(n k^3) for the weights and the solver's: `direct` on data of
/// intrinsic dimension two O(n^1.5), of three O(n^2); `lanczos` some sqrt(largest / least eigenvalue) products with M:
/// few where the dimension is high, very many where it is two. Same bits for every thread count on one instruction set.
/// Throws `invalid_argument` for options outside their domain (k, dim, reg) and tables that come in blocks, `bad_data`
/// for values that are not finite, weights that are not determined (reg 0) and, by choice, graphs in pieces,
/// `over_memory` before the search, naming what `plan_lle` does, and before the factor, `internal` where the iteration
/// does not converge, which for `lanczos` and `arnoldi` may be because max_steps are too few.
VICINAL_API Lle lle(const Context& ctx, const TableView& table, const LleOptions& options = {});
/// The same with neighbors that are known: a graph of k a row of the table within itself; `options.k` is not looked at.
VICINAL_API Lle lle(const Context& ctx, const TableView& table, const NeighborGraph& graph, const LleOptions& options);

/// Embedding [m, dim] of other rows: each is made of its k nearest table rows by the standard weights, and its place of
/// theirs, all of one piece: the nearest row's. Throws what `knn` throws, `invalid_argument` for an embedding of
/// another table.
VICINAL_API std::vector<double> transform(const Context& ctx, const Index& index, const Lle& fitted,
                                          const TableView& queries);

/// What `lle` will do, as far as it can be foreseen before neighbors are known.
struct LlePlan : Plan {
  LleSolver solver = LleSolver::automatic;  ///< of the largest piece; `automatic`: not foreseen
  std::string warning;                      ///< what the memory limit costs; empty: nothing
};

/// `memory` is what `lle` needs to run as `expected_seconds` says, search included: with less, `automatic` takes
/// products with M where that is enough, and `warning` says at which price. Embeds two samples of at most 6,144 rows
/// and carries on what their factors took: exact up to so many rows. On a device the solver's time is not foreseen.
VICINAL_API LlePlan plan_lle(const Context& ctx, const TableView& table, const LleOptions& options = {});

}  // namespace vicinal
