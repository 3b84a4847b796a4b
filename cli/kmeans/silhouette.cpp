// See silhouette.hpp.
#include "kmeans/silhouette.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/output.hpp"
#include "report/projection.hpp"

namespace vicinal::cli {

std::vector<std::int32_t> labels_of(const TableSample& sample, std::span<const std::int32_t> labels) {
  std::vector<std::int32_t> kept;
  kept.reserve(sample.ids.size());
  for (const std::int64_t id : sample.ids) kept.push_back(labels[static_cast<std::size_t>(id)]);
  return kept;
}

SampleFit fit_of(const Context& ctx, const TableSample& sample, std::span<const std::int32_t> labels,
                 std::int64_t clusters) {
  SampleFit fit;
  fit.labels = labels_of(sample, labels);
  fit.scores = silhouette_scores(ctx, sample.view(), {fit.labels, clusters});
  return fit;
}

void require_silhouettes(const Context& ctx, const TableView& table, std::int64_t labelings, std::int64_t clusters) {
  const std::int64_t rows = std::min(table.rows(), report::kSampleRows);
  const TableView sample(table.data(), DType::float64, rows, table.cols(), 0, 0);
  const std::uint64_t bytes = report::projection_bytes(table) + silhouette_bytes(ctx, sample, labelings, clusters);
  if (bytes <= ctx.memory_limit()) return;
  throw Error(ErrorCode::over_memory, fmt::format("silhouettes of {} rows need {}, more than the memory limit of {}",
                                                  rows, format_bytes(static_cast<double>(bytes)),
                                                  format_bytes(static_cast<double>(ctx.memory_limit()))));
}

}  // namespace vicinal::cli
