// The file of a part (contract clause 26): a tensor file whose metadata describe the part.
#pragma once

#include <cstdint>
#include <filesystem>

#include "io/spool.hpp"
#include "ops/nearest/tensor_file.hpp"
#include "vicinal/parts.hpp"

namespace vicinal::ops {

inline constexpr FileKind kPartFile = {"part", "a part of vicinal knn or radius", "vicinal-part", 1 << 16, true};

/// Writes lists within a radius as they come. How many there are is known at the end, so they are spooled.
class PartWriter {
 public:
  /// `part` has the description and the radii, and outlives the writer, as the context does.
  PartWriter(const Context& ctx, const std::filesystem::path& path, const NeighborPart& part);
  /// The lists of the queries that come next, as compressed rows of the shard, whose row 0 has the id `first_id`.
  void add(const NeighborGraph& lists, std::int64_t first_id);
  void commit(const SearchStats& stats);

 private:
  const Context& ctx_;
  const NeighborPart& part_;
  SummedFile file_;
  io::Spool ids_;
  io::Spool keys_;
  io::Spool offsets_;
  std::int64_t entries_ = 0;
};

}  // namespace vicinal::ops
