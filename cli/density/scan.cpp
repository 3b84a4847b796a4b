// See scan.hpp.
#include "density/scan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace vicinal::cli {

std::vector<SizePoint> scan_sizes(const Context& ctx, const SpanningTree& tree, HdbscanOptions options,
                                  const ScanRange& range,
                                  const std::function<std::optional<double>(const Hdbscan& found)>& rated) {
  std::vector<SizePoint> points;
  for (std::int64_t size = range.first; size <= range.last; ++size) {
    options.min_cluster_size = size;
    const Hdbscan found = hdbscan(ctx, tree, options);
    const double persistence = std::accumulate(found.persistences.begin(), found.persistences.end(), 0.0);
    points.push_back({size, found.clusters, found.noise,
                      found.sizes.empty() ? 0 : *std::max_element(found.sizes.begin(), found.sizes.end()),
                      found.clusters == 0 ? 0 : persistence / static_cast<double>(found.clusters), rated(found)});
  }
  return points;
}

std::string sizes_text(const std::vector<SizePoint>& points) {
  std::vector<std::vector<std::string>> lines = {{"smallest", "clusters", "noise", "largest", "persistence"}};
  const bool is_rated = !points.empty() && points.front().adjusted_rand.has_value();
  if (is_rated) lines.front().emplace_back("adjusted Rand");
  for (const SizePoint& point : points) {
    lines.push_back({fmt::format("{}", point.min_cluster_size), fmt::format("{}", point.clusters),
                     fmt::format("{}", point.noise), fmt::format("{}", point.largest),
                     fmt::format("{:.4f}", point.persistence)});
    if (is_rated) lines.back().push_back(fmt::format("{:.4f}", *point.adjusted_rand));
  }
  return format_table(lines);
}

Json to_json(const std::vector<SizePoint>& points) {
  Json all = Json::array();
  for (const SizePoint& point : points) {
    all.push_back({{"min_cluster_size", point.min_cluster_size},
                   {"clusters", point.clusters},
                   {"noise", point.noise},
                   {"largest", point.largest},
                   {"persistence", point.persistence},
                   {"adjusted_rand", point.adjusted_rand ? Json(*point.adjusted_rand) : Json(nullptr)}});
  }
  return all;
}

}  // namespace vicinal::cli
