// The fused screen's answers for the tiles of a table, merged by key into the lists of the whole.
#pragma once

#include <cstdint>

#include "cuda/nearest/direct.hpp"
#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

/// The fused screen's answers for one tile, to be merged with those of the tiles before.
struct TileLists {
  static constexpr std::uint64_t kEntry = sizeof(std::int64_t) + sizeof(double) + sizeof(std::int32_t);
  static constexpr std::uint64_t kQuery = sizeof(unsigned long long);

  std::int64_t k;
  Buffer<std::int64_t> ids;
  Buffer<double> keys;
  Buffer<std::int32_t> holes;
  Buffer<unsigned long long> counts;

  TileLists(const Engine& engine, std::int64_t queries, std::int64_t neighbors)
      : k(neighbors),
        ids(engine, queries * neighbors),
        keys(engine, queries * neighbors),
        holes(engine, queries * neighbors),
        counts(engine, queries) {}
};

/// Searches a tile by the screen, or computes every key where a query has fewer than k rows to choose from there, and
/// takes its answers into `task.lists`. `filter`: the search's, in host memory, or null. Waits for the device.
void merge_tile(const Engine& engine, const Search& tile, DirectTask task, const std::uint64_t* filter,
                const TileLists& own, Counters& counters);

}  // namespace vicinal::cuda
