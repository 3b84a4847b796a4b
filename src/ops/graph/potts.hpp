// Communities of a weighted graph by the constant Potts model (Traag, Van Dooren and Nesterov 2011): the sum over
// communities of their inner weight less resolution * size * (size - 1) / 2 is made larger by moving one node at a time
// to the best neighboring community (Blondel et al. 2008), communities then being the nodes of the next round. Nodes in
// ascending order, ties to the smaller community: one answer, for split_groups (ops/graph/split.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal::ops {

/// An undirected graph; every edge is listed at both of its ends.
struct WeightedGraph {
  std::vector<std::int64_t> offsets;    ///< [nodes + 1]
  std::vector<std::int64_t> neighbors;  ///< by node
  std::vector<double> weights;          ///< like neighbors, at least 0
  std::vector<std::int64_t> sizes;      ///< [nodes] members that each node stands for

  [[nodiscard]] std::int64_t nodes() const noexcept { return static_cast<std::int64_t>(sizes.size()); }
};

/// A community of each node, numbered from 0 by first appearance. Communities need not be connected.
std::vector<std::int64_t> potts_communities(const Context& ctx, WeightedGraph graph, double resolution);

}  // namespace vicinal::ops
