// knn, radius and count of a table that is divided among ranks (shard_search.hpp).
#include "vicinal/shards.hpp"

#include "core/entry.hpp"
#include "ops/common/together.hpp"
#include "ops/nearest/shard_search.hpp"

namespace vicinal {
namespace {

/// Calls body(search) with a search that all ranks have agreed on.
template <class Body>
auto with_search(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                 const ops::ShardCall& call, const Body& body) {
  return ops::by_ranks(communicator, [&] {
    ops::ShardSearch search(ctx, communicator, shard, first_row, call);
    return body(search);
  });
}

ops::ShardCall call_of(std::optional<TableView> queries, const KnnOptions& options) {
  ops::ShardCall call;
  call.queries = std::move(queries);
  call.nearest = options;
  return call;
}

ops::ShardCall part_call_of(std::optional<TableView> queries, const KnnOptions& options) {
  ops::ShardCall call = call_of(std::move(queries), options);
  call.as_part = true;
  return call;
}

ops::ShardCall call_of(PartKind kind, std::optional<TableView> queries, const RadiusOptions& options) {
  ops::ShardCall call;
  call.kind = kind;
  call.queries = std::move(queries);
  call.within = options;
  return call;
}

ops::ShardCall part_call_of(PartKind kind, std::optional<TableView> queries, const RadiusOptions& options) {
  ops::ShardCall call = call_of(kind, std::move(queries), options);
  call.as_part = true;
  return call;
}

ops::ShardCall plan_of(ops::ShardCall call) {
  call.is_plan = true;
  return call;
}

std::optional<TableView> optional_of(const TableView* queries) {
  return queries != nullptr ? std::optional<TableView>(*queries) : std::nullopt;
}

const auto kFind = [](ops::ShardSearch& search) { return search.find(); };
const auto kPart = [](ops::ShardSearch& search) { return search.part(); };
const auto kCount = [](ops::ShardSearch& search) { return search.count(); };
const auto kPlan = [](ops::ShardSearch& search) { return search.plan(); };

}  // namespace

NeighborGraph knn(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                  const KnnOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, call_of(std::nullopt, options), kFind);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph knn(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                  const TableView& queries, const KnnOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, call_of(queries, options), kFind);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart knn_part(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                      const KnnOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, part_call_of(std::nullopt, options), kPart);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart knn_part(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                      const TableView& queries, const KnnOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, part_call_of(queries, options), kPart);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph radius(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                     const RadiusOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, call_of(PartKind::radius, std::nullopt, options), kFind);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborGraph radius(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                     const TableView& queries, const RadiusOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, call_of(PartKind::radius, queries, options), kFind);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart radius_part(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                         const RadiusOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, part_call_of(PartKind::radius, std::nullopt, options), kPart);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart radius_part(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                         const TableView& queries, const RadiusOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, part_call_of(PartKind::radius, queries, options), kPart);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborCounts count(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                     const RadiusOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, call_of(PartKind::count, std::nullopt, options), kCount);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborCounts count(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                     const TableView& queries, const RadiusOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, call_of(PartKind::count, queries, options), kCount);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart count_part(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                        const RadiusOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, part_call_of(PartKind::count, std::nullopt, options), kPart);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart count_part(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                        const TableView& queries, const RadiusOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, part_call_of(PartKind::count, queries, options), kPart);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_knn(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
              const TableView* queries, const KnnOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row, plan_of(call_of(optional_of(queries), options)), kPlan);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_radius(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                 const TableView* queries, const RadiusOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row,
                     plan_of(call_of(PartKind::radius, optional_of(queries), options)), kPlan);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_count(const Context& ctx, Communicator& communicator, const TableView& shard, std::int64_t first_row,
                const TableView* queries, const RadiusOptions& options) try {
  const core::Entry entry;
  return with_search(ctx, communicator, shard, first_row,
                     plan_of(call_of(PartKind::count, optional_of(queries), options)), kPlan);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
