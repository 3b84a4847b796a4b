// LleModel: all that it takes to place other rows in an embedding made before, in one file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lle.hpp"
#include "vicinal/preprocess.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

struct VICINAL_API LleModel {
  Index index;  ///< of the table that was embedded: prepared, where the model has a preparation
  Lle fitted;   ///< embedding, pieces with their rows and singular values, their sum and the options that `transform`
                ///< asks for are saved
  std::string notes = {};  ///< what else the caller wants to find again: UTF-8, up to some MB
  /// What was done to the columns before the rows came here. The functions of a model do it to queries; without
  /// columns it does nothing.
  Preparation preparation = {};

  /// Writes the file (safetensors layout; its table is the one embedded), to a temporary first, then renamed. Throws
  /// `invalid_argument` for an embedding of another table, one that is not finite, and a preparation that does not make
  /// the index's columns, `io` when the file cannot be
  /// written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Maps a saved model. Throws `bad_data` for anything that `save` did not write, `io`, `over_memory`.
  static LleModel load(const Context& ctx, const std::filesystem::path& path);
};

/// Coordinates [m, dim] of queries given as the rows that the model was made of: the model's preparation is applied,
/// then `transform` of its embedding. A Table may have columns of text (Preparation::read). Throws `invalid_argument`
/// for queries of another width and a model that does not fit together, `bad_data` for columns of other names or kinds
/// and for NaN, infinity and weights that are not determined, `over_memory`, `cancelled`. Cost of `knn`, O(m k^3), and
/// 8 bytes for each value of the prepared queries.
VICINAL_API std::vector<double> transform(const Context& ctx, const LleModel& model, const Table& queries);
/// As above, for rows of numbers; throws `invalid_argument` naming the column where the model's rows have text.
VICINAL_API std::vector<double> transform(const Context& ctx, const LleModel& model, const TableView& queries);

}  // namespace vicinal
