// KMeansModel: the result of k-means in one file, to label new rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/preprocess.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

struct VICINAL_API KMeansModel {
  KMeans fitted;  ///< centers, metric, sizes, inertia, iterations; labels, history, plan and stats are not saved
  std::string notes = {};  ///< any text of the caller, saved with the model: UTF-8, up to a few MB
  /// The preparation of the columns that the model's rows have passed. Functions that take a model apply it to the
  /// queries. A preparation without columns does nothing.
  Preparation preparation = {};

  /// Writes the file (safetensors layout; its table is that of the centers), first under a temporary name, then
  /// renamed. Throws `invalid_argument` for centers or sizes that do not fit the clusters and columns, other metrics
  /// than euclidean and cosine, and a preparation that results in other columns than the centers have, `bad_data` for
  /// centers that are not finite, `io` when the file cannot be written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Reads a saved model. Throws `bad_data` for anything that `save` did not write, `io`, `over_memory`.
  static KMeansModel load(const Context& ctx, const std::filesystem::path& path);
};

/// The cluster of each row of a table that has the form of the rows that the model was made from: the model's
/// preparation is applied, then `predict` of its centers. A Table may have columns of text (Preparation::read). Throws
/// `invalid_argument` for a table of another width or a model whose arrays do not fit together, `bad_data` for columns
/// with other names or types and for NaN, infinity and values too large, `over_memory`, `cancelled`. O(m k d) time, O(m
/// d + k d) memory; the same bits for every thread count, instruction set and device.
VICINAL_API std::vector<std::int32_t> predict(const Context& ctx, const KMeansModel& model, const Table& table);
/// As above, for rows of numbers. Throws `invalid_argument` naming the column if the model's rows have a column of
/// text.
VICINAL_API std::vector<std::int32_t> predict(const Context& ctx, const KMeansModel& model, const TableView& table);
/// Distances [m, clusters] of each prepared row to every center, by the model's metric. Throws as `predict` of a
/// KMeansModel does. O(m k d) time, O(m (d + k) + k d) memory.
VICINAL_API std::vector<double> transform(const Context& ctx, const KMeansModel& model, const Table& table);
VICINAL_API std::vector<double> transform(const Context& ctx, const KMeansModel& model, const TableView& table);
/// Minus the inertia of a table's prepared rows: the sum of `weights` [m] (empty: all 1) times the squared or cosine
/// distance to the nearest center. Throws as `predict` of a KMeansModel does, and `invalid_argument` for weights that
/// are not as many as the rows. O(m k d) time, O(m d + k d) memory.
VICINAL_API double score(const Context& ctx, const KMeansModel& model, const Table& table,
                         std::span<const double> weights = {});
VICINAL_API double score(const Context& ctx, const KMeansModel& model, const TableView& table,
                         std::span<const double> weights = {});

}  // namespace vicinal
