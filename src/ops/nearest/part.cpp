// knn_part, radius_part and count_part: searches in shards (contract clause 26). A shard is searched as a table of its
// own; lists keep their keys, and ids become those of the whole table. A shard may have fewer rows than k: then every
// row is listed, as by a radius that leaves nothing out.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "backend/index_access.hpp"
#include "core/entry.hpp"
#include "core/in_steps.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "ops/common/check.hpp"
#include "ops/common/refuse.hpp"
#include "ops/nearest/part_file.hpp"
#include "ops/nearest/search.hpp"
#include "vicinal/parts.hpp"

namespace vicinal {
namespace {

using ops::SearchRequest;

/// Refuses numbers that are not a range of the whole.
void check_range(const char* first_name, const char* total_name, std::int64_t first, std::int64_t count,
                 std::int64_t total) {
  if (first < 0) refuse(fmt::format("{}: is {}, must be at least 0", first_name, first));
  if (total < 0) refuse(fmt::format("{}: is {}, must be at least 0", total_name, total));
  if (first > std::numeric_limits<std::int64_t>::max() - count) {
    refuse(fmt::format("{}: is {}, and {} numbers from there on do not fit 64 bits", first_name, first, count));
  }
  if (total > 0 && first + count > total) {
    refuse(fmt::format("{}: {} to {} are not all among the {} that {} says", first_name, first, first + count - 1,
                       total, total_name));
  }
}

void check_place(const PartOptions& place, std::int64_t n, std::int64_t m) {
  check_range("first_id", "total_rows", place.first_id, n, place.total_rows);
  check_range("first_query", "total_queries", place.first_query, m, place.total_queries);
  if (place.self) check_range("first_query", "total_rows", place.first_query, m, place.total_rows);
}

}  // namespace

void ops::check_excluded(std::size_t entry, std::int64_t id, std::int64_t table_rows) {
  if (id >= -1 && (table_rows == 0 || id < table_rows)) return;
  refuse(fmt::format("exclude: entry {} is {}, not -1 or a row of the table", entry, id));
}

namespace {

/// The caller's ids of the whole table as rows of the shard, -1 where they are elsewhere.
std::vector<std::int64_t> exclude_here(const Context& ctx, std::span<const std::int64_t> ids, std::int64_t n,
                                       std::int64_t m, const PartOptions& place) {
  std::vector<std::int64_t> here;
  if (ids.empty()) return here;
  if (std::ssize(ids) != m) refuse(fmt::format("exclude: {} ids for {} queries", ids.size(), m));
  here.reserve(ids.size());
  core::Poll poll(ctx);
  for (const std::int64_t id : ids) {
    poll.step();
    ops::check_excluded(here.size(), id, place.total_rows);
    const bool is_here = id >= place.first_id && id - place.first_id < n;
    here.push_back(is_here ? id - place.first_id : -1);
  }
  return here;
}

/// A search in a shard: the request, and what it borrows.
struct ShardSearch {
  std::vector<std::int64_t> exclude;
  SearchRequest request;
  PartInfo info;

  template <class Options>
  ShardSearch(const Context& ctx, const TableView& shard, const TableView& queries, const Options& options,
              const PartOptions& place, SearchRequest made) {
    check_table(ctx, shard, "table");
    check_table(ctx, queries, "queries");
    check_place(place, shard.rows(), queries.rows());
    exclude = exclude_here(ctx, options.exclude, shard.rows(), queries.rows(), place);
    request = std::move(made);
    take_place(request, place);
    info.place = place;
    info.rows = shard.rows();
    info.queries = queries.rows();
    info.cols = shard.cols();
    info.metric = options.metric;
    info.p = options.p;
  }
  ShardSearch(const ShardSearch&) = delete;
  ShardSearch& operator=(const ShardSearch&) = delete;

  void take_place(SearchRequest& of, const PartOptions& place) const {
    of.task.exclude = exclude;
    of.task.first_id = place.first_id;
    of.task.first_query = place.first_query;
    of.task.same_rows = place.self;
    of.task.keys = true;
    of.bytes_beside += exclude.size() * sizeof(std::int64_t);
  }
};

struct KnnShard : ShardSearch {
  std::int64_t fewest;  ///< rows that a query may choose from, at most k of them asked for

  KnnShard(const Context& ctx, const TableView& shard, const TableView& queries, const KnnOptions& options,
           const PartOptions& place)
      : ShardSearch(ctx, shard, queries, options, place, ops::request_of(&queries, options)),
        fewest(request.fewest_candidates(ctx, shard)) {
    const std::int64_t k = options.k;
    if (k < 1) refuse(fmt::format("k: is {}, must be at least 1", k));
    const std::int64_t largest = place.total_rows - (place.self ? 1 : 0);
    if (place.total_rows > 0 && k > largest) {
      refuse(fmt::format("k: is {}, but at most {} of the {} table rows can be neighbors{}", k, largest,
                         place.total_rows, place.self ? "; a row is not its own neighbor" : ""));
    }
    info.kind = PartKind::knn;
    info.k = k;
  }

  /// Every query has k rows to choose from.
  [[nodiscard]] bool is_full() const { return info.k <= fewest; }
  /// Of lists that are not full: no query leaves out more than itself and the row that is excluded for it.
  [[nodiscard]] std::int64_t longest() const { return std::min(info.k, fewest + 2); }

  /// The search that lists every row. Borrows from this one.
  [[nodiscard]] SearchRequest everything() const {
    RadiusOptions options;
    options.radius = std::numeric_limits<double>::infinity();
    options.metric = info.metric;
    options.p = info.p;
    options.filter = request.task.filter;
    options.method = Method::direct;
    SearchRequest all = ops::request_of(&request.task.queries, options, kernels::Collect::radius);
    take_place(all, info.place);
    all.operation = "knn";
    all.bytes_beside += static_cast<std::uint64_t>(info.queries) * (static_cast<std::uint64_t>(longest()) * 16 + 8) + 8;
    return all;
  }
};

struct RadiusShard : ShardSearch {
  RadiusShard(const Context& ctx, const TableView& shard, const TableView& queries, const RadiusOptions& options,
              const PartOptions& place, PartKind kind)
      : ShardSearch(ctx, shard, queries, options, place,
                    ops::request_of(&queries, options,
                                    kind == PartKind::count ? kernels::Collect::count : kernels::Collect::radius)) {
    request.check(ctx, shard);
    request.bytes_beside += options.radii.size_bytes();  // a copy
    info.kind = kind;
    info.has_radii = !options.radii.empty();
    if (!info.has_radii) info.radius = options.radius;
    if (kind == PartKind::radius) info.order = options.order;
  }
};

/// Rows of a shard to ids of the whole table. What ends a short list stays.
void number_ids(const Context& ctx, std::int64_t first_id, std::vector<std::int64_t>& ids) {
  if (first_id == 0) return;
  const std::int64_t tasks = (std::ssize(ids) + core::kElementsPerStep - 1) / core::kElementsPerStep;
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
    const auto begin = ids.begin() + task * core::kElementsPerStep;
    const auto end = begin + std::min(core::kElementsPerStep, ids.end() - begin);
    std::for_each(begin, end, [first_id](std::int64_t& id) { id += id >= 0 ? first_id : 0; });
  });
}

NeighborPart part_of(const PartInfo& info, NeighborGraph graph) {
  NeighborPart part;
  part.info = info;
  part.ids = std::move(graph.ids);
  part.keys = std::move(graph.distances);
  part.offsets = std::move(graph.offsets);
  part.plan = std::move(graph.plan);
  part.stats = graph.stats;
  return part;
}

/// The lists of all rows, cut to k.
NeighborPart list_everything(const Context& ctx, const Index& index, const KnnShard& shard) {
  const std::int64_t k = shard.info.k;
  if (shard.fewest > 0) {  // the method is refused where it does not serve the metric, though none is needed
    SearchRequest asked = shard.request;
    asked.task.k = shard.fewest;
    ops::plan_job(ctx, kernels::prepared_of(index), asked, false);
  }
  NeighborPart part;
  part.info = shard.info;
  core::Poll poll(ctx);
  const auto take = [&](std::int64_t /*first*/, const NeighborGraph& lists) {
    if (part.offsets.empty()) {
      part.ids.reserve(static_cast<std::size_t>(shard.info.queries * shard.longest()));
      part.keys.reserve(static_cast<std::size_t>(shard.info.queries * shard.longest()));
      part.offsets.reserve(static_cast<std::size_t>(shard.info.queries) + 1);
      part.offsets.push_back(0);
    }
    for (std::int64_t row = 0; row < lists.rows; ++row) {
      const auto ids = lists.ids_of(row);
      const auto keys = lists.distances_of(row);
      for (std::size_t i = 0; i < std::min(ids.size(), static_cast<std::size_t>(k)); ++i) {
        poll.step();
        part.ids.push_back(ids[i]);
        part.keys.push_back(keys[i]);
      }
      part.offsets.push_back(std::ssize(part.ids));
    }
  };
  SearchRequest all = shard.everything();
  RadiusSummary found = ops::find_in_batches(ctx, index, all, take);
  part.plan = std::move(found.plan);
  part.plan.reason = "a query has no more than k rows to choose from, so all of them are ranked";
  part.stats = found.stats;
  return part;
}

NeighborPart find_knn(const Context& ctx, const Index& index, KnnShard& shard) {
  NeighborPart part = shard.is_full() ? part_of(shard.info, ops::find_neighbors(ctx, index, shard.request))
                                      : list_everything(ctx, index, shard);
  number_ids(ctx, shard.info.place.first_id, part.ids);
  return part;
}

NeighborPart find_radius(const Context& ctx, const Index& index, RadiusShard& shard) {
  std::vector<std::int64_t> counts;
  NeighborGraph found = ops::find_neighbors(ctx, index, shard.request, &counts);
  if (shard.info.kind == PartKind::count) found.offsets.clear();  // a device may have cut lists to count them
  NeighborPart part = part_of(shard.info, std::move(found));
  part.counts = std::move(counts);
  part.radii.assign(shard.request.task.radii.begin(), shard.request.task.radii.end());
  number_ids(ctx, shard.info.place.first_id, part.ids);
  return part;
}

NeighborPart within_part(const Context& ctx, const Index& shard, const TableView& queries, const RadiusOptions& options,
                         const PartOptions& place, PartKind kind) {
  RadiusShard search(ctx, shard.table(), queries, options, place, kind);
  return find_radius(ctx, shard, search);
}

/// Writes the lists as they are found. The part that it returns has none.
NeighborPart write_found(const Context& ctx, const Index& index, RadiusShard& shard, const RadiusOptions& options,
                         const std::filesystem::path& path, std::int64_t* neighbors) {
  NeighborPart part;
  part.info = shard.info;
  part.radii.assign(options.radii.begin(), options.radii.end());
  ops::PartWriter writer(ctx, path, part);
  RadiusSummary found = ops::find_in_batches(
      ctx, index, shard.request,
      [&](std::int64_t /*first*/, const NeighborGraph& lists) { writer.add(lists, shard.info.place.first_id); });
  part.plan = std::move(found.plan);
  part.stats = found.stats;
  writer.commit(part.stats);
  if (neighbors != nullptr) *neighbors = found.neighbors;
  return part;
}

}  // namespace

// What is wrong with the arguments is said before the table is prepared.
NeighborPart ops::part_within(const Context& ctx, const TableView& shard, const TableView& queries,
                              const RadiusOptions& options, const PartOptions& place, PartKind kind,
                              std::uint64_t bytes_beside) {
  RadiusShard search(ctx, shard, queries, options, place, kind);
  search.request.bytes_beside += bytes_beside;
  return ops::with_index(
      ctx, shard, [&](const Index& index) { return find_radius(ctx, index, search); }, place.first_id);
}

NeighborPart ops::knn_part_below(const Context& ctx, const TableView& shard, const TableView& queries,
                                 const KnnOptions& options, const PartOptions& place,
                                 std::span<const double> max_keys) {
  KnnShard search(ctx, shard, queries, options, place);
  search.request.task.max_keys = max_keys;
  return ops::with_index(
      ctx, shard, [&](const Index& index) { return find_knn(ctx, index, search); }, place.first_id);
}

NeighborPart knn_part(const Context& ctx, const TableView& shard, const TableView& queries, const KnnOptions& options,
                      const PartOptions& place) try {
  const core::Entry entry;
  return ops::knn_part_below(ctx, shard, queries, options, place, {});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart knn_part(const Context& ctx, const Index& shard, const TableView& queries, const KnnOptions& options,
                      const PartOptions& place) try {
  const core::Entry entry;
  KnnShard search(ctx, shard.table(), queries, options, place);
  return find_knn(ctx, shard, search);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart radius_part(const Context& ctx, const TableView& shard, const TableView& queries,
                         const RadiusOptions& options, const PartOptions& place) try {
  const core::Entry entry;
  return ops::part_within(ctx, shard, queries, options, place, PartKind::radius, 0);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart radius_part(const Context& ctx, const Index& shard, const TableView& queries, const RadiusOptions& options,
                         const PartOptions& place) try {
  const core::Entry entry;
  return within_part(ctx, shard, queries, options, place, PartKind::radius);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart count_part(const Context& ctx, const TableView& shard, const TableView& queries,
                        const RadiusOptions& options, const PartOptions& place) try {
  const core::Entry entry;
  return ops::part_within(ctx, shard, queries, options, place, PartKind::count, 0);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart count_part(const Context& ctx, const Index& shard, const TableView& queries, const RadiusOptions& options,
                        const PartOptions& place) try {
  const core::Entry entry;
  return within_part(ctx, shard, queries, options, place, PartKind::count);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart radius_part_file(const Context& ctx, const TableView& shard, const TableView& queries,
                              const RadiusOptions& options, const PartOptions& place, const std::filesystem::path& path,
                              std::int64_t* neighbors) try {
  const core::Entry entry;
  RadiusShard search(ctx, shard, queries, options, place, PartKind::radius);
  return ops::with_index(
      ctx, shard, [&](const Index& index) { return write_found(ctx, index, search, options, path, neighbors); },
      place.first_id);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart radius_part_file(const Context& ctx, const Index& shard, const TableView& queries,
                              const RadiusOptions& options, const PartOptions& place, const std::filesystem::path& path,
                              std::int64_t* neighbors) try {
  const core::Entry entry;
  RadiusShard search(ctx, shard.table(), queries, options, place, PartKind::radius);
  return write_found(ctx, shard, search, options, path, neighbors);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_knn_part(const Context& ctx, const TableView& shard, const TableView& queries, const KnnOptions& options,
                   const PartOptions& place) try {
  const core::Entry entry;
  KnnShard search(ctx, shard, queries, options, place);
  if (search.is_full()) return ops::plan_search(ctx, shard, search.request);
  SearchRequest all = search.everything();
  return ops::plan_batches(ctx, shard, all);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_radius_part(const Context& ctx, const TableView& shard, const TableView& queries,
                      const RadiusOptions& options, const PartOptions& place) try {
  const core::Entry entry;
  RadiusShard search(ctx, shard, queries, options, place, PartKind::count);
  return ops::plan_search(ctx, shard, search.request);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Plan plan_radius_part_file(const Context& ctx, const TableView& shard, const TableView& queries,
                           const RadiusOptions& options, const PartOptions& place) try {
  const core::Entry entry;
  RadiusShard search(ctx, shard, queries, options, place, PartKind::radius);
  return ops::plan_batches(ctx, shard, search.request);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal
