// See scan.hpp.
#include "kmeans/scan.hpp"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "kmeans/agreement.hpp"

namespace vicinal::cli {

ScanRange parse_scan(const std::string& text, std::int64_t rows) {
  const std::size_t dots = text.find("..");
  const auto number = [](std::string_view digits) -> std::int64_t {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() ? value : 0;
  };
  ScanRange range;
  if (dots != std::string::npos) {
    range = {number(std::string_view(text).substr(0, dots)), number(std::string_view(text).substr(dots + 2))};
  }
  if (range.first < 1 || range.last < range.first) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--scan: '{}' is not of the form 2..20", text));
  }
  if (range.last > rows) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--scan: goes up to {} clusters, but {} rows allow at most {}", range.last, rows, rows));
  }
  return range;
}

Scan scan_clusters(const Context& ctx, const TableView& table, KMeansOptions options, const ScanRange& range,
                   const TableSample& sample, bool keep, const Labels* known) {
  Scan scan;
  std::vector<std::vector<std::int32_t>> labels;
  for (std::int64_t k = range.first; k <= range.last; ++k) {
    options.clusters = k;
    scan.clustering = kmeans(ctx, table, options);
    scan.points.push_back({k, scan.clustering.inertia, {}, scan.clustering.iterations, {}});
    if (known != nullptr) {
      scan.points.back().adjusted_rand = agreement(ctx, *known, scan.clustering.labels, k).adjusted_rand;
    }
    labels.push_back(labels_of(sample, scan.clustering.labels));
  }
  std::vector<Labeling> labelings;
  for (std::size_t i = 0; i < labels.size(); ++i) labelings.push_back({labels[i], scan.points[i].clusters});
  const std::vector<SilhouetteScores> scores = silhouette_scores(ctx, sample.view(), labelings);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scan.points[i].silhouette = scores[i].mean;
    if (scores[i].mean && (!scan.best || *scores[i].mean > *scan.points[*scan.best].silhouette)) scan.best = i;
  }
  if (keep && scan.best && *scan.best + 1 < scan.points.size()) {
    options.clusters = scan.points[*scan.best].clusters;
    scan.clustering = kmeans(ctx, table, options);
  }
  return scan;
}

std::string silhouette_text(std::optional<double> value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

std::string scan_table(const Scan& scan) {
  std::vector<std::vector<std::string>> lines = {{"clusters", "inertia", "silhouette", "iterations"}};
  if (scan.points[0].adjusted_rand) lines[0].emplace_back("adjusted Rand");
  for (const ScanPoint& point : scan.points) {
    lines.push_back({fmt::format("{}", point.clusters), fmt::format("{:.6g}", point.inertia),
                     silhouette_text(point.silhouette), fmt::format("{}", point.iterations)});
    if (point.adjusted_rand) lines.back().push_back(fmt::format("{:.4f}", *point.adjusted_rand));
  }
  return format_table(lines);
}

std::string scan_sentence(const Scan& scan, const TableSample& sample) {
  if (!scan.best) return "no silhouettes: the sample's rows are all of one cluster";
  const ScanPoint& best = scan.points[*scan.best];
  return fmt::format("best silhouette {} (of {} rows) with {} cluster{}", silhouette_text(best.silhouette),
                     format_count(sample.size()), best.clusters, best.clusters == 1 ? "" : "s");
}

Json to_json(const Scan& scan) {
  Json points = Json::array();
  for (const ScanPoint& point : scan.points) {
    points.push_back({{"clusters", point.clusters},
                      {"inertia", point.inertia},
                      {"silhouette", point.silhouette ? Json(*point.silhouette) : Json(nullptr)},
                      {"iterations", point.iterations}});
    if (point.adjusted_rand) points.back()["adjusted_rand"] = *point.adjusted_rand;
  }
  return points;
}

}  // namespace vicinal::cli
