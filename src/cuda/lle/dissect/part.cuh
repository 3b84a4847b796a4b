// A part of a dissection down to its leaves, by one block of threads: see dissect.hpp.
#pragma once

#include <climits>

#include "cuda/lle/dissect/cut.cuh"
#include "cuda/lle/dissect/halve.cuh"

namespace vicinal::cuda::lle {

constexpr int kSharedNumbers = 7500;  // of a block's room: three of them on a Hopper multiprocessor

/// Numbers of scratch that a part of so many may take.
inline std::int64_t part_room(std::int64_t points, std::int64_t cells, std::int64_t neighbors, std::int64_t places,
                              std::int64_t entries) {
  const std::int64_t halving = 16 * cells + neighbors + places + 1;
  const std::int64_t cut = 17 * points + 4 * entries + 1;
  return cells + points + (halving > cut ? halving : cut);
}

/// The parts on the device.
struct Parts {
  const std::int32_t* begin;
  const std::int32_t* end;
  const std::int64_t* first_cell;
  const std::int32_t* cells;
  const std::int64_t* first;
  const std::int32_t* neighbors;
  const std::int32_t* places;
  std::int32_t* left;
  std::int32_t* right;
};

/// Splits the points [begin, end) of the order: left, right, separator. None on a side: it stays as it is.
__device__ inline void share_out(const PartGraph& g, int begin, int end, int& left, int& right) {
  const auto put = [&](PartSide side, int at) {
    return running_sum(
        begin, end, [&](int i) { return g.side[g.order[i]] == side ? 1 : 0; },
        [&](int i, int before, int own) {
          if (own != 0) g.spare[at + before] = g.order[i];
        });
  };
  left = put(kLeftSide, begin);
  right = put(kRightSide, begin + left);
  if (left == 0 || right == 0 || 2 * (end - begin - left - right) >= end - begin) {
    left = right = 0;
    return;
  }
  put(kCutSide, begin + left + right);
  for (int i = begin + rank(); i < end; i += kPartThreads) g.order[i] = g.spare[i];
  __syncthreads();
}

/// Part p, with kSharedNumbers in shared memory, two counters there, and `scratch` of its part_room.
__device__ inline void dissect_part(const PartGraph& graph, const Parts& parts, std::int32_t p, std::int32_t* shared,
                                    int* counters, std::int32_t* scratch) {
  const int begin = parts.begin[p];
  const int end = parts.end[p];
  const PartCells cells = {parts.cells,
                           parts.first,
                           parts.neighbors,
                           static_cast<std::int32_t>(parts.first_cell[p]),
                           static_cast<std::int32_t>(parts.first_cell[p + 1] - parts.first_cell[p]),
                           parts.places[p]};
  PartRoom whole(shared, kSharedNumbers, scratch);
  std::int32_t* const at = whole.take(cells.cells, INT_MAX);
  for (int i = begin + rank(); i < end; i += kPartThreads) {
    const std::int32_t v = graph.order[i];
    graph.cell[v] = cells.begin + place_among(cells.number + cells.begin, cells.cells, graph.cell_of[v]);
    graph.side[v] = kLeftSide;
  }
  int entries = 0;
  const auto add = [&](int from, int to) {
    if (to - from <= solver::kLeafPoints) return;
    if (rank() == 0) {
      parts.left[begin + entries] = from;
      parts.right[begin + entries] = to;
    }
    ++entries;
  };
  add(begin, end);
  __syncthreads();
  for (int e = 0; e < entries; ++e) {
    const int from = parts.left[begin + e];
    const int to = parts.right[begin + e];
    PartRoom rest = whole;
    std::int32_t* const near = rest.take(to - from);
    const int found = PartHalving(graph, cells, at, Counter(counters)).halve(from, to, rest, near);
    PartCut(graph, Counter(counters), Counter(counters + 1)).separate(to - from, near, found, rest);
    int left = 0;
    int right = 0;
    share_out(graph, from, to, left, right);
    if (rank() == 0) {
      parts.left[begin + e] = left;
      parts.right[begin + e] = right;
    }
    if (left > 0) {
      add(from, from + left);
      add(from + left, from + left + right);
    }
    __syncthreads();
  }
}

}  // namespace vicinal::cuda::lle
