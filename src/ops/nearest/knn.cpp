// knn, radius and count: check the arguments, plan, call the backend (contract clauses 5, 6, 7, 9).
#include "vicinal/knn.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "backend/backend.hpp"
#include "backend/index_access.hpp"
#include "backend/nearest.hpp"
#include "core/entry.hpp"
#include "core/list_room.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "core/seconds.hpp"
#include "formulas/nearest/radius.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/nearest/plan.hpp"
#include "ops/nearest/search.hpp"

namespace vicinal {
namespace {

using kernels::Collect;
using kernels::NearestTask;

using ops::group_bytes;
using ops::has_bit;
using ops::Job;
using ops::SearchRequest;

void check_common(const Context& ctx, const TableView& table, const TableView& queries, const NearestTask& task) {
  const std::int64_t n = table.rows();
  check_memory(ctx, table, "table");  // an index may have been made on another device
  if (!task.self) {
    check_table(ctx, queries, "queries");
    if (queries.cols() != table.cols()) {
      refuse("queries: " + std::to_string(queries.cols()) + " columns, but the table has " +
             std::to_string(table.cols()));
    }
  }
  if (task.metric == Metric::minkowski && !(task.p >= 1 && std::isfinite(task.p))) {
    refuse("p: must be finite and at least 1 for the minkowski metric");
  }
  if (!task.filter.empty() && static_cast<std::int64_t>(task.filter.size()) != (n + 63) / 64) {
    refuse("filter: " + std::to_string(task.filter.size()) + " words, but a table of " + std::to_string(n) +
           " rows needs " + std::to_string((n + 63) / 64));
  }
  if (task.exclude.empty()) return;
  if (static_cast<std::int64_t>(task.exclude.size()) != queries.rows()) {
    refuse("exclude: " + std::to_string(task.exclude.size()) + " ids for " + std::to_string(queries.rows()) +
           " queries");
  }
  for (std::size_t i = 0; i < task.exclude.size(); ++i) {
    if (task.exclude[i] < -1 || task.exclude[i] >= n) {
      refuse("exclude: entry " + std::to_string(i) + " is " + std::to_string(task.exclude[i]) +
             ", not -1 or a row of the table (0 to " + std::to_string(n - 1) + ")");
    }
  }
}

// The fewest rows any query may choose from.
std::int64_t fewest_candidates(std::int64_t n, std::int64_t m, const NearestTask& task) {
  const std::int64_t eligible = kernels::eligible_rows(task.filter, n);
  std::int64_t fewest = eligible;
  const std::int64_t most_out = (task.has_own_rows() ? 1 : 0) + (task.exclude.empty() ? 0 : 1);
  // Mostly the first queries decide.
  for (std::int64_t q = 0; q < m && fewest > eligible - most_out; ++q) {
    const std::int64_t own = task.own_row() + q;
    std::int64_t out = own >= 0 && own < n && has_bit(task.filter, own) ? 1 : 0;
    if (!task.exclude.empty()) {
      const std::int64_t id = task.exclude[static_cast<std::size_t>(q)];
      out += id >= 0 && id != own && has_bit(task.filter, id) ? 1 : 0;
    }
    fewest = std::min(fewest, eligible - out);
  }
  return fewest;
}

void check_k(std::int64_t n, std::int64_t m, const NearestTask& task) {
  const std::int64_t k = task.k;
  if (k < 1) refuse("k: is " + std::to_string(k) + ", must be at least 1");
  const std::int64_t largest = fewest_candidates(n, m, task);
  if (k > largest) ops::refuse_large_k(k, largest, n, {task.self, !task.filter.empty(), !task.exclude.empty()});
}

void check_radii(std::int64_t m, const NearestTask& task) {
  const bool signs = task.metric == Metric::inner_product;
  if (task.radii.empty()) {
    if (std::isnan(task.radius)) refuse("radius: is not a number");
    if (task.radius < 0 && !signs) refuse("radius: is negative");
    return;
  }
  if (static_cast<std::int64_t>(task.radii.size()) != m) {
    refuse("radii: " + std::to_string(task.radii.size()) + " for " + std::to_string(m) + " queries");
  }
  for (std::size_t i = 0; i < task.radii.size(); ++i) {
    const double radius = task.radii[i];
    if (std::isnan(radius)) refuse("radii: that of query " + std::to_string(i) + " is not a number");
    if (radius < 0 && !signs) refuse("radii: that of query " + std::to_string(i) + " is negative");
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
    refuse(method + " finds the k nearest neighbors only; for a radius use automatic, fused, direct or kdtree");
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

void choose_method(const Context& ctx, Method asked, double table_largest, NearestTask& task, Plan& plan) {
  const kernels::Backend& backend = kernels::backend_of(ctx);
  if (task.screen != ScreenType::automatic && asked != Method::fused) {
    refuse("screen: " + std::string(name_of(task.screen)) + " is a choice of method fused, but the method is " +
           std::string(name_of(asked)));
  }
  if (asked == Method::kdtree) check_tree(ctx, task);
  if (asked == Method::fused && !backend.nearest().can_fuse(task)) refuse_fused(ctx, task);
  if (kernels::is_of_a_paper(asked)) check_paper(ctx, task, asked);
  if (asked == Method::automatic) {
    const kernels::Choice choice = backend.nearest().choose(ctx, task);
    task.method = choice.method;
    plan.reason = choice.reason;
  } else {
    task.method = asked;
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

bool has_tree(const Context& ctx, const kernels::Prepared& index) {
  return index.tree.get(kernels::backend_of(ctx).device()) != nullptr;
}

// Host memory of the tree that an index does not have yet.
std::uint64_t tree_bytes(const Context& ctx, const kernels::Prepared& index) {
  return has_tree(ctx, index) ? 0 : kernels::backend_of(ctx).nearest().tree_bytes(index);
}

// Host memory of a search beyond its result.
std::uint64_t scratch_of(const Context& ctx, const NearestTask& task) {
  return kernels::backend_of(ctx).nearest().host_bytes(ctx, task) + group_bytes(*task.index) +
         (task.method == Method::kdtree ? tree_bytes(ctx, *task.index) : 0);
}

// Takes a tree if it takes less than the brute force that was chosen, which is found out by trying
// (ops/nearest/plan.hpp), and if it fits into memory beside a result of `output` bytes. The index's own tree is built
// to be tried only if it also fits beside brute force: it stays if that wins.
void consider_tree(const Context& ctx, std::uint64_t output, NearestTask& task, Plan& plan) {
  const double brute = brute_seconds(ctx, task);
  NearestTask in_tree = task;
  in_tree.method = Method::kdtree;
  const bool fits = output + scratch_of(ctx, in_tree) <= ctx.memory_limit();
  const bool may_lose = output + scratch_of(ctx, task) + tree_bytes(ctx, *task.index) <= ctx.memory_limit();
  const auto forecast = forecast_tree(ctx, task, brute, fits && may_lose);
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

// How many of the task's screens keep their packed rows in the index beside `bytes` of the call's own: as many as the
// limit allows. What does not fit beside them is dropped, or with `drops` all that is not kept; `held` counts what the
// index then has. A search that does not fit the limit by itself drops nothing: it is refused.
int kept_screens(const Context& ctx, const NearestTask& task, bool keeps, bool drops, std::uint64_t bytes,
                 std::uint64_t& held) {
  const kernels::PackedSlot& packed = task.index->packed;
  const std::uint64_t limit = ctx.memory_limit();
  std::vector<kernels::PackedKind> kinds;
  held = packed.noted_bytes();
  if (bytes > limit || held > limit - bytes) return 0;
  if (keeps) {
    for (const kernels::PackedNeed& need : kernels::backend_of(ctx).nearest().packed_needs(ctx, task)) {
      if (!need.kind.pruned && !packed.keeps()) break;
      if (need.bytes > limit - bytes - held) break;
      held += need.bytes;
      kinds.push_back(need.kind);
    }
  }
  std::uint64_t others = 0;
  for (const auto& table : packed.all()) {
    if (std::find(kinds.begin(), kinds.end(), table->kind()) == kinds.end()) others += table->bytes();
  }
  if (others > 0 && (drops || others > limit - bytes - held)) {
    packed.drop_others(kinds);
    others = 0;
  }
  held += others;
  return static_cast<int>(kinds.size());
}

/// Whether a sample of the rows may be looked at, beside `bytes` of the call's own and what the index has.
bool has_room_to_survey(const Context& ctx, const NearestTask& task, std::uint64_t bytes) {
  const kernels::Prepared& index = *task.index;
  const kernels::NearestBackend& backend = kernels::backend_of(ctx).nearest();
  const std::uint64_t survey = backend.pruning_bytes(task);
  const std::uint64_t held = index.packed.bytes() + index.packed.noted_bytes() + group_bytes(index) +
                             (has_tree(ctx, index) ? backend.tree_bytes(index) : 0);
  return survey <= ctx.memory_limit() / 4 && bytes + held + survey <= ctx.memory_limit();
}

SearchRequest within(const TableView* queries, const RadiusOptions& options) {
  return ops::request_of(queries, options, Collect::radius);
}

/// A request of `knn`, whose lists may be short.
SearchRequest nearest_of(const TableView* queries, const KnnOptions& options) {
  SearchRequest request = ops::request_of(queries, options);
  request.takes_short_lists = true;
  return request;
}

/// A request that was checked for searches of this table.
SearchRequest checked(const Context& ctx, const TableView& table, SearchRequest request) {
  check_table(ctx, table, "table");
  request.check(ctx, table);
  return request;
}

NeighborCounts count_within(const Context& ctx, const Index& index, const TableView* queries,
                            const RadiusOptions& options) {
  NeighborCounts counts;
  SearchRequest request = ops::request_of(queries, options, Collect::count);
  NeighborGraph graph = ops::find_neighbors(ctx, index, request, &counts.counts);
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

std::uint64_t group_bytes(const kernels::Prepared& index) {
  const std::size_t groups = index.distinct.size() + index.member_offsets.size() + index.members.size();
  return groups * sizeof(std::int64_t);
}

Plan plan_search(const Context& ctx, const TableView& table, SearchRequest& request) {
  kernels::Prepared unread;  // the plan is made from shapes, and the values are not looked at
  unread.table = table;
  unread.centre.assign(static_cast<std::size_t>(table.cols()), 0);
  const std::uint64_t prepare_memory = kernels::backend_of(ctx).nearest().prepare_bytes(ctx, table);
  // What a whole operation takes of a device is that of the method that is chosen in the end.
  const auto device_bytes = std::exchange(request.device_bytes, {});
  Job job = plan_job(ctx, unread, request, false);
  job.plan.memory += prepare_memory;
  request.device_bytes = device_bytes;
  const bool may_try = request.method == Method::automatic && may_use_tree(ctx, job.task, job.plan.expected_seconds);
  const bool tries = may_try && !is_shape(table) && prepare_memory < ctx.memory_limit();
  if (device_bytes && !tries) job.plan.device_memory = device_bytes(job.task);
  if (!may_try) return job.plan;
  // A tree may be chosen, or tried and kept beside brute force. The memory of either is planned, whatever the search
  // will do, so that the number does not depend on the values; but where the limit leaves no room, it does without.
  NearestTask in_tree = job.task;
  in_tree.method = Method::kdtree;
  const std::uint64_t without = job.plan.memory;
  const std::uint64_t with = without - scratch_of(ctx, job.task) + scratch_of(ctx, in_tree);
  const std::uint64_t beside = std::max(with, without + tree_bytes(ctx, unread));
  if (tries) {
    const Index index(ctx, table, {.packed = Packing::never});
    job = plan_job(ctx, kernels::prepared_of(index), request, true);
  }
  job.plan.memory = without;
  for (const std::uint64_t bytes : {with, beside}) {
    if (bytes <= ctx.memory_limit() || without > ctx.memory_limit()) {
      job.plan.memory = std::max(job.plan.memory, bytes);
    }
  }
  return job.plan;
}

void refuse_large_k(std::int64_t k, std::int64_t largest, std::int64_t n, const LeftOut& left_out) {
  std::string why = left_out.own_rows ? "; a row is not its own neighbor" : "";
  if (left_out.by_filter) why += "; the filter leaves out the rest";
  if (left_out.by_exclude) why += "; excluded rows do not count";
  refuse("k: is " + std::to_string(k) + ", but at most " + std::to_string(largest) + " of the " + std::to_string(n) +
         " table rows can be neighbors" + why);
}

void check_max_radius(double radius, Metric metric) {
  if (std::isnan(radius)) refuse("max_radius: is not a number");
  if (radius < 0 && metric != Metric::inner_product) refuse("max_radius: is negative");
}

void cut_lists(const Context& ctx, double max_radius, NeighborGraph& graph) {
  core::Poll poll(ctx);
  graph.offsets.reserve(static_cast<std::size_t>(graph.rows) + 1);
  graph.offsets.push_back(0);
  std::size_t kept = 0;
  for (std::int64_t row = 0; row < graph.rows; ++row) {
    const auto end = static_cast<std::size_t>((row + 1) * graph.k);
    for (auto at = static_cast<std::size_t>(row * graph.k); at < end; ++at) {
      poll.step();
      if (graph.ids[at] < 0 || !(graph.distances[at] <= max_radius)) break;
      graph.ids[kept] = graph.ids[at];
      graph.distances[kept++] = graph.distances[at];
    }
    graph.offsets.push_back(static_cast<std::int64_t>(kept));
  }
  graph.ids.resize(kept);
  graph.distances.resize(kept);
  graph.k = 0;
}

SearchRequest request_of(const TableView* queries, const KnnOptions& options) {
  SearchRequest request;
  NearestTask& task = request.task;
  task.self = queries == nullptr;
  if (!task.self) task.queries = *queries;
  task.metric = options.metric;
  task.p = options.p;
  task.screen = options.screen;
  task.k = options.k;
  task.filter = options.filter;
  task.exclude = options.exclude;
  request.method = options.method;
  request.max_radius = options.max_radius;
  return request;
}

SearchRequest request_of(const TableView* queries, const RadiusOptions& options, Collect collect) {
  SearchRequest request = request_of(queries, KnnOptions{0, options.metric, options.p, options.method, options.screen,
                                                         options.filter, options.exclude});
  request.task.collect = collect;
  request.task.radius = options.radius;
  request.task.radii = options.radii;
  request.task.by_id = options.order == RadiusOrder::id;
  return request;
}

void SearchRequest::check(const Context& ctx, const TableView& table) {
  if (checked_) return;
  const TableView& queries = task.self ? table : task.queries;
  check_common(ctx, table, queries, task);
  if (task.collect == Collect::k_list) {
    check_k(table.rows(), queries.rows(), task);
    check_max_radius(max_radius, task.metric);
    if (max_radius < kInfinity && !takes_short_lists) {
      refuse("max_radius: leaves lists shorter than k, which only knn returns; leave it out");
    }
  } else {
    check_radii(queries.rows(), task);
    if (!task.radii.empty()) task.radius = *std::max_element(task.radii.begin(), task.radii.end());
  }
  checked_ = true;
}

std::int64_t SearchRequest::fewest_candidates(const Context& ctx, const TableView& table) const {
  const TableView& queries = task.self ? table : task.queries;
  check_common(ctx, table, queries, task);
  return vicinal::fewest_candidates(table.rows(), queries.rows(), task);
}

Job plan_job(const Context& ctx, const kernels::Prepared& index, SearchRequest& request, bool trial) {
  request.check(ctx, index.table);
  Job job;
  job.task = request.task;
  NearestTask& task = job.task;
  task.index = &index;
  if (task.self) task.queries = index.table;
  const std::int64_t m = task.queries.rows();
  std::uint64_t output = static_cast<std::uint64_t>(m) * 8;
  if (!task.radii.empty()) output *= 2;  // as keys
  if (task.collect == Collect::k_list) {
    if (task.k > std::numeric_limits<std::int64_t>::max() / 16 / m) {
      throw Error(ErrorCode::over_memory, "knn: m * k results do not fit any memory");
    }
    output = 0;
    if (request.max_radius < kInfinity) {
      task.max_key = core::largest_key_within(task.metric, request.max_radius, task.p);
      output += (static_cast<std::uint64_t>(m) + 1) * 8;
    }
  }
  const kernels::Backend& backend = kernels::backend_of(ctx);
  const auto list_bytes = [&] {  // by the method: a backend of several devices divides the work by it
    using Lists = SearchRequest::Lists;
    job.holds_lists = request.lists == Lists::held ||
                      (request.lists == Lists::passed_on && backend.nearest().holds_lists(task, request.voting));
    const bool counts = task.collect == Collect::k_list && job.holds_lists;
    return counts ? static_cast<std::uint64_t>(m) * static_cast<std::uint64_t>(task.k) * 16 : 0;
  };
  const bool may_fuse = request.method == Method::automatic || request.method == Method::fused;
  if (request.keeps_packed && index.packed.prunes() && may_fuse &&
      has_room_to_survey(ctx, task, output + request.bytes_beside)) {
    task.pruned = backend.nearest().prunes(ctx, task);
  }
  bool keeps = request.keeps_packed && (index.packed.keeps() || task.pruned);
  task.kept_screens = keeps ? 1 : 0;  // for the choice: how many, the memory decides
  choose_method(ctx, request.method, largest_magnitude(index), task, job.plan);
  const bool rated = task.method == Method::fused || task.method == Method::direct;
  job.plan.expected_seconds = rated ? brute_seconds(ctx, task) : 0;
  const bool has_own_tree = has_tree(ctx, index);
  std::string of_tree;  // what is said of a tree that was not taken
  if (trial && request.method == Method::automatic) {
    const std::size_t size = job.plan.reason.size();
    consider_tree(ctx, output + list_bytes() + request.bytes_beside, task, job.plan);
    if (task.method != Method::kdtree) of_tree = job.plan.reason.substr(size);
  }
  output += list_bytes() + request.bytes_beside;
  const auto bytes_beside_packed = [&] {
    const bool makes_tree = !has_own_tree && (task.method == Method::kdtree || has_tree(ctx, index));
    return output + backend.nearest().host_bytes(ctx, task) + group_bytes(index) +
           (makes_tree ? backend.nearest().tree_bytes(index) : 0);
  };
  std::uint64_t held = 0;
  task.kept_screens = kept_screens(ctx, task, keeps, request.drops_packed, bytes_beside_packed(), held);
  if (task.method == Method::kdtree) task.pruned = false;
  if (task.pruned && task.kept_screens == 0) {  // no room for them
    task.pruned = false;
    keeps = request.keeps_packed && index.packed.keeps();
    task.kept_screens = keeps ? 1 : 0;
    choose_method(ctx, request.method, largest_magnitude(index), task, job.plan);
    job.plan.reason += of_tree;
    task.kept_screens = kept_screens(ctx, task, keeps, request.drops_packed, bytes_beside_packed(), held);
  }
  if (keeps && task.kept_screens == 0 && task.method == Method::fused) {  // a choice that counted on it
    choose_method(ctx, request.method, largest_magnitude(index), task, job.plan);
    job.plan.reason += of_tree;
    if (task.method == Method::direct) job.plan.expected_seconds = brute_seconds(ctx, task);
    kept_screens(ctx, task, false, request.drops_packed, bytes_beside_packed(), held);
  }
  task.bytes_beside = request.bytes_beside + held;  // lists that grow have no room there
  job.plan.screens = backend.nearest().screens(ctx, task);
  job.plan.device = ctx.device();
  job.plan.isa = backend.isa(ctx);
  job.plan.threads = ctx.threads();
  const kernels::MemoryNeed bytes = backend.nearest().search_bytes(ctx, task);
  job.plan.memory = output + bytes.host + group_bytes(index) + held;
  const bool gets_tree = task.method == Method::kdtree || has_tree(ctx, index);
  if (gets_tree && !has_own_tree) job.plan.memory += backend.nearest().tree_bytes(index);
  job.plan.device_memory = request.device_bytes ? request.device_bytes(task) : bytes.device;
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

NeighborGraph find_neighbors(const Context& ctx, const Index& index, SearchRequest& request,
                             std::vector<std::int64_t>* counts) {
  request.keeps_packed = true;
  Job job = plan_job(ctx, kernels::prepared_of(index), request, true);
  NearestTask& task = job.task;
  const std::string_view own = task.collect == Collect::k_list ? "knn" : "radius search";
  core::require_memory(ctx, job.plan.memory, request.operation.empty() ? own : request.operation);
  kernels::backend_of(ctx).nearest().check_queries(ctx, task);
  NeighborGraph graph;
  graph.rows = task.queries.rows();
  graph.table_rows = index.rows();
  graph.metric = task.metric;
  graph.p = task.p;
  graph.plan = job.plan;
  std::vector<std::int64_t> unused;
  std::vector<std::int64_t>& numbers = counts != nullptr ? *counts : unused;
  if (task.collect == Collect::k_list) {
    graph.k = task.k;
    core::resize_lists(ctx, graph.ids, graph.distances, graph.rows * task.k);
  } else if (task.collect == Collect::count) {
    numbers.assign(static_cast<std::size_t>(graph.rows), 0);
  }
  kernels::NearestResult result{graph.ids, graph.distances, graph.offsets, numbers, graph.stats};
  const double seconds = run_job(ctx, job, [&] {
    try {
      kernels::backend_of(ctx).nearest().search(ctx, task, result);
    } catch (const Error& error) {
      // Lists within a radius may need the memory of the packed rows; no others grow.
      const bool counts_packed = task.collect == Collect::radius && task.bytes_beside > request.bytes_beside;
      if (error.code() != ErrorCode::over_memory || !counts_packed) throw;
      task.index->packed.drop_others({});
      task.kept_screens = 0;
      task.bytes_beside = request.bytes_beside;
      std::vector<std::int64_t>().swap(graph.ids);
      std::vector<double>().swap(graph.distances);
      graph.stats = {};
      kernels::backend_of(ctx).nearest().search(ctx, task, result);
    }
  });
  if (request.max_radius < kInfinity && task.collect == Collect::k_list) cut_lists(ctx, request.max_radius, graph);
  graph.stats.search_seconds = seconds;
  return graph;
}

SearchRequest checked_request(const Context& ctx, const TableView& table, const TableView* queries,
                              const KnnOptions& options) {
  return checked(ctx, table, request_of(queries, options));
}

}  // namespace ops

NeighborGraph knn(const Context& ctx, const TableView& table, const KnnOptions& options) try {
  const core::Entry entry;
  SearchRequest request = checked(ctx, table, nearest_of(nullptr, options));
  return ops::with_index(ctx, table, [&](const Index& index) { return ops::find_neighbors(ctx, index, request); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph knn(const Context& ctx, const TableView& table, const TableView& queries, const KnnOptions& options) try {
  const core::Entry entry;
  SearchRequest request = checked(ctx, table, nearest_of(&queries, options));
  return ops::with_index(ctx, table, [&](const Index& index) { return ops::find_neighbors(ctx, index, request); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph knn(const Context& ctx, const Index& index, const KnnOptions& options) try {
  const core::Entry entry;
  SearchRequest request = nearest_of(nullptr, options);
  return ops::find_neighbors(ctx, index, request);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph knn(const Context& ctx, const Index& index, const TableView& queries, const KnnOptions& options) try {
  const core::Entry entry;
  SearchRequest request = nearest_of(&queries, options);
  return ops::find_neighbors(ctx, index, request);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph radius(const Context& ctx, const TableView& table, const RadiusOptions& options) try {
  const core::Entry entry;
  SearchRequest request = within(nullptr, options);
  return ops::with_index(ctx, table, [&](const Index& index) { return ops::find_neighbors(ctx, index, request); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph radius(const Context& ctx, const TableView& table, const TableView& queries,
                     const RadiusOptions& options) try {
  const core::Entry entry;
  SearchRequest request = within(&queries, options);
  return ops::with_index(ctx, table, [&](const Index& index) { return ops::find_neighbors(ctx, index, request); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph radius(const Context& ctx, const Index& index, const RadiusOptions& options) try {
  const core::Entry entry;
  SearchRequest request = within(nullptr, options);
  return ops::find_neighbors(ctx, index, request);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph radius(const Context& ctx, const Index& index, const TableView& queries,
                     const RadiusOptions& options) try {
  const core::Entry entry;
  SearchRequest request = within(&queries, options);
  return ops::find_neighbors(ctx, index, request);
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

Plan plan_knn(const Context& ctx, const TableView& table, const TableView* queries, const KnnOptions& options) try {
  const core::Entry entry;
  SearchRequest request = checked(ctx, table, nearest_of(queries, options));
  return ops::plan_search(ctx, table, request);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_radius(const Context& ctx, const TableView& table, const TableView* queries,
                 const RadiusOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  SearchRequest request = within(queries, options);
  return ops::plan_search(ctx, table, request);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
