// The report of `vicinal dbscan`, `hdbscan` and `optics`: one page with where the clusters lie, how large they are, of
// HDBSCAN the condensed tree and the outlier scores, and of OPTICS the reachability plot.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vicinal/graph.hpp"
#include "vicinal/hdbscan.hpp"
#include "vicinal/metrics.hpp"
#include "vicinal/optics.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli::report {

/// One clustering; everything is borrowed.
struct DensityReport {
  std::string file;
  std::vector<std::pair<std::string, std::string>> how;  ///< what was asked for, name and value
  const TableView* table = nullptr;
  std::span<const std::int64_t> labels;
  std::span<const std::int64_t> sizes;
  std::int64_t noise = 0;
  std::int64_t core_rows = -1;             ///< of dbscan
  std::span<const double> persistences;    ///< of hdbscan
  std::span<const double> outlier_scores;  ///< of hdbscan
  const CondensedTree* tree = nullptr;     ///< of hdbscan
  const Optics* order = nullptr;           ///< of optics
  const Plan* plan = nullptr;
  std::optional<ClusteringScores> scores = {};  ///< where labels are known
  double seconds = 0;
};

std::string render(const Context& ctx, const DensityReport& report);

}  // namespace vicinal::cli::report
