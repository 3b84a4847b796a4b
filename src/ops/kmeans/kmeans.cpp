// kmeans: checks and memory first, then the iterations (ops/kmeans/iterate.hpp; contract clause 12).
#include "vicinal/kmeans.hpp"

#include "backend/backend.hpp"
#include "backend/kmeans.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "ops/kmeans/check.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "ops/kmeans/iterate.hpp"

namespace vicinal {

KMeans kmeans(const Context& ctx, const TableView& table, const KMeansOptions& options) try {
  const core::Entry entry;
  ops::check_kmeans(ctx, table, options);
  ops::ScreenedPlan planned = ops::plan_of_rows(ctx, table, options);
  core::require_memory(ctx, planned.plan.memory, "kmeans");
  const ops::ClusteredRows rows(ctx, table, options.weights, options.metric);
  const kernels::ClusterTask task = {rows.table(),        rows.weights(), options.clusters, options.batch_size == 0, 0,
                                     planned.plan.memory, planned.screens};
  const auto lloyd = kernels::backend_of(ctx).kmeans().lloyd(ctx, task);
  planned.add_memory(ctx, lloyd->more_bytes());
  Communicator self;
  KMeans found = ops::cluster(ctx, *lloyd, {self, task, 0, rows.table().rows(), !rows.weights().empty()}, options);
  if (!rows.left_out().empty()) {
    const std::vector<std::int64_t> more = ops::label_left_out(ctx, rows, found);
    for (std::size_t c = 0; c < more.size(); ++c) found.sizes[c] += more[c];
  }
  found.plan = planned.plan;
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_kmeans(const Context& ctx, const TableView& table, const KMeansOptions& options) try {
  const core::Entry entry;
  ops::check_kmeans(ctx, table, options);
  return ops::plan_of_rows(ctx, table, options).plan;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
