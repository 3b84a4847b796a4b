// KMeansModel: all that it takes to label other rows by clusters made before, in one file.
#pragma once

#include <filesystem>
#include <string>

#include "vicinal/context.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal {

struct VICINAL_API KMeansModel {
  KMeans fitted;  ///< centres, metric, sizes, inertia, iterations; labels, history, plan and stats are not saved
  std::string notes = {};  ///< what else the caller wants to find again: UTF-8, up to some MB

  /// Writes the file (safetensors layout; its table are the centres), to a temporary first, then renamed. Throws
  /// `invalid_argument` for centres or sizes that do not fit the clusters and columns, and other metrics than
  /// euclidean and cosine, `bad_data` for centres that are not finite, `io` when the file cannot be written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Throws `bad_data` for anything that `save` did not write.
  static KMeansModel load(const Context& ctx, const std::filesystem::path& path);
};

}  // namespace vicinal
