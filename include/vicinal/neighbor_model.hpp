// NeighborModel: all that classify and regress need to answer, in one file: the index with its table, the labels or
// targets of its rows, and the options.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/model_options.hpp"
#include "vicinal/vote.hpp"

namespace vicinal {

struct VICINAL_API NeighborModel {
  Index index;
  std::vector<Labels> outputs = {};  ///< to classify: one of n rows an output; or none, and then
  std::vector<double> targets = {};  ///< to regress: [n, target_columns]
  std::int64_t target_columns = 0;
  std::int64_t k = 5;  ///< neighbors; 0: all within `radius`
  double radius = 0;
  Metric metric = Metric::euclidean;
  double p = 2;
  Weighting weights = Weighting::uniform;  ///< not custom, which no file can hold
  std::string notes = {};                  ///< what else the caller wants to find again: UTF-8, up to some MB
  /// What was done to the columns before the rows came here (say, "--scale standard"), in a few words, UTF-8; empty:
  /// nothing. The library does not do it to queries, so that `load` refuses such a model unless it is allowed to.
  std::string preparation = {};

  /// Writes the file (safetensors layout), to a temporary first, then renamed. Throws `invalid_argument` for labels or
  /// targets that do not number the table's rows, both or neither of them, and options outside their domain; `io` when
  /// the file cannot be written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Maps a saved model. Throws `bad_data` for anything that `save` did not write, `invalid_argument` for one with a
  /// `preparation`, unless the options allow it.
  static NeighborModel load(const Context& ctx, const std::filesystem::path& path, const ModelOptions& options = {});
};

}  // namespace vicinal
