// HdbscanModel: a clustering and the index of its rows, to find the clusters of new rows later.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/hdbscan.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/preprocess.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

struct VICINAL_API HdbscanModel {
  Index index;     ///< index of the rows that were clustered; prepared rows if the model has a preparation
  Hdbscan fitted;  ///< saved are the condensed tree, the core distances and the options; the rest follows from them
  std::string notes = {};  ///< any text of the caller, saved with the model: UTF-8, up to a few MB
  /// The preparation of the columns that the model's rows have passed. Functions that take a model apply it to the
  /// queries. A preparation without columns does nothing.
  Preparation preparation = {};

  /// Writes the file (safetensors layout), first under a temporary name, then renamed. Throws `invalid_argument` for a
  /// clustering of another table and a preparation that results in other columns than the index has, `io` when the file
  /// cannot be written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Reads a saved model; the file is mapped if the context maps files (CpuOptions::map_files). Throws `bad_data` for
  /// anything that `save` did not write, `io`, `over_memory`.
  static HdbscanModel load(const Context& ctx, const std::filesystem::path& path);
};

/// Clusters of new rows.
struct HdbscanPrediction {
  std::vector<std::int64_t> labels;   ///< [m] of the clusters that there are, or -1 for noise
  std::vector<double> probabilities;  ///< [m] in [0, 1]: how firmly a row is in its cluster; 0 for noise
  std::vector<std::int64_t> rows;     ///< [m] the row of the table by which each was placed
};

/// Clusters of rows [m, d] that were not clustered, without another clustering: each is placed by the row of the table
/// that it reaches first, and leaves that row's clusters at the distance at which it reaches it (docs/contract.md,
/// clause 29). This is the rule of approximate_predict of the package hdbscan, which looks at 2 `min_samples` neighbors
/// only; here all rows count. Rows of the table get their own labels again, unless all rows are one cluster, or equal
/// rows left it by edges of equal lengths. The same bits for every method, thread count, instruction set and device.
///
/// Time and memory of `knn` with max(2 min_samples, 10) neighbors; with more of them for rows of which these leave open
/// which one they reach first. Throws `invalid_argument` for a clustering of another table, queries of another width
/// and queries that come in blocks or are in device memory, `bad_data` naming row and column of the first NaN or
/// infinity or two rows whose distance overflows float64, `over_memory`, `cancelled`.
VICINAL_API HdbscanPrediction predict(const Context& ctx, const Index& index, const Hdbscan& fitted,
                                      const TableView& queries);
/// As above, for rows that have the form of the rows that the model was made from: the model's preparation is applied
/// first. `queries` as a Table may have columns of text (Preparation::read). Throws `bad_data` also for columns with
/// other names or types.
VICINAL_API HdbscanPrediction predict(const Context& ctx, const HdbscanModel& model, const Table& queries);
/// As above, for rows of numbers. Throws `invalid_argument` naming the column if the model's rows have a column of
/// text.
VICINAL_API HdbscanPrediction predict(const Context& ctx, const HdbscanModel& model, const TableView& queries);

}  // namespace vicinal
