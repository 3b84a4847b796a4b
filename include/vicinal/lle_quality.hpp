// lle_quality: measures of an embedding: how many neighbors remain neighbors, how well the weights are determined, and
// how well known parameters are recovered (docs/contract.md, clause 17).
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/lle.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// If the participation ratio of a column (`LlePiece::localization`) is below this, few rows dominate the column, and
/// it says little about the others.
inline constexpr double kLocalizedShare = 0.05;

struct LleQualityOptions {
  std::int64_t k = 0;        ///< neighbors that are compared, 1 <= k <= n - 1; 0: the k of the embedding
  std::int64_t rows = 1000;  ///< maximum number of rows that are evaluated, evenly spread over the table; 0: all
};

struct LleQuality {
  std::int64_t k = 0;              ///< neighbors compared; in a piece of n rows at most (n - 1) / 2
  std::vector<std::int64_t> rows;  ///< rows that were evaluated, ascending
  double trustworthiness = 0;      ///< 1: neighbors in the embedding are neighbors in the table
  double continuity = 0;           ///< 1: neighbors in the table are neighbors in the embedding
  std::vector<double> conditions;  ///< for each of these rows: largest / smallest eigenvalue of the k x k system of its
                                   ///< standard weights, `reg` included; infinite if it is singular
};

/// Trustworthiness and continuity of an embedding of this table (Venna and Kaski 2001), computed within pieces. Two
/// searches find the neighbors of s rows; then the exact rank of each neighbor among all rows is counted: O(s n d)
/// time. The same bits for every thread count. Throws `invalid_argument` for options outside their domain and an
/// embedding of another table, `over_memory` before it starts, and what `knn` throws.
VICINAL_API LleQuality lle_quality(const Context& ctx, const TableView& table, const Lle& fitted,
                                   const LleQualityOptions& options = {});

/// The part of known parameters [n, c] that an embedding does not explain, as fractions of their variance within
/// pieces: 0 is best, 1 worst.
struct LleParameterFit {
  double affine = 0;            ///< part that no affine map of the embedding explains
  std::vector<double> columns;  ///< [c] the same for each parameter
  /// Part that no similarity explains; never near 0, because the columns of an embedding have equal length.
  double procrustes = 0;
};

/// Compares an embedding with known parameters [n, c]. In each piece the best affine map and similarity are fitted;
/// rows that were placed are ignored. O(n c dim). Throws `bad_data` for parameters that are not finite,
/// `invalid_argument` for another number of rows than the embedding's.
VICINAL_API LleParameterFit compare_parameters(const Context& ctx, const Lle& fitted, const TableView& parameters);

}  // namespace vicinal
