// `vicinal kmeans --scan 2..20`: inertia and silhouette for each number of clusters, and the one of best silhouette.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "kmeans/silhouette.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::cli {

struct ScanRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Of "2..20". Throws `invalid_argument` for any other form, and where the last is more than `rows`.
ScanRange parse_scan(const std::string& text, std::int64_t rows);

struct ScanPoint {
  std::int64_t clusters = 0;
  double inertia = 0;
  std::optional<double> silhouette;  ///< mean of the sample; none where its rows are all of one cluster
  std::int64_t iterations = 0;
  std::optional<double> adjusted_rand;  ///< where labels are known
};

struct Scan {
  std::vector<ScanPoint> points;
  std::optional<std::size_t> best;  ///< the point of the largest silhouette, the first of equal ones
  KMeans clustering;                ///< of the best point; of the last where there is no best
};

/// Clusters the table once for each number of clusters; `options.clusters` is ignored. `keep`: the clustering is
/// wanted, for which that of the best point is made once more, unless it is the last. The sample is one of the table's
/// rows. `known`: labels of the rows, or null.
Scan scan_clusters(const Context& ctx, const TableView& table, KMeansOptions options, const ScanRange& range,
                   const TableSample& sample, bool keep, const Labels* known);

/// "0.7123", "-" where there is none.
std::string silhouette_text(std::optional<double> value);
/// Lines of text, one a number of clusters.
std::string scan_table(const Scan& scan);
/// "best silhouette 0.7123 (of 2 000 rows) with 4 clusters".
std::string scan_sentence(const Scan& scan, const TableSample& sample);
Json to_json(const Scan& scan);

}  // namespace vicinal::cli
