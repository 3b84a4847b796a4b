// How far away rows are that another space calls neighbors: what trustworthiness and continuity are made of (contract
// clause 17). Host memory, on the CPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal::kernels {

/// A space whose keys order rows, ties by the smaller id.
struct RankSpace {
  const TableView& table;
  Metric metric;
  double p;
};

struct RankTask {
  std::span<const std::int64_t> piece;  ///< rows that count, ascending
  std::span<const std::int64_t> asked;  ///< rows of the piece
  std::span<const std::int64_t> near;   ///< [asked, k] neighbors of each, of the piece, none itself
  std::int64_t k = 0;
};

/// The sum for each task, over rows asked and their neighbors, of what a neighbor's rank (1: the nearest) is above k.
/// Sums of whole numbers: the same for every thread count. O(piece d) a row.
std::vector<std::int64_t> rank_penalties(const Context& ctx, const RankSpace& space, std::span<const RankTask> tasks);

/// Bytes that it takes.
std::uint64_t rank_bytes(const TableView& table, Metric metric);

}  // namespace vicinal::kernels
