// knn, radius and count: check the arguments, plan, call the backend (contract clauses 5, 6, 7, 9).
#include "vicinal/knn.hpp"

#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "backend/backend.hpp"
#include "backend/index_access.hpp"
#include "backend/nearest.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/seconds.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/nearest/plan.hpp"
#include "ops/nearest/search.hpp"

namespace vicinal {
namespace {

using kernels::Collect;
using kernels::NearestTask;

using ops::Asked;
using ops::Common;
using ops::Job;

std::int64_t count_bits(Bitmap filter, std::int64_t n) {
  std::int64_t bits = 0;
  for (std::size_t w = 0; w < filter.size(); ++w) {
    std::uint64_t word = filter[w];
    if (static_cast<std::int64_t>(w) == n / 64) word &= (std::uint64_t{1} << (n % 64)) - 1;
    bits += std::popcount(word);
  }
  return bits;
}

bool has_bit(Bitmap filter, std::int64_t id) {
  return filter.empty() || (filter[static_cast<std::size_t>(id >> 6)] >> (id & 63) & 1) != 0;
}

void check_common(const Context& ctx, const TableView& table, const TableView& queries, bool self,
                  const Common& options) {
  const std::int64_t n = table.rows();
  check_memory(ctx, table, "table");  // an index may have been made on another device
  if (!self) {
    check_table(ctx, queries, "queries");
    if (queries.cols() != table.cols()) {
      refuse("queries: " + std::to_string(queries.cols()) + " columns, but the table has " +
             std::to_string(table.cols()));
    }
  }
  if (options.metric == Metric::minkowski && !(options.p >= 1 && std::isfinite(options.p))) {
    refuse("p: must be finite and at least 1 for the minkowski metric");
  }
  if (!options.filter.empty() && static_cast<std::int64_t>(options.filter.size()) != (n + 63) / 64) {
    refuse("filter: " + std::to_string(options.filter.size()) + " words, but a table of " + std::to_string(n) +
           " rows needs " + std::to_string((n + 63) / 64));
  }
  if (options.exclude.empty()) return;
  if (static_cast<std::int64_t>(options.exclude.size()) != queries.rows()) {
    refuse("exclude: " + std::to_string(options.exclude.size()) + " ids for " + std::to_string(queries.rows()) +
           " queries");
  }
  for (std::size_t i = 0; i < options.exclude.size(); ++i) {
    if (options.exclude[i] < -1 || options.exclude[i] >= n) {
      refuse("exclude: entry " + std::to_string(i) + " is " + std::to_string(options.exclude[i]) +
             ", not -1 or a row of the table (0 to " + std::to_string(n - 1) + ")");
    }
  }
}

// The fewest rows any query may choose from.
std::int64_t fewest_candidates(std::int64_t n, std::int64_t m, bool self, const Common& options) {
  const std::int64_t eligible = options.filter.empty() ? n : count_bits(options.filter, n);
  std::int64_t fewest = eligible;
  if (!self && options.exclude.empty()) return fewest;
  for (std::int64_t q = 0; q < m; ++q) {
    std::int64_t out = self && has_bit(options.filter, q) ? 1 : 0;
    if (!options.exclude.empty()) {
      const std::int64_t id = options.exclude[static_cast<std::size_t>(q)];
      out += id >= 0 && !(self && id == q) && has_bit(options.filter, id) ? 1 : 0;
    }
    fewest = std::min(fewest, eligible - out);
  }
  return fewest;
}

void check_k(std::int64_t k, std::int64_t n, std::int64_t m, bool self, const Common& options) {
  if (k < 1) refuse("k: is " + std::to_string(k) + ", must be at least 1");
  const std::int64_t largest = fewest_candidates(n, m, self, options);
  if (k > largest) {
    std::string why = self ? "; a row is not its own neighbor" : "";
    if (!options.filter.empty()) why += "; the filter leaves out the rest";
    if (!options.exclude.empty()) why += "; excluded rows do not count";
    refuse("k: is " + std::to_string(k) + ", but at most " + std::to_string(largest) + " of the " + std::to_string(n) +
           " table rows can be neighbors" + why);
  }
}

// Whether a float64 key could overflow for some pair, judged from the largest magnitudes.
double largest_magnitude(const kernels::Prepared& index) {
  double centre = 0;
  for (const double c : index.centre) centre = std::max(centre, std::fabs(c));
  return centre + index.largest;
}

void check_paper(const Context& ctx, const NearestTask& task, Method asked) {
  const std::string method = "method: " + std::string(name_of(asked));
  if (task.collect != Collect::k_list) {
    refuse(method + " finds k nearest neighbors and serves no radius; automatic, fused, direct or kdtree does");
  }
  if (!kernels::backend_of(ctx).nearest().can_use_paper(asked, task.metric, task.queries.cols())) {
    refuse(method + " does not serve the metric " + std::string(name_of(task.metric)) + " with " +
           std::to_string(task.queries.cols()) + " columns on " + ctx.device() + "; automatic or direct does");
  }
  if (task.index->table.is_block_source()) {
    refuse(method + " needs the table in memory, but it comes in blocks; copy it into the index");
  }
}

// Where a method was asked for that does not serve the task.
[[noreturn]] void refuse_fused(const Context& ctx, const NearestTask& task) {
  const std::string screen =
      task.screen == ScreenType::automatic ? "" : " and the screen " + std::string(name_of(task.screen));
  std::string what = std::to_string(task.queries.cols()) + " columns";
  if (ctx.device() != "cpu") {
    what += task.collect == Collect::k_list ? " and k = " + std::to_string(task.k) : " within a radius";
    what += " on " + ctx.device();
  }
  refuse("method: fused does not serve the metric " + std::string(name_of(task.metric)) + screen + " with " + what +
         "; automatic or direct does");
}

void check_tree(const Context& ctx, const NearestTask& task) {
  if (!kernels::cpu_backend().nearest().can_use_tree(task)) {
    refuse("method: kdtree does not serve the metric " + std::string(name_of(task.metric)) +
           ", only euclidean, sqeuclidean, manhattan, chebyshev and minkowski; automatic or direct does");
  }
  if (!kernels::backend_of(ctx).nearest().can_use_tree(task)) {
    const std::string neighbors = task.collect == Collect::k_list ? " and k = " + std::to_string(task.k) : "";
    refuse("method: kdtree does not serve " + std::to_string(task.index->table.rows()) + " rows of " +
           std::to_string(task.queries.cols()) + " columns" + neighbors + " on " + ctx.device() +
           "; automatic or direct does");
  }
  if (task.index->table.is_block_source()) {
    refuse("method: kdtree needs the table in memory, but it comes in blocks; copy it into the index");
  }
}

void choose_method(const Context& ctx, const Common& options, double table_largest, NearestTask& task, Plan& plan) {
  const kernels::Backend& backend = kernels::backend_of(ctx);
  if (options.screen != ScreenType::automatic && options.method != Method::fused) {
    refuse("screen: " + std::string(name_of(options.screen)) + " is a choice of method fused, but the method is " +
           std::string(name_of(options.method)));
  }
  task.screen = options.screen;
  if (options.method == Method::kdtree) check_tree(ctx, task);
  if (options.method == Method::fused && !backend.nearest().can_fuse(task)) refuse_fused(ctx, task);
  if (kernels::is_of_a_paper(options.method)) check_paper(ctx, task, options.method);
  if (options.method == Method::automatic) {
    const kernels::Choice choice = backend.nearest().choose(task);
    task.method = choice.method;
    plan.reason = choice.reason;
  } else {
    task.method = options.method;
    plan.reason = "asked for";
  }
  // Every pair's key must be seen when one might overflow (clause 1). A query far beyond the table is caught by the
  // ladder.
  const double reach = 2 * table_largest * std::sqrt(static_cast<double>(task.queries.cols()));
  if ((task.method == Method::fused || kernels::is_product(task.method)) && !(reach < 0x1p400)) {
    plan.reason = "values so large that keys may overflow: every key is computed";
    task.method = Method::direct;
  }
  plan.method = task.method;
}

// Host memory of an index: its groups, and the tree that a search makes.
std::uint64_t index_bytes(const Context& ctx, const NearestTask& task) {
  const kernels::Backend& backend = kernels::backend_of(ctx);
  const kernels::Prepared& index = *task.index;
  const std::size_t groups = index.distinct.size() + index.member_offsets.size() + index.members.size();
  std::uint64_t bytes = groups * sizeof(std::int64_t);
  if (task.method == Method::kdtree && index.tree.get(backend.device()) == nullptr)
    bytes += backend.nearest().tree_bytes(index);
  return bytes;
}

// Host memory of a search beyond its result.
std::uint64_t scratch_of(const Context& ctx, const NearestTask& task) {
  return kernels::backend_of(ctx).nearest().host_bytes(ctx, task) + index_bytes(ctx, task);
}

// Takes a tree if it takes less than the brute force that was chosen, which is found out by trying
// (ops/nearest/plan.hpp), and if it fits into memory beside a result of `output` bytes.
void consider_tree(const Context& ctx, std::uint64_t output, NearestTask& task, Plan& plan) {
  const double brute = brute_seconds(ctx, task);
  NearestTask in_tree = task;
  in_tree.method = Method::kdtree;
  const bool fits = output + scratch_of(ctx, in_tree) <= ctx.memory_limit();
  const auto forecast = forecast_tree(ctx, task, brute, fits);
  if (!forecast) return;
  const std::string sentence = forecast->sentence(task);
  plan.expected_seconds = forecast->brute_seconds;
  if (forecast->seconds >= forecast->brute_seconds) {
    plan.reason += "; " + sentence;
  } else if (!fits) {
    plan.reason += "; a tree would take less time, but more memory than the limit";
  } else {
    plan.reason = sentence + ", which takes less than looking at every one";
    plan.expected_seconds = forecast->seconds;
    task.method = plan.method = Method::kdtree;
  }
}

NeighborGraph search(const Context& ctx, const kernels::Prepared& index, const TableView* queries,
                     const Common& options, const Asked& asked, std::vector<std::int64_t>* counts) {
  Job job = ops::plan_job(ctx, index, queries, options, asked, true);
  const std::string_view own = asked.collect == Collect::k_list ? "knn" : "radius search";
  core::require_memory(ctx, job.plan.memory, asked.operation.empty() ? own : asked.operation);
  kernels::backend_of(ctx).nearest().check_queries(ctx, job.task);
  NeighborGraph graph;
  graph.rows = job.task.queries.rows();
  graph.table_rows = index.table.rows();
  graph.metric = options.metric;
  graph.p = options.p;
  graph.plan = job.plan;
  std::vector<std::int64_t> unused;
  std::vector<std::int64_t>& numbers = counts != nullptr ? *counts : unused;
  if (asked.collect == Collect::k_list) {
    graph.k = asked.k;
    ops::resize_in_steps(ctx, graph.ids, graph.rows * asked.k);
    ops::resize_in_steps(ctx, graph.distances, graph.rows * asked.k);
  } else if (asked.collect == Collect::count) {
    numbers.assign(static_cast<std::size_t>(graph.rows), 0);
  }
  kernels::NearestResult result{graph.ids, graph.distances, graph.offsets, numbers, graph.stats};
  const double seconds =
      ops::run_job(ctx, job, [&] { kernels::backend_of(ctx).nearest().search(ctx, job.task, result); });
  graph.stats.search_seconds = seconds;
  return graph;
}

NeighborGraph find_k(const Context& ctx, const Index& index, const TableView* queries, const KnnOptions& options) {
  return search(ctx, kernels::prepared_of(index), queries, ops::common_of(options), {.k = options.k}, nullptr);
}

NeighborGraph find_within(const Context& ctx, const Index& index, const TableView* queries,
                          const RadiusOptions& options) {
  return search(ctx, kernels::prepared_of(index), queries, ops::common_of(options),
                {.collect = Collect::radius, .radius = options.radius}, nullptr);
}

NeighborCounts count_within(const Context& ctx, const Index& index, const TableView* queries,
                            const RadiusOptions& options) {
  NeighborCounts counts;
  NeighborGraph graph = search(ctx, kernels::prepared_of(index), queries, ops::common_of(options),
                               {.collect = Collect::count, .radius = options.radius}, &counts.counts);
  counts.plan = graph.plan;
  counts.stats = graph.stats;
  return counts;
}

/// Whether every element of a table is the same one: such a table stands for its shape, and there is nothing to try.
bool is_shape(const TableView& table) {
  return !table.is_block_source() && table.row_stride() == 0 && table.col_stride() == 0 && table.rows() > 1;
}

}  // namespace

namespace ops {

Plan plan_search(const Context& ctx, const TableView& table, const TableView* queries, const Common& options,
                 const Asked& asked) {
  kernels::Prepared unread;  // the plan is made from shapes, and the values are not looked at
  unread.table = table;
  unread.centre.assign(static_cast<std::size_t>(table.cols()), 0);
  const std::uint64_t prepare_memory = kernels::backend_of(ctx).nearest().prepare_bytes(ctx, table);
  Job job = plan_job(ctx, unread, queries, options, asked, false);
  job.plan.memory += prepare_memory;
  if (options.method != Method::automatic || !may_use_tree(ctx, job.task, job.plan.expected_seconds)) return job.plan;
  // A tree may be chosen. Its memory is planned, whether it will be or not, so that the number does not depend on the
  // values; but where the limit leaves no room for it, the search does without.
  NearestTask in_tree = job.task;
  in_tree.method = Method::kdtree;
  const std::uint64_t without = job.plan.memory;
  const std::uint64_t with = without - scratch_of(ctx, job.task) + scratch_of(ctx, in_tree);
  if (!is_shape(table) && prepare_memory < ctx.memory_limit()) {
    const Index index(ctx, table);
    job = plan_job(ctx, kernels::prepared_of(index), queries, options, asked, true);
  }
  job.plan.memory = with <= ctx.memory_limit() || without > ctx.memory_limit() ? std::max(with, without) : without;
  return job.plan;
}

Common common_of(const KnnOptions& o) {
  return {o.metric, o.p, o.method, o.screen, o.filter, o.exclude};
}
Common common_of(const RadiusOptions& o) {
  return {o.metric, o.p, o.method, o.screen, o.filter, o.exclude};
}

Job plan_job(const Context& ctx, const kernels::Prepared& index, const TableView* queries, const Common& options,
             const Asked& asked, bool trial) {
  Job job;
  NearestTask& task = job.task;
  task.index = &index;
  task.self = queries == nullptr;
  task.queries = task.self ? index.table : *queries;
  check_common(ctx, index.table, task.queries, task.self, options);
  task.metric = options.metric;
  task.p = options.p;
  task.collect = asked.collect;
  task.filter = options.filter;
  task.exclude = options.exclude;
  const std::int64_t n = index.table.rows();
  const std::int64_t m = task.queries.rows();
  std::uint64_t output = static_cast<std::uint64_t>(m) * 8;
  if (asked.collect == Collect::k_list) {
    check_k(asked.k, n, m, task.self, options);
    task.k = asked.k;
    if (asked.k > std::numeric_limits<std::int64_t>::max() / 16 / m) {
      throw Error(ErrorCode::over_memory, "knn: m * k results do not fit any memory");
    }
    output = asked.lists_held ? static_cast<std::uint64_t>(m) * static_cast<std::uint64_t>(asked.k) * 16 : 0;
  } else {
    if (std::isnan(asked.radius)) refuse("radius: is not a number");
    if (asked.radius < 0 && options.metric != Metric::inner_product) refuse("radius: is negative");
    task.radius = asked.radius;
  }
  choose_method(ctx, options, largest_magnitude(index), task, job.plan);
  const bool rated = task.method == Method::fused || task.method == Method::direct;
  job.plan.expected_seconds = rated ? brute_seconds(ctx, task) : 0;
  if (trial && options.method == Method::automatic) consider_tree(ctx, output + asked.beside, task, job.plan);
  const kernels::Backend& backend = kernels::backend_of(ctx);
  job.plan.screens = backend.nearest().screens(ctx, task);
  job.plan.device = ctx.device();
  job.plan.isa = backend.isa(ctx);
  job.plan.threads = ctx.threads();
  const kernels::MemoryNeed bytes = backend.nearest().search_bytes(ctx, task);
  job.plan.memory = output + bytes.host + index_bytes(ctx, task) + asked.beside;
  job.plan.device_memory = bytes.device;
  return job;
}

double run_job(const Context& ctx, Job& job, const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  std::shared_ptr<const kernels::Tree> tree;
  if (job.task.method == Method::kdtree) {
    const kernels::Prepared& index = *job.task.index;
    const kernels::Backend& backend = kernels::backend_of(ctx);
    tree = index.tree.get_or_make(
        ctx, [&] { return backend.nearest().build_tree(ctx, index); }, backend.device());
    job.task.tree = tree.get();
  }
  run();
  return seconds_since(start);
}

void check_shapes(const Context& ctx, const TableView& table, const TableView* queries, const KnnOptions& options) {
  check_table(ctx, table, "table");
  const bool self = queries == nullptr;
  const TableView& asked = self ? table : *queries;
  check_common(ctx, table, asked, self, common_of(options));
  check_k(options.k, table.rows(), asked.rows(), self, common_of(options));
}

}  // namespace ops

NeighborGraph knn(const Context& ctx, const TableView& table, const KnnOptions& options) try {
  const core::Entry entry;
  ops::check_shapes(ctx, table, nullptr, options);
  return ops::with_index(ctx, table, [&](const Index& index) { return find_k(ctx, index, nullptr, options); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph knn(const Context& ctx, const TableView& table, const TableView& queries, const KnnOptions& options) try {
  const core::Entry entry;
  ops::check_shapes(ctx, table, &queries, options);
  return ops::with_index(ctx, table, [&](const Index& index) { return find_k(ctx, index, &queries, options); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph knn(const Context& ctx, const Index& index, const KnnOptions& options) try {
  const core::Entry entry;
  return find_k(ctx, index, nullptr, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph knn(const Context& ctx, const Index& index, const TableView& queries, const KnnOptions& options) try {
  const core::Entry entry;
  return find_k(ctx, index, &queries, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph radius(const Context& ctx, const TableView& table, const RadiusOptions& options) try {
  const core::Entry entry;
  return ops::with_index(ctx, table, [&](const Index& index) { return find_within(ctx, index, nullptr, options); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph radius(const Context& ctx, const TableView& table, const TableView& queries,
                     const RadiusOptions& options) try {
  const core::Entry entry;
  return ops::with_index(ctx, table, [&](const Index& index) { return find_within(ctx, index, &queries, options); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph radius(const Context& ctx, const Index& index, const RadiusOptions& options) try {
  const core::Entry entry;
  return find_within(ctx, index, nullptr, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph radius(const Context& ctx, const Index& index, const TableView& queries,
                     const RadiusOptions& options) try {
  const core::Entry entry;
  return find_within(ctx, index, &queries, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborCounts count(const Context& ctx, const Index& index, const RadiusOptions& options) try {
  const core::Entry entry;
  return count_within(ctx, index, nullptr, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborCounts count(const Context& ctx, const Index& index, const TableView& queries,
                     const RadiusOptions& options) try {
  const core::Entry entry;
  return count_within(ctx, index, &queries, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph ops::find_neighbors(const Context& ctx, const Index& index, const TableView* queries,
                                  const Common& options, const Asked& asked) {
  return search(ctx, kernels::prepared_of(index), queries, options, asked, nullptr);
}

Plan plan_knn(const Context& ctx, const TableView& table, const TableView* queries, const KnnOptions& options) try {
  const core::Entry entry;
  ops::check_shapes(ctx, table, queries, options);
  return ops::plan_search(ctx, table, queries, ops::common_of(options), {.k = options.k});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_radius(const Context& ctx, const TableView& table, const TableView* queries,
                 const RadiusOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  return ops::plan_search(ctx, table, queries, ops::common_of(options),
                          {.collect = Collect::radius, .radius = options.radius});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
