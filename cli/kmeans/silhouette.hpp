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

/// For a row, a is its mean distance to the others of its cluster, b the least mean distance to another cluster, and
/// the silhouette (b - a) / max(a, b): 1 where it lies well, below 0 where another cluster is nearer; 0 for a row that
/// is alone in its cluster, or where a = b = 0.
struct Silhouette {
  std::vector<double> of_row;        ///< [s]
  std::vector<double> of_cluster;    ///< [clusters] mean of its rows; NaN where the sample has none of them
  std::vector<std::int32_t> labels;  ///< [s]
  double mean = 0;                   ///< of all rows; NaN where the sample's rows are all of one cluster
};

/// Of one table, any number of clusterings.
class Silhouettes {
 public:
  /// Draws the sample, of kSampleRows at most. Throws `over_memory` where the distances would not fit the limit.
  Silhouettes(const Context& ctx, const TableView& table, std::uint64_t seed);

  [[nodiscard]] const Sample& sample() const noexcept { return sample_; }
  /// Of the sample's rows within the sample; `labels` are those of all rows of the table. The distances are computed at
  /// first use: by then the table has been clustered, and what is wrong with it been told by its own rows.
  Silhouette of(std::span<const std::int32_t> labels, std::int64_t clusters);

 private:
  void find_distances();

  const Context& ctx_;
  Sample sample_;
  std::vector<double> distances_;  // [s, s]
};

}  // namespace vicinal::cli
