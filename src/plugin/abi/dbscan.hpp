// The plug-in's interface for DBSCAN: plain structs, as in plugin.hpp.
#pragma once

#include <cstdint>

namespace vicinal::plugin {

/// As kernels::DbscanTask, of the table of a search within itself. All memory is the host's.
struct DbscanTask {
  double limit = 0;  ///< the largest key of neighbors
  std::int64_t min_samples = 1;
  std::int32_t has_weights = 0;
  const double* weights = nullptr;  ///< [rows] where there are some; null for what only looks

  // Filled.
  std::uint8_t* core = nullptr;    ///< [rows] 1 for core rows
  std::int64_t* labels = nullptr;  ///< [rows] numbers of clusters, or -1
  std::int64_t clusters = 0;
};

}  // namespace vicinal::plugin
