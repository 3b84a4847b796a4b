// How well rows lie in their clusters: silhouettes (Rousseeuw 1987) of a sample of the table's rows, within that
// sample. Distances are the library's, in float64; they are computed once, O(s^2 d) for s rows, and serve any number of
// clusterings, O(s^2) each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli {

/// Rows of a table, as float64.
struct Sample {
  std::vector<std::int64_t> ids;  ///< [s], ascending
  std::vector<double> rows;       ///< [s, cols]
  std::int64_t cols = 0;

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(ids.size()); }
};

/// At most so many rows are asked how well they lie.
inline constexpr std::int64_t kSampleRows = 2000;

/// `most` rows of the table, every one with the same chance, or all where there are no more. One seed, one sample.
Sample draw_sample(const TableView& table, std::int64_t most, std::uint64_t seed);

/// Euclidean distances between the sample's rows, [s, s]. Throws as `vicinal::knn`; `over_memory` also for the result.
std::vector<double> distances_within(const Context& ctx, const Sample& sample);

/// For a row, a is its mean distance to the others of its cluster, b the least mean distance to another cluster, and
/// the silhouette (b - a) / max(a, b): 1 where it lies well, below 0 where another cluster is nearer; 0 for a row that
/// is alone in its cluster, or where a = b = 0.
struct Silhouette {
  std::vector<double> of_row;        ///< [s]
  std::vector<double> of_cluster;    ///< [clusters] mean of its rows; NaN where the sample has none of them
  std::vector<std::int32_t> labels;  ///< [s]
  double mean = 0;                   ///< of all rows; NaN where the sample's rows are all of one cluster
};

/// Of the sample's rows within the sample. `labels` are those of all rows of the table.
Silhouette silhouette(const Sample& sample, std::span<const double> distances, std::span<const std::int32_t> labels,
                      std::int64_t clusters);

}  // namespace vicinal::cli
