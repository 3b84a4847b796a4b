// What a k-means model says of rows (contract clause 12): labels, distances, inertia.
#include <algorithm>
#include <cmath>
#include <string>

#include "backend/backend.hpp"
#include "backend/kmeans.hpp"
#include "core/distance.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/check.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

constexpr std::int64_t kDistanceValues = std::int64_t{1} << 17;  // of rows that are widened together

/// A row whose distance to a center is not finite.
[[noreturn]] void refuse_row(const double* row, std::int64_t d, std::size_t number) {
  const std::string name = "table: row " + std::to_string(number);
  for (std::int64_t j = 0; j < d; ++j) {
    if (std::isfinite(row[j])) continue;
    throw Error(ErrorCode::bad_data, name + ", column " + std::to_string(j) + " is " +
                                         (std::isnan(row[j]) ? "NaN" : "infinite") + ", must be finite");
  }
  throw Error(ErrorCode::bad_data, name + " is so far from its center that the distance overflows float64");
}

// The rows as the model's metric takes them.
ops::ClusteredRows rows_for(const Context& ctx, const KMeans& model, const TableView& table) {
  check_table(ctx, table, "table");
  ops::check_model(model);
  if (table.cols() != model.cols) {
    refuse("table: " + std::to_string(table.cols()) + " columns, but the model has " + std::to_string(model.cols));
  }
  const kernels::Backend& backend = kernels::backend_of(ctx);
  std::uint64_t bytes = static_cast<std::uint64_t>(table.rows()) * 4;
  TableView read = table;
  if (ops::copies_rows({}, model.metric)) {
    bytes += ops::copy_bytes(table, model.metric);
    read = ops::shape_of_copy(table, table.rows(), model.metric);
  }
  core::require_memory(
      ctx, bytes + backend.kmeans().plan(ctx, {read, {}, model.clusters, false}, kernels::kNoSeeding).bytes.host,
      "predict");
  return {ctx, table, {}, model.metric};
}

// The rows of a table, assigned to the centers.
std::unique_ptr<kernels::Lloyd> assigned(const Context& ctx, const KMeans& model, const ops::ClusteredRows& rows,
                                         std::span<const double> weights) {
  auto lloyd = kernels::backend_of(ctx).kmeans().lloyd(ctx, {rows.table(), weights, model.clusters, false});
  lloyd->start(model.centres);
  lloyd->assign();
  return lloyd;
}

}  // namespace

std::vector<std::int32_t> predict(const Context& ctx, const KMeans& model, const TableView& table) try {
  const core::Entry entry;
  const ops::ClusteredRows rows = rows_for(ctx, model, table);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(table.rows()));
  assigned(ctx, model, rows, {})->labels(labels);
  return labels;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

double score(const Context& ctx, const KMeans& model, const TableView& table, std::span<const double> weights) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  ops::check_weights(weights, table.rows());
  const ops::ClusteredRows rows = rows_for(ctx, model, table);
  return core::computed(0.0 - assigned(ctx, model, rows, weights)->inertia() * ops::inertia_unit(model.metric));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> transform(const Context& ctx, const KMeans& model, const TableView& table) try {
  const core::Entry entry;
  const ops::ClusteredRows rows = rows_for(ctx, model, table);
  // Every center is a neighbor of every row.
  const TableView centres(model.centres.data(), model.clusters, model.cols);
  const bool cosine = model.metric == Metric::cosine;
  const NeighborGraph graph = knn(ctx, centres, rows.table(),
                                  {.k = model.clusters, .metric = cosine ? Metric::sqeuclidean : Metric::euclidean});
  std::vector<double> distances(graph.distances.size());
  for (std::size_t i = 0; i < distances.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / model.clusters;
    distances[static_cast<std::size_t>(row * model.clusters + graph.ids[i])] =
        graph.distances[i] * ops::inertia_unit(model.metric);
  }
  return distances;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> centre_distances(const Context& ctx, const KMeans& model, const TableView& table,
                                     std::span<const std::int32_t> labels) try {
  const core::Entry entry;
  const ops::ClusteredRows rows = rows_for(ctx, model, table);
  const std::int64_t m = table.rows();
  const std::int64_t d = table.cols();
  if (static_cast<std::int64_t>(labels.size()) != m) {
    refuse("labels: there are " + std::to_string(labels.size()) + " for " + std::to_string(m) + " rows");
  }
  const std::int64_t block = std::clamp<std::int64_t>(kDistanceValues / d, 1, m);
  core::require_memory(ctx,
                       static_cast<std::uint64_t>(m + block * d) * sizeof(double) + ops::bytes_on_host(rows.table()),
                       "centre_distances");
  const ops::RowCopy host = ops::rows_on_host(ctx, rows.table());
  std::vector<double> distances(static_cast<std::size_t>(m));
  std::vector<double> values(static_cast<std::size_t>(block * d));
  for (std::int64_t first = 0; first < m; first += block) {
    const std::int64_t last = std::min(first + block, m);
    core::widen_rows(host.table, first, last, values.data());
    core::parallel_for(ctx, last - first, [&](std::int64_t i, int /*worker*/) {
      const double* const row = values.data() + i * d;
      const auto at = static_cast<std::size_t>(first + i);
      if (labels[at] < 0 || labels[at] >= model.clusters) {
        refuse("labels: row " + std::to_string(at) + " has label " + std::to_string(labels[at]) +
               ", must be from 0 to " + std::to_string(model.clusters - 1));
      }
      const double key = core::euclidean_key(row, model.centres.data() + labels[at] * d, d);
      if (!std::isfinite(key)) refuse_row(row, d, at);
      distances[at] = model.metric == Metric::cosine ? key * ops::inertia_unit(model.metric) : std::sqrt(key);
    });
  }
  return distances;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
