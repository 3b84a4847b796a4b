// DBSCAN (contract clause 28): core rows by their weights, unions of core rows, numbers, border rows. The graph of
// neighbors is never written. O(n) memory whatever the limit is.
#include "cpu/density/dbscan.hpp"

#include <algorithm>

#include "core/poll.hpp"

namespace vicinal::cpu {
namespace {

/// Numbers the components of core rows by their smallest rows, which are their roots.
void number_clusters(DbscanRun& run) {
  kernels::DbscanResult& result = run.result;
  core::Poll poll(run.ctx);
  result.clusters = 0;
  for (std::size_t row = 0; row < result.labels.size(); ++row) {
    poll.step();
    result.labels[row] = -1;
    if (result.core[row] == 0) continue;
    const std::int64_t root = run.forest.root_of(static_cast<std::int64_t>(row));
    const bool is_first = root == static_cast<std::int64_t>(row);
    result.labels[row] = is_first ? result.clusters++ : result.labels[static_cast<std::size_t>(root)];
  }
}

}  // namespace

void dbscan(const Context& ctx, const kernels::DbscanTask& task, kernels::DbscanResult& result) {
  const std::int64_t n = task.search.queries.rows();
  DbscanRun run{ctx, task, result, SharedForest(n),
                WeighingRule(static_cast<double>(task.min_samples), task.weights, n)};
  const auto searches = task.search.method == Method::kdtree ? dbscan_in_tree(run) : dbscan_by_screens(run);
  searches->find_core_rows();
  searches->join_core_rows();
  number_clusters(run);
  if (result.clusters > 0) searches->label_border_rows();
}

std::uint64_t dbscan_bytes(const Context& ctx, const kernels::DbscanTask& task) {
  return SharedForest::bytes(task.search.queries.rows()) +
         (task.search.method == Method::kdtree ? dbscan_in_tree_bytes(ctx, task) : dbscan_by_screens_bytes(ctx, task));
}

}  // namespace vicinal::cpu
