// The report of `vicinal kmeans`: one page with where the clusters lie, how large they are and how well rows fit them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kmeans/scan.hpp"
#include "kmeans/silhouette.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli::report {

/// One clustering; everything is borrowed.
struct ClustersReport {
  std::string file;
  std::vector<std::pair<std::string, std::string>> how;  ///< what was asked for, name and value
  std::vector<std::string> columns;                      ///< their names; may be empty
  double seconds = 0;
  const TableView* table = nullptr;
  const KMeans* found = nullptr;  ///< its history and iterations may be missing, where a model was read
  const TableSample* sample = nullptr;
  const SampleFit* fit = nullptr;               ///< of the sample
  const Scan* scan = nullptr;                   ///< null: one number of clusters
  std::optional<ClusteringScores> scores = {};  ///< where labels are known
};

std::string render(const Context& ctx, const ClustersReport& report);

}  // namespace vicinal::cli::report
