// LleModel: an embedding and its index in one file, to place new rows in the embedding later.
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
  Index index;  ///< index of the table that was embedded; prepared rows if the model has a preparation
  Lle fitted;   ///< saved are the embedding, the pieces with their rows and singular values, their sum, and the options
                ///< that `transform` needs
  std::string notes = {};  ///< any text of the caller, saved with the model: UTF-8, up to a few MB
  /// The preparation of the columns that the model's rows have passed. Functions that take a model apply it to the
  /// queries. A preparation without columns does nothing.
  Preparation preparation = {};

  /// Writes the file (safetensors layout; its table is the one embedded), first under a temporary name, then renamed.
  /// Throws `invalid_argument` for an embedding of another table, one that is not finite, and a preparation that
  /// results in other columns than the index has, `io` when the file cannot be written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Reads a saved model; the file is mapped if the context maps files (CpuOptions::map_files). Throws `bad_data` for
  /// anything that `save` did not write, `io`, `over_memory`.
  static LleModel load(const Context& ctx, const std::filesystem::path& path);
};

/// Coordinates [m, dim] of queries that have the form of the rows that the model was made from: the model's preparation
/// is applied, then `transform` of its embedding. A Table may have columns of text (Preparation::read). Throws
/// `invalid_argument` for queries of another width and a model whose parts do not fit together, `bad_data` for columns
/// with other names or types and for NaN, infinity and weights that are not determined, `over_memory`, `cancelled`.
/// Cost of `knn`, O(m k^3), and 8 bytes for each value of the prepared queries.
VICINAL_API std::vector<double> transform(const Context& ctx, const LleModel& model, const Table& queries);
/// As above, for rows of numbers. Throws `invalid_argument` naming the column if the model's rows have a column of
/// text.
VICINAL_API std::vector<double> transform(const Context& ctx, const LleModel& model, const TableView& queries);

}  // namespace vicinal
