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
  Hdbscan fitted;  ///< the file has the condensed tree, core distances and options; `load` computes the rest from them
  std::string notes = {};  ///< any text of the caller, saved with the model: UTF-8, up to a few MB
  /// How the columns of the model's rows were prepared (scaled, coded, filled). Functions that take a model prepare
  /// queries in the same way. A preparation without columns does nothing.
  Preparation preparation = {};

  /// Writes the file (safetensors layout) under a temporary name and then renames it. Throws `invalid_argument` for a
  /// clustering of another table and for a preparation whose columns are not those of the index, `io` if the file
  /// cannot be written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Reads a saved model; the file is mapped if the context maps files (CpuOptions::map_files). Throws `bad_data` for
  /// anything that `save` did not write, `io`, `over_memory`.
  static HdbscanModel load(const Context& ctx, const std::filesystem::path& path);
};

/// Clusters of new rows.
struct HdbscanPrediction {
  std::vector<std::int64_t> labels;   ///< [m] a label of the fitted clusters, or -1 for noise
  std::vector<double> probabilities;  ///< [m] in [0, 1]: how firmly a row is in its cluster; 0 for noise
  std::vector<std::int64_t> rows;     ///< [m] the row of the table in whose clusters each query was placed
};

/// Clusters of new rows [m, d], which do not change the clusters. Each query is placed in the clusters of the row with
/// the smallest reachability from it: in the innermost one that exists at this distance (docs/contract.md, clause 29).
/// This is the rule of approximate_predict of the package hdbscan, which looks at 2 `min_samples` neighbors only; here
/// all rows are candidates. Rows of the table get their own labels again, unless all rows are one cluster, or equal
/// rows left it by edges of equal lengths. The same bits for every method, thread count, instruction set and device.
///
/// Time and memory of `knn` with max(2 min_samples, 10) neighbors, and with more neighbors for queries whose nearest
/// row by reachability may be beyond these. Throws `invalid_argument` for a clustering of another table, queries with
/// another number of columns and queries that come in blocks or are in device memory, `bad_data` naming row and column
/// of the first NaN or infinity or two rows whose distance overflows float64, `over_memory`, `cancelled`.
VICINAL_API HdbscanPrediction predict(const Context& ctx, const Index& index, const Hdbscan& fitted,
                                      const TableView& queries);
/// As above, for rows in the form in which the model's rows were before their preparation, which is applied first. A
/// Table may have columns of text (Preparation::read). Throws `bad_data` also for columns with other names or types.
VICINAL_API HdbscanPrediction predict(const Context& ctx, const HdbscanModel& model, const Table& queries);
/// As above, for rows of numbers. Throws `invalid_argument` naming the column if the model's rows have a column of
/// text.
VICINAL_API HdbscanPrediction predict(const Context& ctx, const HdbscanModel& model, const TableView& queries);

/// How `predict` searches for the clusters of prepared rows [m, d], and the bytes that it needs in addition to the
/// model and the queries. Reads no value of the queries. O(n) time. Throws `invalid_argument` as `predict` does.
VICINAL_API Plan plan_predict(const Context& ctx, const Index& index, const Hdbscan& fitted, const TableView& queries);

}  // namespace vicinal
