// `vicinal hdbscan --scan 5..50`: the clusters of each smallest size, from one spanning tree.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "kmeans/scan.hpp"
#include "vicinal/hdbscan.hpp"

namespace vicinal::cli {

struct SizePoint {
  std::int64_t min_cluster_size = 0;
  std::int64_t clusters = 0;
  std::int64_t noise = 0;
  std::int64_t largest = 0;             ///< rows of the largest cluster
  double persistence = 0;               ///< mean of the clusters; 0 where there is none
  std::optional<double> adjusted_rand;  ///< where labels are known
};

/// One point for each size of the range; `options.min_cluster_size` is ignored. `rated`: how well clusters agree with
/// known labels, or nothing.
std::vector<SizePoint> scan_sizes(const Context& ctx, const SpanningTree& tree, HdbscanOptions options,
                                  const ScanRange& range,
                                  const std::function<std::optional<double>(const Hdbscan& found)>& rated);
/// Lines of text, one a size.
std::string sizes_text(const std::vector<SizePoint>& points);
Json to_json(const std::vector<SizePoint>& points);

}  // namespace vicinal::cli
