// How well rows fit their clusters: silhouettes of a sample of the table's rows, within that sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/metrics.hpp"
#include "vicinal/sample.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli {

/// Silhouettes and labels of the sample's rows.
struct SampleFit {
  SilhouetteScores scores;
  std::vector<std::int32_t> labels;  ///< [s]
};

/// The labels of the sample's rows; `labels` are those of all rows of the table.
std::vector<std::int32_t> labels_of(const TableSample& sample, std::span<const std::int32_t> labels);

SampleFit fit_of(const Context& ctx, const TableSample& sample, std::span<const std::int32_t> labels,
                 std::int64_t clusters);

/// Throws `over_memory` where the sample of a table and its silhouettes would not fit the limit; only the table's shape
/// is looked at.
void require_silhouettes(const Context& ctx, const TableView& table, std::int64_t labelings, std::int64_t clusters);

}  // namespace vicinal::cli
