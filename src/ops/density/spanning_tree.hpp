// The spanning tree for operations that go on with it.
#pragma once

#include <cstdint>
#include <string_view>

#include "vicinal/knn.hpp"
#include "vicinal/spanning_tree.hpp"

namespace vicinal::ops {

/// What of an operation the plan of its spanning tree counts.
struct TreeUse {
  std::string_view operation = "spanning tree";  ///< what does not fit into memory
  std::uint64_t bytes_beside = 0;                ///< that it takes beside the tree
};

/// Throws as `minimum_spanning_tree` does, where the values do not matter.
void check_spanning_tree(const Context& ctx, const TableView& table, const SpanningTreeOptions& options);
SpanningTree spanning_tree_of(const Context& ctx, const Index& index, const SpanningTreeOptions& options,
                              const TreeUse& use);
Plan plan_spanning_tree_of(const Context& ctx, const TableView& table, const SpanningTreeOptions& options,
                           const TreeUse& use);

}  // namespace vicinal::ops
