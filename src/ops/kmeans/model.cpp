// What a k-means model says of rows (contract clause 12): labels, distances, inertia.
#include <string>

#include "backend/backend.hpp"
#include "backend/kmeans.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/kmeans/check.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "vicinal/kmeans.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

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

// The rows of a table, assigned to the centres.
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
  return 0.0 - assigned(ctx, model, rows, weights)->inertia() * ops::inertia_unit(model.metric);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> transform(const Context& ctx, const KMeans& model, const TableView& table) try {
  const core::Entry entry;
  const ops::ClusteredRows rows = rows_for(ctx, model, table);
  // Every centre is a neighbor of every row.
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

}  // namespace vicinal
