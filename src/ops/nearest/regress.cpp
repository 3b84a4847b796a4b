// Means over neighborhoods (contract clause 14): a row is averaged by one worker, in one order, so that neither threads
// nor device show. Lists come from whatever backend the context has; the sums are the host's. O(m k outputs).
#include "ops/nearest/regress.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "backend/nearest.hpp"
#include "core/distance.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "formulas/nearest/neighbor_weights.hpp"
#include "ops/common/check.hpp"
#include "ops/nearest/search.hpp"

namespace vicinal {
namespace ops {
namespace {

constexpr std::int64_t kNeighborsPerTask = 16384;
constexpr std::int64_t kRowsAtATime = 4096;

/// Clause 1's sum of size terms, each made by fma from the sum so far.
template <class Add>
double sum_of(std::int64_t size, const Add& add) {
  double a[core::kLanes] = {};
  for (std::int64_t i = 0; i < size; ++i) a[i % core::kLanes] = add(i, a[i % core::kLanes]);
  return core::sum_of_lanes(a);
}

}  // namespace

void check_targets(const TableView& targets, std::int64_t table_rows) {
  if (targets.rows() != table_rows || targets.cols() < 1) {
    throw Error(ErrorCode::invalid_argument, "targets: there are " + std::to_string(targets.rows()) + " rows of " +
                                                 std::to_string(targets.cols()) + " numbers, but the table has " +
                                                 std::to_string(table_rows) + " rows");
  }
  if (targets.memory() == Memory::cuda) {
    throw Error(ErrorCode::device_unavailable,
                "targets: are in CUDA memory, but means are computed on the host; copy them to host memory");
  }
}

std::uint64_t target_bytes(const TableView& targets) {
  const double bytes = static_cast<double>(targets.rows()) * static_cast<double>(targets.cols()) * sizeof(double);
  return bytes < 0x1p63 ? static_cast<std::uint64_t>(bytes) : std::uint64_t{1} << 63;
}

Targets read_targets(const Context& ctx, const TableView& targets, std::int64_t table_rows) {
  check_targets(targets, table_rows);
  Targets read;
  read.rows = targets.rows();
  read.outputs = targets.cols();
  read.values.resize(static_cast<std::size_t>(read.rows * read.outputs));
  for (std::int64_t first = 0; first < read.rows; first += kRowsAtATime) {
    ctx.check_cancelled();
    const std::int64_t last = std::min(read.rows, first + kRowsAtATime);
    core::widen_rows(targets, first, last, read.values.data() + first * read.outputs);
    for (std::int64_t i = first * read.outputs; i < last * read.outputs; ++i) {
      if (std::isfinite(read.values[static_cast<std::size_t>(i)])) continue;
      throw Error(ErrorCode::bad_data, "targets: row " + std::to_string(i / read.outputs) + ", column " +
                                           std::to_string(i % read.outputs) + " is not finite");
    }
  }
  return read;
}

void average(const Context& ctx, const NeighborGraph& graph, const Targets& targets, const RegressOptions& options,
             std::string_view operation, std::int64_t first, std::span<double> means) {
  const std::int64_t m = graph.rows;
  const std::int64_t per_row = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(graph.ids.size()) * targets.outputs / std::max<std::int64_t>(1, m));
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, kNeighborsPerTask / per_row);
  const core::NeighborWeights weights_of(operation, options.weights, options.custom, options.given);
  std::vector<std::vector<double>> scratch(static_cast<std::size_t>(ctx.threads()));

  core::parallel_for(ctx, (m + rows_per_task - 1) / rows_per_task, [&](std::int64_t task, int worker) {
    std::vector<double>& weights = scratch[static_cast<std::size_t>(worker)];
    for (std::int64_t row = task * rows_per_task; row < std::min(m, (task + 1) * rows_per_task); ++row) {
      const std::span<const std::int64_t> ids = graph.ids_of(row);
      const auto size = static_cast<std::int64_t>(ids.size());
      for (const std::int64_t id : ids) {
        if (id < 0 || id >= targets.rows) weights_of.refuse_id(id, targets.rows, first + row);
      }
      weights.resize(ids.size());
      weights_of.weigh(first + row, ids.data() - graph.ids.data(), graph.distances_of(row), weights);
      const double* const w = weights.data();
      const double weight = sum_of(size, [w](std::int64_t i, double a) { return a + w[i]; });
      if (std::isinf(weight)) weights_of.refuse_sum(first + row);
      for (std::int64_t o = 0; o < targets.outputs; ++o) {
        double& mean = means[static_cast<std::size_t>(row * targets.outputs + o)];
        const double* const t = targets.values.data() + o;
        const double sum =
            sum_of(size, [&](std::int64_t i, double a) { return std::fma(w[i], t[ids[i] * targets.outputs], a); });
        mean = weight == 0 ? options.outlier : sum / weight;
        if (weight != 0 && !std::isfinite(mean)) {
          throw Error(ErrorCode::bad_data, std::string(operation) + ": query row " + std::to_string(first + row) +
                                               ": the weighted sum of its neighbors' targets in column " +
                                               std::to_string(o) + " is beyond a float64");
        }
      }
    }
  });
}

std::vector<double> average(const Context& ctx, const NeighborGraph& graph, const Targets& targets,
                            const RegressOptions& options, std::string_view operation) {
  std::vector<double> means(static_cast<std::size_t>(graph.rows * targets.outputs));
  average(ctx, graph, targets, options, operation, 0, means);
  return means;
}

namespace {

std::int64_t without_neighbors(const NeighborGraph& graph) {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < graph.rows; ++row) count += graph.ids_of(row).empty() ? 1 : 0;
  return count;
}

Regression regress(const Context& ctx, const Index& index, const TableView& queries, const TableView& targets,
                   SearchRequest& request, const RegressOptions& averaging, const TakeLists& watch = {}) {
  check_weights(averaging.weights, averaging.custom, request.task.metric, "regress");
  check_targets(targets, index.rows());
  const double bytes = static_cast<double>(queries.rows()) * static_cast<double>(targets.cols()) * sizeof(double);
  request.bytes_beside = target_bytes(targets) + static_cast<std::uint64_t>(std::min(bytes, 0x1p62));
  request.operation = "regress";
  core::require_memory(ctx, request.bytes_beside, request.operation);
  const Targets read = read_targets(ctx, targets, index.rows());
  Regression result{{}, queries.rows(), index.rows(), read.outputs, 0, {}, {}};
  if (request.task.collect == kernels::Collect::radius) {
    const RadiusSummary found =
        find_in_batches(ctx, index, request, [&](std::int64_t first, const NeighborGraph& lists) {
          result.values.resize(static_cast<std::size_t>(result.rows * read.outputs));
          const std::span<double> values(result.values);
          average(ctx, lists, read, averaging, "regress", first,
                  values.subspan(static_cast<std::size_t>(first * read.outputs),
                                 static_cast<std::size_t>(lists.rows * read.outputs)));
          result.outliers += without_neighbors(lists);
          if (watch) watch(first, lists);
        });
    result.plan = found.plan;
    result.stats = found.stats;
  } else {
    const NeighborGraph graph = find_neighbors(ctx, index, request);
    result.values = average(ctx, graph, read, averaging, "regress");
    result.outliers = without_neighbors(graph);
    result.plan = graph.plan;
    result.stats = graph.stats;
  }
  if (result.plan.device != "cpu") result.plan.reason += "; lists are copied to the host, which computes the means";
  return result;
}

}  // namespace
}  // namespace ops

std::vector<double> average(const Context& ctx, const NeighborGraph& graph, const TableView& targets,
                            const RegressOptions& options) try {
  const core::Entry entry;
  check_graph(graph, "average");
  check_weights(graph, options.weights, options.custom, options.given, "average");
  ops::check_targets(targets, graph.table_rows);
  const double bytes = static_cast<double>(graph.rows) * static_cast<double>(targets.cols()) * sizeof(double);
  core::require_memory(ctx, ops::target_bytes(targets) + static_cast<std::uint64_t>(std::min(bytes, 0x1p62)),
                       "average");
  return ops::average(ctx, graph, ops::read_targets(ctx, targets, graph.table_rows), options, "average");
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Regression regress(const Context& ctx, const Index& index, const TableView& queries, const TableView& targets,
                   const KnnOptions& options, const RegressOptions& averaging) try {
  const core::Entry entry;
  ops::SearchRequest request = ops::request_of(&queries, options);
  return ops::regress(ctx, index, queries, targets, request, averaging);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Regression regress(const Context& ctx, const TableView& table, const TableView& queries, const TableView& targets,
                   const KnnOptions& options, const RegressOptions& averaging) try {
  const core::Entry entry;
  ops::SearchRequest request = ops::checked_request(ctx, table, &queries, options);
  ops::check_targets(targets, table.rows());
  return ops::with_index(
      ctx, table, [&](const Index& index) { return ops::regress(ctx, index, queries, targets, request, averaging); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Regression regress_radius(const Context& ctx, const Index& index, const TableView& queries, const TableView& targets,
                          const RadiusOptions& options, const RegressOptions& averaging, const TakeLists& watch) try {
  const core::Entry entry;
  ops::SearchRequest request = ops::request_of(&queries, options, kernels::Collect::radius);
  return ops::regress(ctx, index, queries, targets, request, averaging, watch);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Regression regress_radius(const Context& ctx, const TableView& table, const TableView& queries,
                          const TableView& targets, const RadiusOptions& options, const RegressOptions& averaging) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  ops::check_targets(targets, table.rows());
  ops::SearchRequest request = ops::request_of(&queries, options, kernels::Collect::radius);
  return ops::with_index(
      ctx, table, [&](const Index& index) { return ops::regress(ctx, index, queries, targets, request, averaging); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
