// Searches of a table whose rows are divided among ranks (docs/ranks.md; contract clauses 4 and 26). Either the shards
// travel, and each rank searches all rows for its own queries: at once, where each has the memory for the whole table,
// or one shard after the other (shards_travel.cpp); or all queries travel to all ranks, each of which searches its own
// shard, and the lists travel back (queries_travel.cpp). Phases end in votes (together.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/nearest/k_lists.hpp"
#include "vicinal/communicator.hpp"
#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/parts.hpp"
#include "vicinal/table.hpp"

namespace vicinal::ops {

/// A search, as the caller of a rank asks for it. Borrows what the options borrow.
struct ShardCall {
  PartKind kind = PartKind::knn;
  bool as_part = false;              ///< lists keep their keys
  bool is_plan = false;              ///< nothing is searched
  std::optional<TableView> queries;  ///< none: the rows of the shard
  KnnOptions nearest;                ///< of knn
  RadiusOptions within;              ///< of radius and count

  [[nodiscard]] bool self() const { return !queries; }
  [[nodiscard]] Metric metric() const { return kind == PartKind::knn ? nearest.metric : within.metric; }
  [[nodiscard]] double p() const { return kind == PartKind::knn ? nearest.p : within.p; }
  [[nodiscard]] Bitmap filter() const { return kind == PartKind::knn ? nearest.filter : within.filter; }
  [[nodiscard]] std::span<const std::int64_t> exclude() const {
    return kind == PartKind::knn ? nearest.exclude : within.exclude;
  }
};

/// One rank's end of a search. Every function is called by all ranks.
class ShardSearch {
 public:
  /// Checks the arguments, agrees with the other ranks, and plans.
  ShardSearch(const Context& ctx, Communicator& ranks, const TableView& shard, std::int64_t first_row,
              const ShardCall& call);
  ShardSearch(const ShardSearch&) = delete;
  ShardSearch& operator=(const ShardSearch&) = delete;
  ~ShardSearch() = default;

  [[nodiscard]] const Plan& plan() const { return plan_; }
  NeighborGraph find();    ///< of knn and radius
  NeighborCounts count();  ///< of count
  NeighborPart part();     ///< in a shard that is the whole table

 private:
  /// What ranks know about each other's queries and rows.
  struct Known {
    std::vector<std::int64_t> row_begins;    // [ranks + 1]
    std::vector<std::int64_t> query_begins;  // [ranks + 1]
    std::int64_t eligible = 0;               // rows that the filters admit
    std::int64_t left_out = 0;               // of these, those that some query leaves out for certain; at most 2
    bool has_exclude = false;                // on some rank
    DType query_type = DType::float32;
  };
  /// How the search is divided.
  struct Division {
    bool queries_travel = false;
    bool holds_table = false;           // each rank, as a whole
    std::uint64_t bytes = 0;            // that all ranks together send
    std::uint64_t other_bytes = 0;      // in the other way
    bool is_short_for_queries = false;  // too little memory for them
    std::string why = {};               // for the plan
  };

  [[nodiscard]] std::int64_t rows_of(int rank) const;
  [[nodiscard]] std::int64_t queries_of(int rank) const;
  [[nodiscard]] std::int64_t longest_in(int rank) const;
  [[nodiscard]] std::int64_t largest_shard() const;
  [[nodiscard]] std::uint64_t bytes_of_row(DType type) const;
  [[nodiscard]] std::size_t filter_words(int rank) const;
  [[nodiscard]] std::size_t shard_words(int rank) const;
  [[nodiscard]] PartOptions place_of(int shard) const;

  void check_arguments() const;
  void agree();
  void check_whole();
  [[nodiscard]] std::int64_t most_admitted_left_out();
  [[nodiscard]] std::uint64_t memory_of_searches() const;
  template <class Question>
  [[nodiscard]] bool on_any_rank(const Question& is_so);
  void choose();
  void make_plan();
  void explain_division();
  [[nodiscard]] std::uint64_t ring_bytes() const;
  [[nodiscard]] std::uint64_t query_bytes() const;
  [[nodiscard]] std::uint64_t bytes_of_shards(bool as_whole) const;
  [[nodiscard]] std::uint64_t bytes_beside() const;
  [[nodiscard]] Plan plan_of_searches() const;

  void run();
  void require_long_lists();
  [[nodiscard]] NeighborGraph merged(bool keep_keys);
  void run_whole();
  void run_ring();
  void run_queries();
  NeighborPart search(const TableView& shard, Bitmap filter, const TableView& queries,
                      std::span<const std::int64_t> exclude, std::span<const double> radii, const PartOptions& place);
  void take(NeighborPart part);
  void pack_shard(std::span<std::uint64_t> words) const;
  void check_own_rows(const TableView& rows) const;
  void pack_lists(const NeighborPart& all, int to, std::vector<std::int64_t>& lengths,
                  std::vector<std::int64_t>& entries) const;
  [[nodiscard]] NeighborPart received(int from, const std::vector<std::int64_t>& lengths,
                                      const std::vector<std::int64_t>& entries) const;

  const Context& ctx_;
  Communicator& ranks_;
  int rank_;
  const TableView& shard_;
  std::int64_t first_row_;
  const ShardCall& call_;
  TableView queries_;  // of this rank
  Known known_;
  Division division_;
  Plan plan_;
  std::uint64_t beside_ = 0;           // bytes that are planned beside a search
  int searches_ = 0;                   // that are done
  std::int64_t largest_searched_ = 0;  // rows of the largest shard of these, whose method the plan names
  int all_searches_ = 1;

  std::optional<KLists> lists_;       // knn
  std::vector<NeighborPart> parts_;   // radius
  std::uint64_t part_bytes_ = 0;      // of these
  std::vector<std::int64_t> counts_;  // count
  SearchStats stats_;
};

}  // namespace vicinal::ops
