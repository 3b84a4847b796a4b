// NeighborModel: a model of classify or regress in one file: the index with its table, the labels or targets of its
// rows, and the options.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "vicinal/classify.hpp"
#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/preprocess.hpp"
#include "vicinal/regress.hpp"
#include "vicinal/vote.hpp"

namespace vicinal {

struct VICINAL_API NeighborModel {
  Index index;  ///< index of the rows that are compared; prepared rows if the model has a preparation
  std::vector<Labels> outputs = {};  ///< to classify: for each output the labels [n]; empty for a model that regresses
  std::vector<double> targets = {};  ///< to regress: [n, target_columns]; empty for a model that classifies
  std::int64_t target_columns = 0;
  std::int64_t k = 5;  ///< number of neighbors; 0: all rows within `radius`
  double radius = 0;
  Metric metric = Metric::euclidean;
  double p = 2;
  Weighting weights = Weighting::uniform;  ///< not custom, which cannot be saved
  std::string notes = {};                  ///< any text of the caller, saved with the model: UTF-8, up to a few MB
  /// The preparation of the columns that the model's rows have passed. Functions that take a model apply it to the
  /// queries. A preparation without columns does nothing.
  Preparation preparation = {};

  /// Writes the file (safetensors layout), first under a temporary name, then renamed. Throws `invalid_argument` for
  /// labels or targets that are not as many as the table's rows, a model with both or neither of them, options outside
  /// their domain, and a preparation that results in other columns than the index has; `io` when the file cannot be
  /// written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Reads a saved model; the file is mapped if the context maps files (CpuOptions::map_files). Throws `bad_data` for
  /// anything that `save` did not write, `io`, `over_memory`.
  static NeighborModel load(const Context& ctx, const std::filesystem::path& path);
};

/// The votes of a model's rows for queries that have the form of the rows that the model was made from: the model's
/// preparation is applied to them, and they are classified by its k or radius, metric and weights. `queries` as a Table
/// may have columns of text (Preparation::read). A query without neighbors gets the code -1.
///
/// Throws `invalid_argument` for a model without labels, queries of another width, and model fields outside their
/// domain; `bad_data` for columns with other names or types and for NaN, infinity and distances that overflow,
/// `over_memory`, `cancelled`. Cost of `classify` or `classify_radius`, and 8 bytes for each value of the prepared
/// queries; the same bits for every thread count, instruction set and device.
VICINAL_API Classification classify(const Context& ctx, const NeighborModel& model, const Table& queries,
                                    bool probabilities = false);
/// As above, for rows of numbers. Throws `invalid_argument` naming the column if the model's rows have a column of
/// text.
VICINAL_API Classification classify(const Context& ctx, const NeighborModel& model, const TableView& queries,
                                    bool probabilities = false);

/// The means of the targets of a model's rows for queries that have the form of the rows that the model was made from:
/// the model's preparation is applied to them, and `regress` or `regress_radius` answers by its k or radius, metric and
/// weights. `outlier` is the value of a query without neighbors.
///
/// Throws `invalid_argument` for a model without targets, queries of another width, and model fields outside their
/// domain; `bad_data` for columns with other names or types and for NaN, infinity, distances and sums that overflow,
/// `over_memory`, `cancelled`. Cost of `regress` or `regress_radius`, and 8 bytes for each value of the prepared
/// queries; the same bits for every thread count, instruction set and device.
VICINAL_API Regression regress(const Context& ctx, const NeighborModel& model, const Table& queries,
                               double outlier = std::numeric_limits<double>::quiet_NaN());
/// As above, for rows of numbers. Throws `invalid_argument` naming the column if the model's rows have a column of
/// text.
VICINAL_API Regression regress(const Context& ctx, const NeighborModel& model, const TableView& queries,
                               double outlier = std::numeric_limits<double>::quiet_NaN());

}  // namespace vicinal
