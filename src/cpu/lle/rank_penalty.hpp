// How far away rows are that another space calls neighbors: what trustworthiness and continuity are made of (contract
// clause 17). A row's rank is counted among all rows of its piece: O(n d) a row, memory O(k).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/lof/neighbor_pairs.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cpu {

struct RankTask {
  const WideRows& space;                ///< whose keys order rows, ties by the smaller id
  std::span<const std::int64_t> piece;  ///< rows that count, ascending
  std::span<const std::int64_t> asked;  ///< rows of the piece
  std::span<const std::int64_t> near;   ///< [asked, k] neighbors of each, of the piece, none itself
  std::int64_t k = 0;
};

/// The sum, over rows asked and their neighbors, of what a neighbor's rank (1: the nearest) is above k. A sum of whole
/// numbers: the same for every thread count.
std::int64_t rank_penalty(const Context& ctx, const RankTask& task);

}  // namespace vicinal::cpu
