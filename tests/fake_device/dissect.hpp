// The dissecting half of the fake plug-in (plugin.cpp): the device's own code (cuda/lle/dissect/part.cuh),
// compiled for a block of one thread, whose room is no larger than a device's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "plugin/abi/lle.hpp"
#include "solver/rows.hpp"

#define __device__

namespace vicinal::cuda {

using std::max;
using std::min;

constexpr int kPartThreads = 1;
constexpr int kPointThreads = 1;

inline void expect(bool holds) {
  if (!holds) throw std::logic_error("a part of a dissection reaches out of its room");
}
inline int rank() {
  return 0;
}
inline int rank_at_point() {
  return 0;
}
inline int rank_of_point() {
  return 0;
}
inline void __syncthreads() {}
inline int least_of(int x) {
  return x;
}
inline int most_of(int x) {
  return x;
}
inline int sum_of(int x) {
  return x;
}
inline int sum_before(int x, int& all) {
  all = x;
  return 0;
}
template <class T, class Make>
T exchanged(T* at, const Make& make) {
  const T old = *at;
  *at = make(old);
  return old;
}
inline int atomicAdd(int* at, int x) {
  return exchanged(at, [&](int old) { return old + x; });
}
inline int atomicMin(int* at, int x) {
  return exchanged(at, [&](int old) { return std::min(old, x); });
}
inline int atomicOr(int* at, int x) {
  return exchanged(at, [&](int old) { return old | x; });
}
inline int atomicExch(int* at, int x) {
  return exchanged(at, [&](int) { return x; });
}
inline int atomicCAS(int* at, int is, int x) {
  return exchanged(at, [&](int old) { return old == is ? x : old; });
}

}  // namespace vicinal::cuda

#include "cuda/lle/dissect/part.cuh"

namespace vicinal::plugin {

/// The first of several parts is left to the host.
inline void fake_dissection(const solver::LocalRows& a, const solver::Incidence& in, LleParts& parts) {
  const auto n = static_cast<std::size_t>(a.points);
  std::vector<std::uint32_t> places;
  for (std::size_t e = 0; e < in.blocks.size(); ++e) {
    places.push_back(static_cast<std::uint32_t>(in.blocks[e] * a.width + in.at[e]));
  }
  std::vector<std::int32_t> spare(n);
  std::vector<std::int32_t> cell(n, -1);
  std::vector<std::int32_t> band(n, cuda::lle::kUnseen);
  std::vector<std::int32_t> hub(n, cuda::lle::kUnseen);
  std::vector<std::uint8_t> side(n, cuda::lle::kCutSide);
  const cuda::lle::PartGraph graph = {
      a.cols.data(), in.first.data(), places.data(), parts.cell_of, static_cast<std::uint32_t>(a.width),
      parts.order,   spare.data(),    cell.data(),   side.data(),   band.data(),
      hub.data()};
  const cuda::lle::Parts there = {parts.begin,     parts.end,    parts.first_cell, parts.cells, parts.first,
                                  parts.neighbors, parts.places, parts.left,       parts.right};
  for (std::int64_t p = parts.count; p-- > 0;) {  // a device does not take them as they follow each other either
    parts.done[p] = p > 0 || parts.count == 1 ? 1 : 0;
    if (parts.done[p] == 0) continue;
    const std::int64_t cells = parts.first_cell[p + 1] - parts.first_cell[p];
    const std::int64_t neighbors = parts.first[parts.first_cell[p + 1]] - parts.first[parts.first_cell[p]];
    std::vector<std::int32_t> shared(cuda::lle::kSharedNumbers);
    std::vector<std::int32_t> scratch(static_cast<std::size_t>(
        cuda::lle::part_room(parts.end[p] - parts.begin[p], cells, neighbors, parts.places[p], parts.entries[p])));
    std::vector<int> counters(2);
    cuda::lle::dissect_part(graph, there, static_cast<std::int32_t>(p), shared.data(), counters.data(), scratch.data());
  }
}

}  // namespace vicinal::plugin
