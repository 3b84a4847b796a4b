// minimum_spanning_tree: check, plan, find lists, call the backend (contract clause 27).
#include "vicinal/spanning_tree.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "backend/index_access.hpp"
#include "core/distance.hpp"
#include "core/entry.hpp"
#include "core/infinity.hpp"
#include "core/large_pages.hpp"
#include "core/poll.hpp"
#include "core/power.hpp"
#include "core/seconds.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/density/search.hpp"
#include "ops/density/spanning_tree.hpp"
#include "ops/nearest/search.hpp"

namespace vicinal {
namespace {

using kernels::SpanningTask;

const char* const kSpanningTree = "spanning tree";

const kernels::DensityBackend& tree_backend(const Context& ctx) {
  return ops::density_backend(ctx, kernels::DensityWork::spanning_tree, kSpanningTree);
}

/// The neighbor whose distance is the core distance; 0: the row itself.
std::int64_t rank_of(const SpanningTreeOptions& options) {
  return options.min_samples - (options.count_self ? 1 : 0);
}

/// What keys of pairs are divided by, so that their distances are divided by alpha.
double divisor_of(const SpanningTreeOptions& options) {
  if (options.metric == Metric::euclidean) return options.alpha * options.alpha;
  if (options.metric == Metric::minkowski) return core::power(options.alpha, options.p);
  return options.alpha;
}

void check_options(const TableView& table, const SpanningTreeOptions& options) {
  const std::int64_t least = options.count_self ? 1 : 0;
  const std::int64_t most = table.rows() - 1 + least;
  if (options.min_samples < least || options.min_samples > most) {
    refuse("min_samples: is " + std::to_string(options.min_samples) + ", must be from " + std::to_string(least) +
           " to " + std::to_string(most) + " for " + std::to_string(table.rows()) + " rows that " +
           (options.count_self ? "count themselves" : "do not count themselves"));
  }
  if (!(options.alpha > 0) || std::isinf(options.alpha)) refuse("alpha: must be above 0 and finite");
  if (options.alpha != 1 && options.metric == Metric::inner_product) {
    refuse("alpha: must be 1 for the metric inner_product, whose distances may be below 0");
  }
  ops::check_density_search(table, options.metric, options.p, options.method, kSpanningTree);
  const double divisor = divisor_of(options);
  if (!(divisor > 0) || std::isinf(divisor)) {
    refuse("alpha: keys of the metric " + std::string(name_of(options.metric)) + " are divided by " +
           (options.metric == Metric::euclidean ? "alpha * alpha" : "power(alpha, p)") +
           ", which must be above 0 and finite");
  }
}

/// The search of the lists. Distances that are roots come as keys instead, where a metric has them.
ops::SearchRequest lists_request(const TableView& table, const SpanningTreeOptions& options, const ops::TreeUse& use) {
  KnnOptions lists;
  lists.k = ops::listed_neighbors(table.rows(), rank_of(options));
  lists.metric = options.metric == Metric::euclidean ? Metric::sqeuclidean : options.metric;
  lists.p = options.p;
  lists.method = options.method;
  ops::SearchRequest request = ops::request_of(nullptr, lists);
  request.bytes_beside = use.bytes_beside;
  request.operation = use.operation;
  return request;
}

std::uint64_t result_bytes(const TableView& table) {
  const auto n = static_cast<std::uint64_t>(table.rows());
  return n * (2 * sizeof(std::int64_t) + 2 * sizeof(double) + sizeof(kernels::TreeEdge) + sizeof(double));
}

SpanningTask task_of(const kernels::NearestTask& search, const SpanningTreeOptions& options) {
  SpanningTask task;
  task.search = search;
  task.rank = rank_of(options);
  task.divisor = divisor_of(options);
  return task;
}

/// The search of the lists in an operation. A backend that keeps the lists itself is asked for keys, and no host memory
/// is planned for lists. The search may take the device memory that the lists leave. Borrows context and options.
ops::SearchRequest lists_request(const Context& ctx, const TableView& table, const SpanningTreeOptions& options,
                                 const ops::TreeUse& use) {
  ops::SearchRequest request = lists_request(table, options, use);
  if (!tree_backend(ctx).finds_lists()) return request;
  request.lists = ops::SearchRequest::Lists::counted_beside;
  request.task.keys = true;
  request.task.lists_stay = true;
  const auto entries = static_cast<std::uint64_t>(table.rows()) * static_cast<std::uint64_t>(request.task.k);
  request.task.device_bytes_beside = entries * (sizeof(std::int64_t) + sizeof(double));
  request.device_bytes = [&](const kernels::NearestTask& search) {
    return tree_backend(ctx).spanning_tree_bytes(ctx, task_of(search, options)).device;
  };
  return request;
}

/// `use`, plus the host memory that is needed beside the lists: the largest need of all methods that may be chosen.
ops::TreeUse with_tree(const Context& ctx, const kernels::Prepared& index, const SpanningTreeOptions& options,
                       ops::TreeUse use) {
  kernels::NearestTask search = lists_request(index.table, options, use).task;
  search.index = &index;
  search.queries = index.table;
  use.bytes_beside += result_bytes(index.table) + ops::most_bytes(ctx, search, [&](const kernels::NearestTask& by) {
                        return tree_backend(ctx).spanning_tree_bytes(ctx, task_of(by, options)).host;
                      });
  return use;
}

SpanningTree tree_of_one_row(const Context& ctx, const SpanningTreeOptions& options) {
  SpanningTree tree;
  tree.rows = 1;
  tree.core_distances = {0};
  tree.options = options;
  tree.plan = ops::plan_of_one_row(ctx);
  return tree;
}

template <class T>
void reserve(std::vector<T>& values, std::size_t size) {
  values.reserve(size);
  core::prefer_large_pages(values.data(), size * sizeof(T));
}

void take_edges(const Context& ctx, const std::vector<kernels::TreeEdge>& edges, SpanningTree& tree) {
  core::Poll poll(ctx);
  const SpanningTreeOptions& options = tree.options;
  reserve(tree.a, edges.size());
  reserve(tree.b, edges.size());
  reserve(tree.lengths, edges.size());
  for (const kernels::TreeEdge& edge : edges) {
    poll.step();
    if (!(edge.key < kInfinity)) {
      throw Error(ErrorCode::bad_data, "the distance of table rows " + std::to_string(edge.a) + " and " +
                                           std::to_string(edge.b) + ", divided by alpha, overflows float64");
    }
    tree.a.push_back(edge.a);
    tree.b.push_back(edge.b);
    tree.lengths.push_back(core::reported_distance(options.metric, edge.key, options.p));
  }
  for (double& core : tree.core_distances) {
    poll.step();
    core = core::reported_distance(options.metric, core, options.p);
  }
}

}  // namespace

namespace ops {

void check_spanning_tree(const Context& ctx, const TableView& table, const SpanningTreeOptions& options) {
  check_table(ctx, table, "table");
  check_options(table, options);
  tree_backend(ctx);
}

SpanningTree spanning_tree_of(const Context& ctx, const Index& index, const SpanningTreeOptions& options,
                              const TreeUse& use) {
  const kernels::Prepared& prepared = kernels::prepared_of(index);
  const kernels::DensityBackend& backend = tree_backend(ctx);
  if (index.rows() == 1) return tree_of_one_row(ctx, options);
  SearchRequest request = lists_request(ctx, index.table(), options, with_tree(ctx, prepared, options, use));
  Job job = plan_job(ctx, prepared, request, true);
  core::require_memory(ctx, job.plan.memory, use.operation);
  SpanningTree tree;
  tree.rows = index.rows();
  tree.options = options;
  tree.plan = job.plan;
  KeyLists lists(ctx, backend.finds_lists() ? 0 : tree.rows, job.task.k);
  std::vector<kernels::TreeEdge> edges;
  const double seconds = run_job(ctx, job, [&] {
    SpanningTask task = task_of(job.task, options);
    kernels::SpanningResult result{edges, tree.core_distances, tree.stats};
    if (backend.finds_lists()) {
      backend.spanning_tree(ctx, task, result);
      tree.tree_seconds = result.seconds;
      return;
    }
    job.task.any_order = true;
    lists.find(ctx, job.task, tree.stats);
    const auto start = std::chrono::steady_clock::now();
    task.ids = lists.ids;
    task.keys = lists.keys;
    task.in_tree_order = lists.in_tree_order;
    backend.spanning_tree(ctx, task, result);
    tree.tree_seconds = seconds_since(start);
  });
  tree.stats.search_seconds = seconds - tree.tree_seconds;
  if (tree.core_distances.empty()) tree.core_distances.assign(static_cast<std::size_t>(tree.rows), 0);
  take_edges(ctx, edges, tree);
  return tree;
}

Plan plan_spanning_tree_of(const Context& ctx, const TableView& table, const SpanningTreeOptions& options,
                           const TreeUse& use) {
  check_spanning_tree(ctx, table, options);
  if (table.rows() == 1) return plan_of_one_row(ctx);
  const kernels::Prepared unread = unread_index(table);
  SearchRequest request = lists_request(ctx, table, options, with_tree(ctx, unread, options, use));
  return plan_search(ctx, table, request);
}

}  // namespace ops

SpanningTree minimum_spanning_tree(const Context& ctx, const Index& index, const SpanningTreeOptions& options) try {
  const core::Entry entry;
  ops::check_spanning_tree(ctx, index.table(), options);
  return ops::spanning_tree_of(ctx, index, options, {});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

SpanningTree minimum_spanning_tree(const Context& ctx, const TableView& table, const SpanningTreeOptions& options) try {
  const core::Entry entry;
  ops::check_spanning_tree(ctx, table, options);
  return ops::with_index(ctx, table,
                         [&](const Index& index) { return ops::spanning_tree_of(ctx, index, options, {}); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_spanning_tree(const Context& ctx, const TableView& table, const SpanningTreeOptions& options) try {
  const core::Entry entry;
  return ops::plan_spanning_tree_of(ctx, table, options, {});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
