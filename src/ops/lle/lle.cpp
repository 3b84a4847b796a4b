// lle and transform: check, find neighbors, embed (contract clause 17).
#include "vicinal/lle.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "backend/backend.hpp"
#include "backend/lle.hpp"
#include "core/entry.hpp"
#include "core/list_room.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "ops/common/check.hpp"
#include "ops/kmeans/clustered_rows.hpp"
#include "ops/lle/check.hpp"
#include "ops/lle/embed.hpp"
#include "ops/lle/forecast.hpp"
#include "ops/nearest/search.hpp"
#include "solver/weights.hpp"

namespace vicinal {

namespace {

KnnOptions search_of(const LleOptions& options) {
  return {.k = options.k, .metric = options.metric, .p = options.p, .method = options.method};
}

/// `ids` [n, k].
kernels::LleTask task_of(const Context& ctx, const TableView& table, const std::int64_t* ids,
                         const LleOptions& options) {
  constexpr std::int64_t kTaskEntries = 1 << 16;
  const std::int64_t entries = table.rows() * options.k;
  kernels::LleTask task{table, core::RawVector<solver::Point>(static_cast<std::size_t>(entries)), options.k, options,
                        std::nullopt};
  core::parallel_for(ctx, (entries + kTaskEntries - 1) / kTaskEntries, [&](std::int64_t part, int /*worker*/) {
    const std::int64_t end = std::min(entries, (part + 1) * kTaskEntries);
    for (std::int64_t e = part * kTaskEntries; e < end; ++e) task.ids[e] = static_cast<solver::Point>(ids[e]);
  });
  return task;
}

constexpr std::string_view kDevice = "the device";

/// Where eigenvectors are found, and why there.
std::string place_of(const Context& ctx, const LleOptions& options) {
  const kernels::LlePlace place = kernels::backend_of(ctx).lle().place(options);
  if (place.on_device) return std::string(kDevice);
  return place.why_not.empty() ? "the host" : fmt::format("the host ({})", place.why_not);
}

/// What was done: the largest piece's way.
std::string told(const Lle& found) {
  const LlePiece& most = *std::max_element(found.pieces.begin(), found.pieces.end(),
                                           [](const auto& x, const auto& y) { return x.rows < y.rows; });
  std::int64_t fill = 0;
  for (const LlePiece& piece : found.pieces) fill += piece.fill;
  if (most.solver == LleSolver::lanczos || most.solver == LleSolver::arnoldi) {
    return fmt::format("{} with {} products", name_of(most.solver), most.iterations);
  }
  return fill == 0 ? std::string("dense") : fmt::format("direct, with a factor of {} entries", fill);
}

/// What will be done, as far as it is known before the graph is.
std::string way_of(LleSolver solver) {
  switch (solver) {
    case LleSolver::dense:
    case LleSolver::lanczos:
    case LleSolver::arnoldi:
      return std::string(name_of(solver));
    default:
      return "direct";
  }
}

/// And what is open until then.
std::string open_of(LleSolver solver) {
  if (way_of(solver) != "direct") return "";
  return std::string(", whose factor is planned when the graph is known") +
         (solver == LleSolver::automatic ? "; lanczos if the factor would not fit, or if products with M cost less"
                                         : "");
}

std::uint64_t host_bytes(const Context& ctx, const TableView& table, const LleOptions& options) {
  return ops::bytes_on_host(table) + ops::embed_bytes(ctx, table.rows(), table.cols(), options);
}

/// The first number that a job is refused with is one that it runs with, at the speed that was planned.
void require_plan(const Context& ctx, const TableView& table, const LleOptions& options) {
  const std::uint64_t least = host_bytes(ctx, table, options);
  if (least <= ctx.memory_limit()) return;
  const std::uint64_t planned = ops::forecast_lle(ctx, table, options, least).bytes;
  core::require_memory(ctx, planned, "lle");
}

ops::DirectCost direct_cost_of(const Lle& found) {
  ops::DirectCost cost;
  for (const LlePiece& piece : found.pieces) {
    cost.fill += static_cast<double>(piece.fill);
    cost.flops += piece.flops;
  }
  return cost;
}

/// The search is over: `found` has its plan and stats. The order of elimination is found on the host, from its rows.
Lle embedded(const Context& ctx, kernels::LleTask task, Lle found) {
  const TableView table = task.table;
  found.options = task.options;
  ops::embed(ctx, std::move(task), found);
  const ops::DirectCost cost = direct_cost_of(found);
  if (cost.fill > 0 && place_of(ctx, found.options) != kDevice) {
    found.plan.expected_seconds += ops::direct_seconds(ctx, table, found.options, cost);
  }
  if (!found.warning.empty()) found.plan.reason += "; " + found.warning;
  found.plan.reason += fmt::format("; {} piece{} of the graph solved on {}, {}", found.pieces.size(),
                                   found.pieces.size() == 1 ? "" : "s", place_of(ctx, found.options), told(found));
  return found;
}

}  // namespace

Lle lle(const Context& ctx, const TableView& table, const LleOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  ops::check_lle_table(table);
  ops::check_lle_options(options, table.rows());
  const bool on_device = place_of(ctx, options) == kDevice;  // refuses what a device lacks before the search
  require_plan(ctx, table, options);
  Lle found;
  kernels::LleTask task;
  ops::RowCopy rows;
  {
    const auto entries = static_cast<std::size_t>(table.rows() * options.k);
    core::RawVector<std::int64_t> ids(entries);
    core::RawVector<double> distances(entries);
    // Not by the one thread that copies lists from a device.
    core::touch_pages(ctx, ids.data(), entries * sizeof(std::int64_t));
    core::touch_pages(ctx, distances.data(), entries * sizeof(double));
    std::optional<Index> kept;
    KnnSummary searched = ops::with_index(ctx, table, [&](const Index& index) {
      if (on_device) kept = index;
      return knn_into(ctx, index, search_of(options), {ids.data(), distances.data()});
    });
    rows = ops::rows_on_host(ctx, table);
    task = task_of(ctx, rows.table, ids.data(), options);
    task.index = std::move(kept);
    found.plan = std::move(searched.plan);
    found.stats = searched.stats;
  }
  return embedded(ctx, std::move(task), std::move(found));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Lle lle(const Context& ctx, const TableView& table, const NeighborGraph& graph, const LleOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  ops::check_lle_table(table);
  ops::check_lle_graph(graph, table.rows());
  LleOptions as_graph = options;
  as_graph.k = graph.k;
  as_graph.metric = graph.metric;
  as_graph.p = graph.p;
  ops::check_lle_options(as_graph, table.rows());
  require_plan(ctx, table, as_graph);
  Index checked(ctx, table);  // refuses what is not finite
  const ops::RowCopy rows = ops::rows_on_host(ctx, table);
  Lle found;
  found.plan = graph.plan;
  found.stats = graph.stats;
  kernels::LleTask task = task_of(ctx, rows.table, graph.ids.data(), as_graph);
  if (place_of(ctx, as_graph) == kDevice) task.index = std::move(checked);
  return embedded(ctx, std::move(task), std::move(found));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> transform(const Context& ctx, const Index& index, const Lle& fitted, const TableView& queries) try {
  const core::Entry entry;
  constexpr std::int64_t kTaskRows = 512;
  ops::check_lle_table(index.table());
  ops::check_lle_table(queries);
  ops::check_lle_fitted(fitted, index.rows());
  core::require_memory(ctx, ops::bytes_on_host(index.table()) + ops::bytes_on_host(queries), "transform");
  const NeighborGraph graph = knn(ctx, index, queries, search_of(fitted.options));
  const ops::RowCopy rows = ops::rows_on_host(ctx, index.table());
  const ops::RowCopy asked = ops::rows_on_host(ctx, queries);
  const std::int64_t dim = fitted.options.dim;
  std::vector<double> found(static_cast<std::size_t>(queries.rows() * dim), 0.0);
  core::parallel_for(ctx, (queries.rows() + kTaskRows - 1) / kTaskRows, [&](std::int64_t task, int /*worker*/) {
    solver::Placer placer(rows.table, graph.k, fitted.options.reg);
    for (std::int64_t q = task * kTaskRows; q < std::min(queries.rows(), (task + 1) * kTaskRows); ++q) {
      core::widen_rows(asked.table, q, q + 1, placer.row());
      const auto ids = graph.ids_of(q);
      for (const std::int64_t id : ids) {
        if (fitted.piece[id] == fitted.piece[ids[0]]) placer.add(id);
      }
      if (!placer.place(fitted.embedding.data(), dim, found.data() + q * dim)) {
        throw Error(ErrorCode::bad_data,
                    fmt::format("reg: is {}, but the neighbors of query row {} do not determine its weights; a larger "
                                "share does",
                                fitted.options.reg, q));
      }
    }
  });
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

LlePlan plan_lle(const Context& ctx, const TableView& table, const LleOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  ops::check_lle_table(table);
  ops::check_lle_options(options, table.rows());
  LlePlan plan{plan_knn(ctx, table, nullptr, search_of(options)), LleSolver::automatic, {}};
  const std::uint64_t least = std::max(plan.memory, host_bytes(ctx, table, options));
  plan.memory = least;
  const std::string place = place_of(ctx, options);
  if (place == kDevice) {
    plan.device_memory = std::max(plan.device_memory, kernels::backend_of(ctx).lle().bytes(ctx, table, options).device);
  }
  if (place == kDevice) {
    plan.reason += fmt::format("; then {} on {}{}", way_of(options.solver), place, open_of(options.solver));
    return plan;
  }
  const ops::LleForecast forecast = ops::forecast_lle(ctx, table, options, least);
  plan.memory = forecast.bytes;
  plan.solver = forecast.solver;
  plan.warning = forecast.warning;
  const bool known = forecast.solver != LleSolver::automatic;
  plan.reason +=
      fmt::format("; then {} on {}", known ? std::string(name_of(forecast.solver)) : way_of(options.solver), place);
  if (forecast.seconds > 0) {
    plan.reason += fmt::format(" for about {:.2g} s", forecast.seconds);
    plan.expected_seconds += forecast.seconds;
  }
  if (!plan.warning.empty()) plan.reason += "; " + plan.warning;
  return plan;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
