// lle_quality: how far an embedding can be trusted: which neighbors stayed neighbors, how well weights were determined,
// and how much of known parameters is preserved (docs/contract.md, clause 17).
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/lle.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// A column whose participation ratio (`LlePiece::localization`) is below this fraction is concentrated on few rows and
/// says little about the others.
inline constexpr double kLocalizedShare = 0.05;

struct LleQualityOptions {
  std::int64_t k = 0;        ///< neighbors that are compared, 1 <= k <= n - 1; 0: as many as the embedding was made of
  std::int64_t rows = 1000;  ///< judged at most, spread evenly over the table; 0: all
};

struct LleQuality {
  std::int64_t k = 0;              ///< of a piece of n rows at most (n - 1) / 2
  std::vector<std::int64_t> rows;  ///< judged, ascending
  double trustworthiness = 0;      ///< 1: neighbors in the embedding are neighbors in the table
  double continuity = 0;           ///< 1: neighbors in the table are neighbors in the embedding
  std::vector<double> conditions;  ///< of each judged row: largest over least eigenvalue of the k x k system that its
                                   ///< standard weights solve, `reg` included; infinite where that is singular
};

/// Judges an embedding of this table (Venna and Kaski 2001: trustworthiness and continuity), each piece by itself.
/// Two searches for the judged rows' neighbors, then, exactly, the rank of every one of them among all rows: O(s n d)
/// for s judged rows of n. Same bits for every thread count. Throws `invalid_argument` for options outside their domain
/// and an embedding of another table, `over_memory` before it starts, and what `knn` throws.
VICINAL_API LleQuality lle_quality(const Context& ctx, const TableView& table, const Lle& fitted,
                                   const LleQualityOptions& options = {});

/// What an embedding leaves of parameters [n, c] that are known, in shares of their variance within pieces: 0 is all
/// kept, 1 nothing.
struct LleParameterFit {
  double affine = 0;            ///< that no affine map of the embedding gives
  std::vector<double> columns;  ///< [c] the same of each parameter
  double procrustes = 0;        ///< that no similarity gives; not near 0, as columns of an embedding are of one length
};

/// Each piece has the maps that fit it best; rows that were placed are left out. O(n c dim). Throws `bad_data` for
/// parameters that are not finite, `invalid_argument` for another number of rows than the embedding's.
VICINAL_API LleParameterFit compare_parameters(const Context& ctx, const Lle& fitted, const TableView& parameters);

}  // namespace vicinal
