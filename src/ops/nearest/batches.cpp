// radius_batches: lists within a radius in as much memory as there is (docs: include/vicinal/knn.hpp; contract clause
// 7). Room for lists is planned beside the search: enough for one list that has every row of the table, and for many
// short ones. The backend cuts batches so that they fit into it.
#include <algorithm>
#include <chrono>
#include <string>

#include "backend/backend.hpp"
#include "backend/index_access.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/seconds.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/nearest/search.hpp"

namespace vicinal {
namespace ops {
namespace {

// A neighbor takes 16 bytes. While a list is found it has up to twice the room that it needs, in parts of several
// threads before it is joined from them; then it is copied once, as arrays of ids and of distances.
constexpr std::uint64_t kNeighborBytes = 64;
constexpr std::uint64_t kListBytes = std::uint64_t{64} << 10;  // of one list, whatever it holds
constexpr std::uint64_t kUsualRoom = std::uint64_t{64} << 20;  // more is no quicker, unless one list needs it

/// Bytes for lists with which no search fails and none is slow.
std::uint64_t room_for_lists(std::int64_t n, std::int64_t m) {
  const std::uint64_t one = static_cast<std::uint64_t>(n) * kNeighborBytes + kListBytes;
  const std::uint64_t many =
      kUsualRoom / one >= static_cast<std::uint64_t>(m) ? static_cast<std::uint64_t>(m) * one : kUsualRoom;
  return std::max(one, many);
}

std::uint64_t room_for_lists(const SearchRequest& request, std::int64_t n) {
  return room_for_lists(n, request.task.self ? n : request.task.queries.rows());
}

/// Plans by `make(bytes_beside, is_least)` with room for any lists, or if that exceeds the limit with the least that
/// lists may fit: then packed rows would take the room that lists need. Returns the room, and in `enough` the memory of
/// the plan with room for any.
template <class Make>
std::uint64_t plan_room(const Context& ctx, std::uint64_t whole, std::uint64_t beside, std::uint64_t* enough,
                        const Make& make) {
  *enough = make(beside + whole, false);
  if (*enough <= ctx.memory_limit()) return whole;
  return make(beside + kListBytes, true) <= ctx.memory_limit() ? kListBytes : 0;
}

}  // namespace

Plan plan_batches(const Context& ctx, const TableView& table, SearchRequest& request) {
  request.task.in_batches = true;
  Plan plan;
  std::uint64_t enough = 0;
  const std::uint64_t beside = request.bytes_beside;
  const std::uint64_t room = plan_room(ctx, room_for_lists(request, table.rows()), beside, &enough,
                                       [&](std::uint64_t bytes, bool /*is_least*/) {
                                         request.bytes_beside = bytes;
                                         plan = plan_search(ctx, table, request);
                                         return plan.memory;
                                       });
  request.bytes_beside = beside;
  plan.memory = room > 0 ? std::min(enough, ctx.memory_limit()) : enough;
  return plan;
}

RadiusSummary find_in_batches(const Context& ctx, const Index& index, SearchRequest& request, const TakeLists& take) {
  const std::string_view operation = request.operation.empty() ? "radius search" : request.operation;
  request.task.in_batches = true;
  Job job;
  std::uint64_t enough = 0;
  const std::uint64_t beside = request.bytes_beside;
  const auto make = [&](std::uint64_t bytes, bool is_least) {
    request.bytes_beside = bytes;
    request.keeps_packed = !is_least;
    request.drops_packed = is_least;
    job = plan_job(ctx, kernels::prepared_of(index), request, true);
    return job.plan.memory;
  };
  std::uint64_t room = plan_room(ctx, room_for_lists(request, index.rows()), beside, &enough, make);
  request.bytes_beside = beside;
  if (room == 0) core::require_memory(ctx, enough, operation);
  room += ctx.memory_limit() - job.plan.memory;
  job.plan.memory = std::min(enough, ctx.memory_limit());

  const kernels::NearestBackend& backend = kernels::backend_of(ctx).nearest();
  backend.check_queries(ctx, job.task);
  NeighborGraph lists;
  lists.table_rows = index.rows();
  lists.metric = job.task.metric;
  lists.p = job.task.p;
  lists.plan = job.plan;
  RadiusSummary summary{job.task.queries.rows(), index.rows(), 0, job.plan, {}};
  double taking = 0;
  const kernels::Handover handover{room, [&](std::int64_t first) {
                                     const auto start = std::chrono::steady_clock::now();
                                     lists.rows = static_cast<std::int64_t>(lists.offsets.size()) - 1;
                                     summary.neighbors += lists.offsets.back();
                                     take(first, lists);
                                     taking += seconds_since(start);
                                   }};
  std::vector<std::int64_t> unused;
  kernels::NearestResult result{lists.ids, lists.distances, lists.offsets, unused, summary.stats, &handover};
  try {
    const double seconds = run_job(ctx, job, [&] { backend.search(ctx, job.task, result); });
    summary.stats.search_seconds = std::max(0.0, seconds - taking);
  } catch (const kernels::NoRoom&) {
    core::require_memory(ctx, enough, operation);
    throw Error(ErrorCode::internal, std::string(operation) + ": a list did not fit into the memory planned for it");
  }
  return summary;
}

namespace {

void check_take(const TakeLists& take) {
  if (!take) refuse("take: must be a function, but is empty");
}

RadiusSummary batches_of(const Context& ctx, const Index& index, const TableView* queries, const RadiusOptions& options,
                         const TakeLists& take) {
  check_take(take);
  SearchRequest request = request_of(queries, options, kernels::Collect::radius);
  return find_in_batches(ctx, index, request, take);
}

/// Of a table that is prepared here: what is wrong with the arguments is said before that.
RadiusSummary batches_of(const Context& ctx, const TableView& table, const TableView* queries,
                         const RadiusOptions& options, const TakeLists& take) {
  check_table(ctx, table, "table");
  check_take(take);
  SearchRequest request = request_of(queries, options, kernels::Collect::radius);
  request.check(ctx, table);
  return with_index(ctx, table, [&](const Index& index) { return find_in_batches(ctx, index, request, take); });
}

}  // namespace
}  // namespace ops

RadiusSummary radius_batches(const Context& ctx, const TableView& table, const RadiusOptions& options,
                             const TakeLists& take) try {
  const core::Entry entry;
  return ops::batches_of(ctx, table, nullptr, options, take);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

RadiusSummary radius_batches(const Context& ctx, const TableView& table, const TableView& queries,
                             const RadiusOptions& options, const TakeLists& take) try {
  const core::Entry entry;
  return ops::batches_of(ctx, table, &queries, options, take);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

RadiusSummary radius_batches(const Context& ctx, const Index& index, const RadiusOptions& options,
                             const TakeLists& take) try {
  const core::Entry entry;
  return ops::batches_of(ctx, index, nullptr, options, take);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

RadiusSummary radius_batches(const Context& ctx, const Index& index, const TableView& queries,
                             const RadiusOptions& options, const TakeLists& take) try {
  const core::Entry entry;
  return ops::batches_of(ctx, index, &queries, options, take);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_radius_batches(const Context& ctx, const TableView& table, const TableView* queries,
                         const RadiusOptions& options) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  ops::SearchRequest request = ops::request_of(queries, options, kernels::Collect::radius);
  return ops::plan_batches(ctx, table, request);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
