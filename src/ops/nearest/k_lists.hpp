// The k nearest rows of each query, from one shard after the other: only the k nearest so far are held, so that memory
// does not grow with the number of shards. Ordered by (key, id); roots are taken at the end (contract clause 26).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/parts.hpp"

namespace vicinal::ops {

class KLists {
 public:
  /// Of so many queries, at least 1.
  KLists(std::int64_t queries, std::int64_t k) : queries_(queries), k_(k) {}

  /// Takes the lists of the same queries in one more shard, which has none of the rows before. Lists of k entries may
  /// end before the first id of -1. O(m k).
  void take(const Context& ctx, NeighborPart part);
  /// The keys that the next lists cannot exceed: those of the last entries, where all lists are full; empty before. An
  /// equal key may come before them, by its id. O(m).
  [[nodiscard]] std::span<const double> bounds(const Context& ctx);
  /// The length of the shortest list, at most k.
  [[nodiscard]] std::int64_t shortest() const;
  /// Gives up the lists, which are all of length k, as ids and keys [queries, k].
  void give(std::vector<std::int64_t>& ids, std::vector<double>& keys);
  /// The same with reported distances.
  void finish(const Context& ctx, Metric metric, double p, NeighborGraph& graph);

  /// Bytes that the lists take, beside the part that is being taken.
  [[nodiscard]] static std::uint64_t bytes(const Context& ctx, std::int64_t queries, std::int64_t k);

 private:
  std::int64_t queries_;
  std::int64_t k_;
  std::vector<std::int64_t> sizes_;  // of each query; empty before the first part
  std::vector<std::int64_t> ids_;    // [m, k]
  std::vector<double> keys_;         // [m, k]
  std::vector<double> bounds_;       // [m]
};

}  // namespace vicinal::ops
