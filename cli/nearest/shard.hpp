// --rows of `knn` and `radius`: the search in some rows of TABLE alone, a shard, whose part goes into a file
// (docs/scale.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nearest/neighbors_output.hpp"
#include "vicinal/parts.hpp"

namespace vicinal::cli {

/// Of a search in a shard.
struct ShardSearch {
  TableView rows;  ///< of the shard
  TableView queries;
  std::vector<std::uint64_t> filter;  ///< the bits of the shard's rows; empty: all
  PartOptions place;
};

/// What a search found, and wrote.
struct WrittenPart {
  NeighborPart part;
  std::int64_t neighbors = 0;
};

class Shard {
 public:
  /// --rows BEGIN:END, of which either may be left out. Refuses other texts, and options that a part cannot follow.
  explicit Shard(const NeighborsCommand& command);

  /// Plans the search, reads the tables, has `search` write the part, and says what was found; with --explain prints
  /// the plan instead. The plan is made twice: of tables of which only the shape is known, and of those that were read.
  /// Throws `invalid_argument` where TABLE does not have the shard's rows.
  void run(const Runtime& runtime, std::chrono::steady_clock::time_point start, std::string_view job,
           const std::function<Plan(const Context& ctx, const ShardSearch& part)>& plan,
           const std::function<WrittenPart(const Context& ctx, const ShardSearch& part)>& search) const;

 private:
  [[nodiscard]] std::int64_t end_in(std::int64_t rows) const;
  [[nodiscard]] ShardSearch search_of(const TableView& table, const TableView& queries,
                                      const std::vector<std::uint64_t>& filter) const;
  void tell(const Runtime& runtime, const WrittenPart& found, std::chrono::steady_clock::time_point start) const;

  const NeighborsCommand& command_;
  std::int64_t begin_ = 0;
  std::int64_t end_ = -1;  // below 0: the last row
};

/// Refuses options that parts cannot follow; `option` is the one that asks for parts.
void refuse_for_parts(const NeighborsCommand& command, const std::string& option);
/// The bits of rows [begin, end) as a filter of their own; none for no filter.
std::vector<std::uint64_t> filter_of_rows(const std::vector<std::uint64_t>& words, std::int64_t begin,
                                          std::int64_t end);

/// A part as JSON, and for a person a line a member.
Json part_json(const PartInfo& part);
std::string part_text(const PartInfo& part);

}  // namespace vicinal::cli
