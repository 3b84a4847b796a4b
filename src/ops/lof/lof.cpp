// lof and novelty: check, find neighbors, call the backend, then what is the same for every backend: the deviations of
// loop, and the threshold (contract clause 13).
#include "vicinal/lof.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "backend/backend.hpp"
#include "backend/index_access.hpp"
#include "backend/lof.hpp"
#include "backend/nearest.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "core/seconds.hpp"
#include "ops/common/check.hpp"
#include "ops/lof/check.hpp"
#include "ops/lof/places.hpp"
#include "ops/lof/scoring.hpp"
#include "ops/nearest/search.hpp"

namespace vicinal {
namespace {

using kernels::LofResult;
using kernels::LofTask;
using ops::longest_k;

/// The threshold above which a share of the scores lies.
double threshold_of(const Context& ctx, const std::vector<double>& scores, double contamination) {
  std::vector<double> negated(scores.size());
  std::transform(scores.begin(), scores.end(), negated.begin(), [](double score) { return 0 - score; });
  const ops::ThresholdPlace at = ops::threshold_place(std::ssize(scores), contamination);
  core::Poll poll(ctx);
  std::nth_element(negated.begin(), negated.begin() + at.i, negated.end(), [&](double x, double y) {
    poll.step();
    return x < y;
  });
  const double a = negated[static_cast<std::size_t>(at.i)];
  const double b = at.t == 0 ? a : *std::min_element(negated.begin() + at.i + 1, negated.end());
  return ops::threshold_between(a, b, at.t);
}

/// What is left to do when the scores are there; the time since `start` is added to what they took.
void finish(const Context& ctx, std::chrono::steady_clock::time_point start, Lof& found) {
  ops::require_numbers(found.scores, "table");
  if (found.options.score == OutlierScore::loop) {
    const ops::FinitePlofs plofs = ops::finite_plofs(ctx, found.scores);
    found.spread = ops::spread_of(plofs.squares.rounded(), plofs.count, found.options.lambda);
    ops::make_probabilities(ctx, found.spread, found.scores);
  }
  found.threshold = found.options.contamination > 0 ? threshold_of(ctx, found.scores, found.options.contamination)
                                                    : ops::own_threshold(found.options.score);
  found.outliers =
      std::count_if(found.scores.begin(), found.scores.end(), [&](double score) { return score > found.threshold; });
  found.score_seconds += seconds_since(start);
}

Lof result_of(const LofOptions& options) {
  Lof found;
  found.options = options;
  return found;
}

/// Scores neighborhoods that are there; what is left to do is `finish`.
void score_task(const Context& ctx, const LofTask& task, Lof& found) {
  found.scores.resize(static_cast<std::size_t>(task.near.rows));
  LofResult result{found.scores, found.k_distances, found.densities, found.caps};
  kernels::backend_of(ctx).lof().score(ctx, task, result);
  found.copied = result.copied;
}

Lof lof_of_graph(const Context& ctx, const NeighborGraph& graph, const TableView* table, const LofOptions& options) {
  ops::check_lof_options(options);
  if (graph.metric == Metric::inner_product) {
    throw Error(ErrorCode::invalid_argument,
                "graph: was made with the metric inner_product, whose distances may be "
                "below 0");
  }
  if (ops::uses_places(options)) {
    throw Error(ErrorCode::invalid_argument,
                std::string(options.ties == Ties::all ? "ties: all needs" : "duplicates: distinct needs") +
                    " the table without a graph, whose lists do not say where it was cut");
  }
  if (options.k_to > 0 && graph.is_csr()) {
    throw Error(ErrorCode::invalid_argument, "k_to: a range of k needs a graph of k neighbors a row");
  }
  if (table == nullptr && core::needs_table(options.score)) {
    throw Error(ErrorCode::invalid_argument, "score: " + std::string(name_of(options.score)) +
                                                 " is made of distances between neighbors, and needs the table");
  }
  ops::check_lof_graph(ctx, graph, options);  // k as well, where it counts
  LofTask task = ops::task_of(options, graph.rows);
  ops::take_graph(graph, task);
  task.metric = graph.metric;
  task.p = graph.p;
  if (table != nullptr) {
    check_table(ctx, *table, "table");
    if (table->rows() != graph.rows) {
      throw Error(ErrorCode::invalid_argument, "table: has " + std::to_string(table->rows()) +
                                                   " rows, but the graph joins " + std::to_string(graph.rows));
    }
    task.table = *table;
  }
  Lof found = result_of(options);
  found.options.metric = graph.metric;
  found.options.p = graph.p;
  found.plan = graph.plan;
  found.plan.device = ctx.device();
  const kernels::MemoryNeed bytes = kernels::backend_of(ctx).lof().bytes(ctx, task);
  found.plan.memory = ops::result_bytes(task) + bytes.host;
  found.plan.device_memory = bytes.device;
  core::require_memory(ctx, found.plan.memory, "lof");
  const auto start = std::chrono::steady_clock::now();
  score_task(ctx, task, found);
  finish(ctx, start, found);
  return found;
}

/// The search of the longest lists.
ops::SearchRequest request_of(const LofOptions& options, const TableView* queries, std::uint64_t bytes_beside) {
  ops::SearchRequest request = ops::request_of(
      queries, {.k = longest_k(options), .metric = options.metric, .p = options.p, .method = options.method});
  request.bytes_beside = bytes_beside;
  return request;
}

/// A search and what is made of it, planned.
struct LofJob {
  ops::Job search;
  LofTask task;
};

/// `model`: for queries, against which they are scored.
LofJob plan_job(const Context& ctx, const kernels::Prepared& index, const TableView* queries,
                const kernels::LofModel* model, const LofOptions& options) {
  const kernels::Backend& backend = kernels::backend_of(ctx);
  LofJob job;
  job.task = ops::task_of(options, queries == nullptr ? index.table.rows() : queries->rows());
  job.task.model = model;
  if (core::needs_table(options.score)) {
    if (index.table.is_block_source()) {
      throw Error(ErrorCode::invalid_argument, "score: " + std::string(name_of(options.score)) +
                                                   " needs the table in memory, but it comes in blocks");
    }
    job.task.table = index.table;
  }
  const kernels::MemoryNeed bytes = backend.lof().bytes(ctx, job.task);
  ops::SearchRequest request = request_of(options, queries, ops::result_bytes(job.task) + bytes.host);
  request.lists = ops::SearchRequest::Lists::passed_on;
  request.task.lists_stay = backend.lof().lists_stay(job.task);
  job.search = ops::plan_job(ctx, index, request, true);
  job.search.plan.device_memory += bytes.device;
  return job;
}

void run_job(const Context& ctx, LofJob& job, Lof& found) {
  core::require_memory(ctx, job.search.plan.memory, "lof");
  kernels::backend_of(ctx).nearest().check_queries(ctx, job.search.task);
  found.plan = job.search.plan;
  found.scores.resize(static_cast<std::size_t>(job.task.near.rows));
  LofResult result{found.scores, found.k_distances, found.densities, found.caps};
  found.stats.search_seconds = ops::run_job(ctx, job.search, [&] {
    kernels::backend_of(ctx).lof().search_and_score(ctx, job.search.task, job.task, result, found.stats);
  });
  found.copied = result.copied;
  found.score_seconds = result.seconds;
  found.stats.search_seconds -= result.seconds;
}

/// Neighborhoods of places; every row has its place's score.
Lof lof_of_places(const Context& ctx, const Index& index, const LofOptions& options) {
  ops::check_places(index.table());
  const ops::Places places = ops::places_of(ctx, index.table());
  const ops::PlaceGraph made = ops::place_graph(ctx, index.table(), places, nullptr, options);
  LofTask task = ops::task_of(options, made.graph.rows);
  ops::take_graph(made.graph, task);
  task.near.weights = made.weights.data();
  Lof of_places = result_of(options);
  core::require_memory(ctx, ops::result_bytes(task) + kernels::backend_of(ctx).lof().bytes(ctx, task).host, "lof");
  const auto start = std::chrono::steady_clock::now();
  score_task(ctx, task, of_places);

  Lof found = result_of(options);
  found.plan = made.graph.plan;
  found.stats = made.graph.stats;
  found.caps = of_places.caps;
  const auto spread_out = [&](const std::vector<double>& values, std::vector<double>& to) {
    if (values.empty()) return;
    to.resize(places.of_row.size());
    for (std::size_t row = 0; row < to.size(); ++row) to[row] = values[static_cast<std::size_t>(places.of_row[row])];
  };
  spread_out(of_places.scores, found.scores);
  spread_out(of_places.k_distances, found.k_distances);
  spread_out(of_places.densities, found.densities);
  for (const std::int64_t rows : places.rows) found.copied += rows > options.k ? rows : 0;
  finish(ctx, start, found);
  return found;
}

}  // namespace

Lof lof(const Context& ctx, const NeighborGraph& graph, const LofOptions& options) try {
  const core::Entry entry;
  return lof_of_graph(ctx, graph, nullptr, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Lof lof(const Context& ctx, const NeighborGraph& graph, const TableView& table, const LofOptions& options) try {
  const core::Entry entry;
  return lof_of_graph(ctx, graph, &table, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Lof lof(const Context& ctx, const Index& index, const LofOptions& options) try {
  const core::Entry entry;
  ops::check_lof_options(options);
  ops::check_lof_k(options, index.rows());
  if (ops::uses_places(options)) return lof_of_places(ctx, index, options);
  LofJob job = plan_job(ctx, kernels::prepared_of(index), nullptr, nullptr, options);
  Lof found = result_of(options);
  run_job(ctx, job, found);
  finish(ctx, std::chrono::steady_clock::now(), found);
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Lof lof(const Context& ctx, const TableView& table, const LofOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  ops::check_lof_options(options);
  ops::check_lof_k(options, table.rows());
  return ops::with_index(ctx, table, [&](const Index& index) { return lof(ctx, index, options); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<double> novelty(const Context& ctx, const Index& index, const Lof& model, const TableView& queries) try {
  const core::Entry entry;
  ops::check_lof_model(model, index.rows());
  LofOptions options = model.options;
  options.novelty = false;
  Lof found = result_of(options);
  kernels::LofModel known{model.k_distances, model.densities, model.caps};
  if (ops::uses_places(options)) {
    check_table(ctx, queries, "queries");
    ops::check_places(index.table());
    ops::check_places(queries);
    const ops::Places places = ops::places_of(ctx, index.table());
    const ops::PlaceGraph made = ops::place_graph(ctx, index.table(), places, &queries, options);
    std::vector<double> k_distances;
    std::vector<double> densities;
    for (const std::int64_t row : places.first) {
      k_distances.push_back(model.k_distances[static_cast<std::size_t>(row)]);
      if (!model.densities.empty()) densities.push_back(model.densities[static_cast<std::size_t>(row)]);
    }
    known = {k_distances, densities, model.caps};
    LofTask task = ops::task_of(options, made.graph.rows);
    ops::take_graph(made.graph, task);
    task.near.weights = made.weights.data();
    task.model = &known;
    score_task(ctx, task, found);
  } else {
    LofJob job = plan_job(ctx, kernels::prepared_of(index), &queries, &known, options);
    run_job(ctx, job, found);
  }
  ops::require_numbers(found.scores, "queries");
  if (options.score == OutlierScore::loop) ops::make_probabilities(ctx, model.spread, found.scores);
  return std::move(found.scores);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_lof(const Context& ctx, const TableView& table, const LofOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  ops::check_lof_options(options);
  ops::check_lof_k(options, table.rows());
  const kernels::Backend& backend = kernels::backend_of(ctx);
  LofTask task = ops::task_of(options, table.rows());
  if (core::needs_table(options.score)) task.table = table;
  const kernels::MemoryNeed bytes = backend.lof().bytes(ctx, task);
  ops::SearchRequest request = request_of(options, nullptr, ops::result_bytes(task) + bytes.host);
  request.task.lists_stay = backend.lof().lists_stay(task);
  Plan plan = ops::plan_search(ctx, table, request);
  plan.device_memory += bytes.device;
  return plan;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
