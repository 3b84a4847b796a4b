// KMeansModel: clusters in one file, to label other rows.
#pragma once

#include <filesystem>
#include <string>

#include "vicinal/context.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/model_options.hpp"

namespace vicinal {

struct VICINAL_API KMeansModel {
  KMeans fitted;  ///< centres, metric, sizes, inertia, iterations; labels, history, plan and stats are not saved
  std::string notes = {};  ///< text of the caller's, UTF-8, up to some MB
  /// What was done to the columns before the rows came here (say, "--scale standard"), in a few words, UTF-8; empty:
  /// nothing. The library does not do it to queries, so that `load` refuses such a model unless it is allowed to.
  std::string preparation = {};

  /// Writes the file (safetensors layout; its table are the centres), to a temporary first, then renamed. Throws
  /// `invalid_argument` for centres or sizes that do not fit the clusters and columns, and other metrics than
  /// euclidean and cosine, `bad_data` for centres that are not finite, `io` when the file cannot be written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Reads a saved model. Throws `bad_data` for anything that `save` did not write, `invalid_argument` for one with a
  /// `preparation`, unless the options allow it.
  static KMeansModel load(const Context& ctx, const std::filesystem::path& path, const ModelOptions& options = {});
};

}  // namespace vicinal
