// From a spanning tree to the condensed tree of HDBSCAN (contract clause 29).
#pragma once

#include <cstdint>
#include <vector>

#include "core/poll.hpp"
#include "vicinal/context.hpp"
#include "vicinal/hdbscan.hpp"

namespace vicinal::ops {

/// Throws `invalid_argument` unless the arrays have the sizes of a spanning tree, ends within its rows, and finite
/// lengths in ascending order.
void check_tree(const Context& ctx, const SpanningTree& tree);

/// All of the condensed tree but the labels, of a tree that was checked. Throws `invalid_argument` for edges that close
/// a circle.
CondensedTree condense(const Context& ctx, const SpanningTree& tree, std::int64_t min_cluster_size);
/// The most bytes that it takes for n rows, result included.
std::uint64_t condense_bytes(std::int64_t n, std::int64_t min_cluster_size);

/// Of each cluster the first of its two parts, which have numbers in a row; -1 where it is not divided.
std::vector<std::int64_t> first_children(const CondensedTree& tree);

/// Of each cluster the largest lambda with which something leaves it.
std::vector<double> deaths_of(core::Poll& poll, const CondensedTree& tree);

/// Of each cluster 1 if it is chosen, else 0.
std::vector<std::uint8_t> choose_clusters(const CondensedTree& tree, const HdbscanOptions& options);

/// 1 / distance; infinity where that is 0.
double lambda_of(double distance) noexcept;

}  // namespace vicinal::ops
