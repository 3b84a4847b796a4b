// dbscan: check, plan, call the backend (contract clause 28).
#include "vicinal/dbscan.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "backend/index_access.hpp"
#include "core/entry.hpp"
#include "core/poll.hpp"
#include "formulas/nearest/radius.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/density/search.hpp"
#include "ops/nearest/search.hpp"

namespace vicinal {
namespace {

using kernels::DbscanTask;

const char* const kDbscan = "dbscan";
constexpr std::int64_t kMostTried = 64;  // neighbors of the search by which a method is chosen

void check_dbscan(const TableView& table, const DbscanOptions& options) {
  if (!std::isfinite(options.eps) || (options.eps <= 0 && options.metric != Metric::inner_product)) {
    refuse(options.metric == Metric::inner_product ? "eps: must be finite" : "eps: must be above 0 and finite");
  }
  if (options.min_samples < 1) {
    refuse("min_samples: is " + std::to_string(options.min_samples) + ", must be at least 1");
  }
  ops::check_density_search(table, options.metric, options.p, options.method, kDbscan);
  if (options.weights.empty()) return;
  if (static_cast<std::int64_t>(options.weights.size()) != table.rows()) {
    refuse("weights: " + std::to_string(options.weights.size()) + " for " + std::to_string(table.rows()) + " rows");
  }
  for (std::size_t row = 0; row < options.weights.size(); ++row) {
    if (!std::isfinite(options.weights[row])) refuse("weights: that of row " + std::to_string(row) + " is not finite");
  }
}

/// The search by which the method is chosen: a row is a core row if its neighbor of that rank is near enough.
ops::SearchRequest request_of(const TableView& table, const DbscanOptions& options, std::uint64_t bytes_beside) {
  KnnOptions lists;
  lists.k = std::clamp<std::int64_t>(options.min_samples - 1, 1, std::min(table.rows() - 1, kMostTried));
  lists.metric = options.metric;
  lists.p = options.p;
  lists.method = options.method;
  ops::SearchRequest request = ops::request_of(nullptr, lists);
  request.lists = ops::SearchRequest::Lists::counted_beside;
  request.bytes_beside = bytes_beside;
  request.operation = kDbscan;
  return request;
}

DbscanTask task_of(const kernels::NearestTask& search, const DbscanOptions& options) {
  return {search, core::largest_key_within(options.metric, options.eps, options.p), options.min_samples,
          options.weights};
}

/// Host and device memory of the clustering.
kernels::MemoryNeed need_of(const Context& ctx, const kernels::NearestTask& search, const DbscanOptions& options) {
  return ops::density_backend(ctx, kernels::DensityWork::dbscan, kDbscan).dbscan_bytes(ctx, task_of(search, options));
}

std::uint64_t bytes_beside(const Context& ctx, const kernels::Prepared& index, const DbscanOptions& options) {
  kernels::NearestTask search = request_of(index.table, options, 0).task;
  search.index = &index;
  search.queries = index.table;
  const std::uint64_t work =
      ops::most_bytes(ctx, search, [&](const kernels::NearestTask& by) { return need_of(ctx, by, options).host; });
  // Labels, core rows, sizes, and counts where keys may overflow.
  return work + static_cast<std::uint64_t>(index.table.rows()) * (3 * sizeof(std::int64_t) + 1);
}

/// Whether the key of some pair may not be finite, judged from the largest magnitude.
bool may_overflow(const kernels::Prepared& index, const DbscanOptions& options) {
  if (options.metric == Metric::cosine || options.metric == Metric::hamming) return false;
  double largest = index.largest;
  for (const double center : index.centre) largest = std::max(largest, index.largest + std::fabs(center));
  const double magnitude = std::log2(std::max(largest, 1.0)) + 1;
  const bool is_linear = options.metric == Metric::manhattan || options.metric == Metric::chebyshev;
  const double power = options.metric == Metric::minkowski ? options.p : is_linear ? 1 : 2;
  return !(power * magnitude + std::log2(static_cast<double>(index.table.cols())) < 1000);
}

/// Searches that stop early do not see every pair, but each pair whose key overflows is an error (clause 1).
void refuse_overflow(const Context& ctx, const Index& index, const DbscanOptions& options) {
  if (!may_overflow(kernels::prepared_of(index), options)) return;
  RadiusOptions all;
  all.radius = options.eps;
  all.metric = options.metric;
  all.p = options.p;
  all.method = Method::direct;
  ops::SearchRequest request = ops::request_of(nullptr, all, kernels::Collect::count);
  request.operation = kDbscan;
  std::vector<std::int64_t> counts;
  ops::find_neighbors(ctx, index, request, &counts);
}

void summarize(const Context& ctx, Dbscan& found) {
  core::Poll poll(ctx);
  found.sizes.assign(static_cast<std::size_t>(found.clusters), 0);
  for (std::size_t row = 0; row < found.labels.size(); ++row) {
    poll.step();
    found.core_rows += found.core[row];
    if (found.labels[row] < 0) {
      ++found.noise;
    } else {
      ++found.sizes[static_cast<std::size_t>(found.labels[row])];
    }
  }
}

Dbscan clusters_of(const Context& ctx, const Index& index, const DbscanOptions& options) {
  const kernels::Prepared& prepared = kernels::prepared_of(index);
  const kernels::DensityBackend& backend = ops::density_backend(ctx, kernels::DensityWork::dbscan, kDbscan);
  Dbscan found;
  found.options = options;
  found.options.weights = {};
  ops::Job job;
  if (index.rows() > 1) {
    ops::SearchRequest request = request_of(index.table(), options, bytes_beside(ctx, prepared, options));
    job = ops::plan_job(ctx, prepared, request, true);
    job.plan.device_memory = std::max(job.plan.device_memory, need_of(ctx, job.task, options).device);
    core::require_memory(ctx, job.plan.memory, kDbscan);
    refuse_overflow(ctx, index, options);
    found.plan = job.plan;
  } else {
    found.plan = ops::plan_of_one_row(ctx);
  }
  const auto rows = static_cast<std::size_t>(index.rows());
  found.labels.assign(rows, -1);
  found.core.assign(rows, 0);
  if (index.rows() > 1) {
    found.cluster_seconds = ops::run_job(ctx, job, [&] {
      kernels::DbscanResult result{found.core, found.labels};
      backend.dbscan(ctx, task_of(job.task, options), result);
      found.clusters = result.clusters;
    });
  } else if ((options.weights.empty() ? 1 : options.weights[0]) >= static_cast<double>(options.min_samples)) {
    found.core[0] = 1;
    found.labels[0] = 0;
    found.clusters = 1;
  }
  found.stats.distinct_rows = prepared.distinct_rows();
  summarize(ctx, found);
  return found;
}

}  // namespace

Dbscan dbscan(const Context& ctx, const Index& index, const DbscanOptions& options) try {
  const core::Entry entry;
  check_dbscan(index.table(), options);
  check_memory(ctx, index.table(), "table");
  return clusters_of(ctx, index, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Dbscan dbscan(const Context& ctx, const TableView& table, const DbscanOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  check_dbscan(table, options);
  ops::density_backend(ctx, kernels::DensityWork::dbscan, kDbscan);
  Dbscan found = ops::with_index(ctx, table, [&](const Index& index) { return clusters_of(ctx, index, options); });
  found.prepare_seconds = found.stats.prepare_seconds;
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_dbscan(const Context& ctx, const TableView& table, const DbscanOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  check_dbscan(table, options);
  ops::density_backend(ctx, kernels::DensityWork::dbscan, kDbscan);
  if (table.rows() == 1) return ops::plan_of_one_row(ctx);
  const kernels::Prepared unread = ops::unread_index(table);
  ops::SearchRequest request = request_of(table, options, bytes_beside(ctx, unread, options));
  Plan plan = ops::plan_search(ctx, table, request);
  kernels::NearestTask search = request.task;
  search.index = &unread;
  search.queries = table;
  search.method = plan.method;
  plan.device_memory = std::max(plan.device_memory, need_of(ctx, search, options).device);
  return plan;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
