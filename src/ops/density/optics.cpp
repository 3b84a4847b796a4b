// optics: check, plan, find lists, call the backend (contract clause 30).
#include "vicinal/optics.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "backend/index_access.hpp"
#include "core/distance.hpp"
#include "core/entry.hpp"
#include "core/in_steps.hpp"
#include "core/infinity.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "core/seconds.hpp"
#include "formulas/nearest/radius.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/density/search.hpp"
#include "ops/nearest/search.hpp"

namespace vicinal {
namespace {

using kernels::OpticsTask;

const char* const kOptics = "optics";

void check_optics(const Context& ctx, const TableView& table, const OpticsOptions& options) {
  if (options.min_samples < 2 || options.min_samples > table.rows()) {
    refuse("min_samples: is " + std::to_string(options.min_samples) + ", must be from 2 to the number of rows, " +
           std::to_string(table.rows()));
  }
  if (!(options.max_eps > 0)) refuse("max_eps: must be above 0; infinity is allowed");
  if (options.metric == Metric::inner_product) {
    refuse("metric: inner_product may be below 0; optics takes all other metrics");
  }
  ops::check_density_search(table, options.metric, options.p, options.method, kOptics);
  ops::density_backend(ctx, kernels::DensityWork::optics, kOptics);
}

/// The search of the lists, which have keys.
ops::SearchRequest lists_request(const TableView& table, const OpticsOptions& options, std::uint64_t bytes_beside) {
  KnnOptions lists;
  lists.k = ops::listed_neighbors(table.rows(), options.min_samples - 1);
  lists.metric = options.metric;
  lists.p = options.p;
  lists.method = options.method;
  ops::SearchRequest request = ops::request_of(nullptr, lists);
  request.task.keys = true;
  request.bytes_beside = bytes_beside;
  request.operation = kOptics;
  return request;
}

OpticsTask task_of(const kernels::NearestTask& search, const OpticsOptions& options) {
  OpticsTask task;
  task.search = search;
  task.rank = options.min_samples - 1;
  task.limit =
      std::isinf(options.max_eps) ? kInfinity : core::largest_key_within(options.metric, options.max_eps, options.p);
  return task;
}

/// What is taken beside the lists: the result, and the most of all methods that may be chosen.
std::uint64_t bytes_beside(const Context& ctx, const kernels::Prepared& index, const OpticsOptions& options) {
  kernels::NearestTask search = lists_request(index.table, options, 0).task;
  search.index = &index;
  search.queries = index.table;
  const auto rows = static_cast<std::uint64_t>(index.table.rows());
  return rows * 4 * sizeof(double) + ops::most_bytes(ctx, search, [&](const kernels::NearestTask& by) {
           return ops::density_backend(ctx, kernels::DensityWork::optics, kOptics)
               .optics_bytes(ctx, task_of(by, options))
               .host;
         });
}

void report_distances(const Context& ctx, const OpticsTask& task, Optics& found) {
  core::Poll poll(ctx);
  const auto distance = [&](double key) {
    return key <= task.limit && key < kInfinity ? core::reported_distance(found.options.metric, key, found.options.p)
                                                : kInfinity;
  };
  for (double& reach : found.reachability) {
    poll.step();
    reach = distance(reach);
  }
  const auto k = static_cast<std::size_t>(task.search.k);
  for (std::size_t row = 0; row < found.core_distances.size(); ++row) {
    poll.step();
    found.core_distances[row] = distance(task.keys[row * k + static_cast<std::size_t>(task.rank) - 1]);
  }
}

Optics order_of(const Context& ctx, const Index& index, const OpticsOptions& options) {
  const kernels::Prepared& prepared = kernels::prepared_of(index);
  const kernels::DensityBackend& backend = ops::density_backend(ctx, kernels::DensityWork::optics, kOptics);
  ops::SearchRequest request = lists_request(index.table(), options, bytes_beside(ctx, prepared, options));
  ops::Job job = ops::plan_job(ctx, prepared, request, true);
  core::require_memory(ctx, job.plan.memory, kOptics);
  Optics found;
  found.options = options;
  found.plan = job.plan;
  ops::KeyLists lists(ctx, index.rows(), job.task.k);
  for (std::vector<std::int64_t>* const of_rows : {&found.ordering, &found.predecessors}) {
    core::resize_in_steps(ctx, *of_rows, index.rows());
  }
  for (std::vector<double>* const of_rows : {&found.reachability, &found.core_distances}) {
    core::resize_in_steps(ctx, *of_rows, index.rows());
  }
  const double seconds = ops::run_job(ctx, job, [&] {
    lists.find(ctx, job.task, found.stats);
    const auto start = std::chrono::steady_clock::now();
    OpticsTask task = task_of(job.task, options);
    task.ids = lists.ids;
    task.keys = lists.keys;
    kernels::OpticsResult result{found.ordering, found.reachability, found.predecessors};
    backend.optics(ctx, task, result);
    report_distances(ctx, task, found);
    found.order_seconds = seconds_since(start);
  });
  found.stats.search_seconds = seconds - found.order_seconds;
  return found;
}

}  // namespace

Optics optics(const Context& ctx, const Index& index, const OpticsOptions& options) try {
  const core::Entry entry;
  check_memory(ctx, index.table(), "table");
  check_optics(ctx, index.table(), options);
  return order_of(ctx, index, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Optics optics(const Context& ctx, const TableView& table, const OpticsOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  check_optics(ctx, table, options);
  return ops::with_index(ctx, table, [&](const Index& index) { return order_of(ctx, index, options); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_optics(const Context& ctx, const TableView& table, const OpticsOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  check_optics(ctx, table, options);
  const kernels::Prepared unread = ops::unread_index(table);
  ops::SearchRequest request = lists_request(table, options, bytes_beside(ctx, unread, options));
  return ops::plan_search(ctx, table, request);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
