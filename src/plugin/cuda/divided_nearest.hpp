// Searches on several devices. Their work is divided in one of two ways:
//
// - by queries: each device has the whole table and finds the lists of a range of the queries, which go to their
// places;
// - by rows: each device has a range of the table's rows, and finds the nearest of them for all queries. Lists have
//   keys then, and are merged by (key, id) on the host, by all of its threads (contract clause 26).
//
// A table is prepared by rows, so that it is read, checked and copied once. It is divided by rows if the lists are few
// compared with the table, or if the whole table does not fit each device; trees, and lists within a radius, are
// divided by queries.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "plugin/cuda/crew.hpp"
#include "plugin/cuda/nearest.hpp"

namespace vicinal::plugin {

/// One device's share of a search. It borrows from the search.
struct SearchPart {
  kernels::NearestTask task;
  std::int64_t begin = 0;  ///< its first query, or the first of its rows

  SearchPart() = default;
  SearchPart(const SearchPart&) = delete;
  SearchPart& operator=(const SearchPart&) = delete;

  std::vector<std::int64_t> exclude;  ///< of rows
  kernels::Prepared shape;            ///< of rows that nobody has prepared yet, for what only looks
  bool lists_all = false;             ///< of rows: a query may have fewer than k to choose from, so all are listed
};

class DividedNearest final : public kernels::NearestBackend {
 public:
  explicit DividedNearest(std::shared_ptr<Crew> crew);

  void prepare(const Context& ctx, kernels::Prepared& index) const override;
  std::uint64_t prepare_bytes(const Context& ctx, const TableView& table) const override;
  void check_queries(const Context& /*ctx*/, const kernels::NearestTask& /*task*/) const override {}
  bool can_fuse(const kernels::NearestTask& task) const override;
  kernels::Choice choose(const Context& ctx, const kernels::NearestTask& task) const override;
  kernels::Costs costs(const Context& ctx, const kernels::NearestTask& task) const override;
  std::string screens(const Context& ctx, const kernels::NearestTask& task) const override;
  bool can_use_tree(const kernels::NearestTask& task) const override;
  bool has_room_for_tree(const Context& ctx, const kernels::NearestTask& task) const override;
  bool can_use_paper(Method method, Metric metric, std::int64_t d) const override;
  std::shared_ptr<const kernels::Tree> build_tree(const Context& ctx, const kernels::Prepared& index) const override;
  std::uint64_t tree_bytes(const kernels::Prepared& index) const override;
  void search(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result) const override;
  kernels::MemoryNeed search_bytes(const Context& ctx, const kernels::NearestTask& task) const override;
  std::uint64_t host_bytes(const Context& ctx, const kernels::NearestTask& task) const override;
  void vote(const Context& ctx, const kernels::VoteTask& task, std::span<Vote> result) const override;
  bool holds_lists(const kernels::NearestTask& task, const VoteOptions* voting) const override;
  void search_into(const Context& ctx, const kernels::NearestTask& task, const kernels::ListMemory& lists,
                   SearchStats& stats) const override;
  void classify(const Context& ctx, const kernels::NearestTask& task, const kernels::VoteTask& votes,
                std::span<Vote> result, SearchStats& stats) const override;

  [[nodiscard]] const CudaNearest& of(std::int64_t member) const { return *members_[static_cast<std::size_t>(member)]; }
  /// Runs find(member, part) on each device for a range of the queries.
  void find_by_queries(const Context& ctx, const kernels::NearestTask& task,
                       const std::function<void(std::int64_t member, const SearchPart& part)>& find) const;
  /// Begins of the ranges of queries of a search that is divided by them.
  [[nodiscard]] std::vector<std::int64_t> query_cuts(const kernels::NearestTask& task) const;
  /// Makes `part` the search of the queries [begin, end).
  static void take_queries(const kernels::NearestTask& task, std::int64_t begin, std::int64_t end, std::int64_t member,
                           SearchPart& part);

 private:
  struct Shards;
  struct RowLists;

  [[nodiscard]] std::vector<std::int64_t> row_cuts(std::int64_t n) const;
  [[nodiscard]] bool divides_rows(const kernels::NearestTask& task) const;
  /// Null where nobody has divided the index yet.
  [[nodiscard]] std::shared_ptr<const Shards> prepared_shards(const kernels::Prepared& index) const;
  [[nodiscard]] std::shared_ptr<const Shards> shards_of(const kernels::Prepared& index) const;
  void take_rows(const kernels::NearestTask& task, const Shards* shards, std::int64_t member,
                 const std::vector<std::int64_t>& cuts, SearchPart& part) const;
  /// The share of a device, for what only looks. `part` is made anew.
  void take_part(const kernels::NearestTask& task, bool by_rows, std::int64_t member, SearchPart& part) const;
  [[nodiscard]] std::int64_t parts_of(const kernels::NearestTask& task, bool by_rows) const;
  [[nodiscard]] std::int64_t queries_at_once(const kernels::NearestTask& task) const;

  /// Runs find(task), which looks for all of a task's queries in the devices' rows. They are some of those of `whole`.
  void find_by_rows(const Context& ctx, const kernels::NearestTask& whole, const kernels::NearestTask& task,
                    const std::function<void(const kernels::NearestTask& task)>& find) const;
  void find_lists(const Context& ctx, const kernels::NearestTask& task, std::int64_t* ids, double* distances,
                  SearchStats& stats) const;
  void merge_lists(const Context& ctx, const kernels::NearestTask& task, std::int64_t* ids, double* distances,
                   SearchStats& stats) const;
  void find_counts(const Context& ctx, const kernels::NearestTask& task, std::vector<std::int64_t>& counts,
                   SearchStats& stats) const;

  std::shared_ptr<Crew> crew_;
  std::vector<std::unique_ptr<const CudaNearest>> members_;
};

/// Adds what one device counted.
void add_stats(const SearchStats& from, SearchStats& to);

/// Lists within a radius, divided by queries (divided_radius.cpp).
void find_within_divided(const Context& ctx, Crew& crew, const DividedNearest& nearest,
                         const kernels::NearestTask& task, kernels::NearestResult& result);
/// Bytes on the host that this takes beside what the devices' searches do.
std::uint64_t within_divided_bytes(const Crew& crew, const kernels::NearestTask& task);

}  // namespace vicinal::plugin
