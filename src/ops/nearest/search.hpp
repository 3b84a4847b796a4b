// A search before it runs: options in one form, checked, and planned (contract clauses 5, 7, 9).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/index_access.hpp"
#include "backend/nearest.hpp"
#include "core/infinity.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/parts.hpp"
#include "vicinal/radius_batches.hpp"

namespace vicinal::ops {

/// A search from the public call to its plan: the task that goes to the backend, and what its caller takes beside it.
struct SearchRequest {
  kernels::NearestTask task;          ///< its index, method and tree are left to the plan
  Method method = Method::automatic;  ///< that the options name
  /// Where k lists go: to vectors of the host; to the caller's memory, or votes are made of them (`voting`): then the
  /// plan counts host memory for them if the backend holds them all the same; or they are counted by the caller.
  enum class Lists : std::uint8_t { held, passed_on, counted_beside } lists = Lists::held;
  const VoteOptions* voting = nullptr;
  std::uint64_t bytes_beside = 0;   ///< that the caller takes beside the search
  double max_radius = kInfinity;    ///< of k lists: what is farther away is left out
  bool takes_short_lists = false;   ///< of k lists: whether `max_radius` may be another
  bool keeps_packed = false;        ///< whether an index may keep what is packed for this search
  bool drops_packed = false;        ///< whether the index drops what this search does not keep, to make room
  std::string_view operation = {};  ///< what does not fit into memory; empty: the search
  /// Device memory of the whole operation by the method that the task names; empty: the search's.
  std::function<std::uint64_t(const kernels::NearestTask&)> device_bytes;

  /// Refuses what is outside its domain, for searches of this table or of an index of it. Looks at filter and exclude,
  /// O(n / 64 + m), the first time alone: a call checks its arguments once, before it prepares the table.
  void check(const Context& ctx, const TableView& table);
  /// Checks all but k, and returns the fewest rows that any query may choose from.
  [[nodiscard]] std::int64_t fewest_candidates(const Context& ctx, const TableView& table) const;

 private:
  bool checked_ = false;
};

/// `queries` = nullptr: self mode. Borrows what the options borrow.
SearchRequest request_of(const TableView* queries, const KnnOptions& options);
SearchRequest request_of(const TableView* queries, const RadiusOptions& options, kernels::Collect collect);

/// Whether a filter lets a row pass; all where it is empty.
inline bool has_bit(Bitmap filter, std::int64_t row) {
  return filter.empty() || (filter[static_cast<std::size_t>(row >> 6)] >> (row & 63) & 1) != 0;
}

/// Why some of the table's rows are no neighbors of a query.
struct LeftOut {
  bool own_rows = false;
  bool by_filter = false;
  bool by_exclude = false;
};
/// The sentence of clause 5, of a table of n rows.
[[noreturn]] void refuse_large_k(std::int64_t k, std::int64_t largest, std::int64_t n, const LeftOut& left_out);
/// Refuses an id to exclude that is not -1 or below `table_rows`, unless that is 0.
void check_excluded(std::size_t entry, std::int64_t id, std::int64_t table_rows);
/// Throws `invalid_argument` for a KnnOptions::max_radius that is outside its domain.
void check_max_radius(double radius, Metric metric);
/// Leaves out of k lists what is farther away than `max_radius`: they become compressed rows.
void cut_lists(const Context& ctx, double max_radius, NeighborGraph& graph);

struct Job {
  kernels::NearestTask task;
  Plan plan;
  bool holds_lists = true;  ///< k lists take host memory, which the plan counts
};

/// Checks and plans a search. `trial`: a tree is tried where it may be worth it, which reads values; without, the plan
/// is made from shapes.
Job plan_job(const Context& ctx, const kernels::Prepared& index, SearchRequest& request, bool trial);

/// What a search of a table that is not prepared would do. The memory is that of shapes: with a tree where one may be
/// chosen or tried, unless only a search without one fits. A table whose strides are 0 stands for its shape, and is not
/// read.
Plan plan_search(const Context& ctx, const TableView& table, SearchRequest& request);

/// Seconds that `run` takes, in which the tree is made that the task asks for.
double run_job(const Context& ctx, Job& job, const std::function<void()>& run);

/// The prepared data of an index. `first_id`: the number of the table's first row in sentences.
std::shared_ptr<const kernels::Prepared> prepare(const Context& ctx, const TableView& table,
                                                 const IndexOptions& options, std::int64_t first_id = 0);

/// Packs the rows of an index that keeps them for the screens that `kinds` name, where searches on this machine use
/// them and the limit allows it beside `held` bytes (the table's copy or file), groups and tree. `lanes` is not looked
/// at, and `automatic` is the coarsest screen.
void pack_now(const Context& ctx, const kernels::Prepared& prepared, std::span<const kernels::PackedKind> kinds,
              std::uint64_t held);
/// Host memory of an index's groups.
std::uint64_t group_bytes(const kernels::Prepared& index);

/// Calls body(index) with a table made ready, and notes in its result how long that took.
template <class Body>
auto with_index(const Context& ctx, const TableView& table, const Body& body, std::int64_t first_id = 0) {
  const auto start = std::chrono::steady_clock::now();
  const Index index = kernels::index_of(prepare(ctx, table, {.packed = Packing::never}, first_id));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  auto result = body(index);
  result.stats.prepare_seconds = seconds.count();
  return result;
}

/// The neighbors of the request's queries among the rows of an index. `counts`: where they are only counted.
NeighborGraph find_neighbors(const Context& ctx, const Index& index, SearchRequest& request,
                             std::vector<std::int64_t>* counts = nullptr);

/// The same in batches, each handed to `take` (docs: radius_batches).
RadiusSummary find_in_batches(const Context& ctx, const Index& index, SearchRequest& request, const TakeLists& take);
/// As plan_search, of find_in_batches.
Plan plan_batches(const Context& ctx, const TableView& table, SearchRequest& request);

/// `knn_part`. `max_keys` [m], or empty: larger keys are of no use to the query, so that a list may end with an id of
/// -1 before it has k entries. The caller counts their memory.
NeighborPart knn_part_below(const Context& ctx, const TableView& shard, const TableView& queries,
                            const KnnOptions& options, const PartOptions& place, std::span<const double> max_keys);
/// `radius_part` or `count_part`; `bytes_beside` are counted with what it takes.
NeighborPart part_within(const Context& ctx, const TableView& shard, const TableView& queries,
                         const RadiusOptions& options, const PartOptions& place, PartKind kind,
                         std::uint64_t bytes_beside);

/// A request whose arguments are refused before the table is read: what is known from shapes alone.
SearchRequest checked_request(const Context& ctx, const TableView& table, const TableView* queries,
                              const KnnOptions& options);

}  // namespace vicinal::ops
