// --rows of `knn` and `radius`: the search in some rows of TABLE alone, a shard, whose part goes into a file
// (docs/scale.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "nearest/neighbors_output.hpp"
#include "vicinal/parts.hpp"

namespace vicinal::cli {

class Shard {
 public:
  /// --rows BEGIN:END, of which either may be left out. Refuses other texts, and options that a part cannot follow.
  explicit Shard(const NeighborsCommand& command);

  /// The shard's rows. Throws `invalid_argument` where TABLE does not have them.
  [[nodiscard]] TableView rows_of(const TableView& table) const;
  /// Which part of the search of these tables.
  [[nodiscard]] PartOptions place(const TableView& table, const TableView& queries) const;
  /// The bits of a filter of all rows that are the shard's.
  [[nodiscard]] std::vector<std::uint64_t> filter_of(const std::vector<std::uint64_t>& words, std::int64_t rows) const;
  /// Says what was found and written.
  void tell(const Runtime& runtime, const NeighborPart& part, std::int64_t neighbors,
            std::chrono::steady_clock::time_point start) const;

 private:
  [[nodiscard]] std::int64_t end_in(std::int64_t rows) const;

  const NeighborsCommand& command_;
  std::int64_t begin_ = 0;
  std::int64_t end_ = -1;  // below 0: the last row
};

/// A part as JSON, and for a person a line a member.
Json part_json(const PartInfo& part);
std::string part_text(const PartInfo& part);

}  // namespace vicinal::cli
