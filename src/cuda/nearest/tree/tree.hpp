// A kd-tree on the device that needs no pointers. Rows are put into an order in which every aligned run of
// 32, 64, 128, ... of them is one part of a kd-tree; 32 positions are a leaf, 32 leaves a node, 32 nodes a node of the
// next level, until one is left. So a level's units follow from n alone, all lanes of a warp work whether they look at
// the rows of a leaf or at the boxes in a node, and a walk needs one key a lane and level instead of a stack.
//
// WHY A UNIT MAY BE LEFT OUT. Every unit has the box of its rows (exact: the least and largest value of every column)
// and the smallest of their ids. The key of the box is never above the key of a row in it, in floating point and
// without an allowance: it is the contract's own key function of the gaps, and rounding is monotone (the proof stands
// in cpu/nearest/tree/tree.hpp, and needs nothing but the order of operations, which is the same here). So for each row
// (key, id) of a unit (box key, first id): key >= box key and id >= first id, hence (key, id) does not come before (box
// key, first id) in the order of clause 2. If that pair does not come before the k-th of a list, no row of the unit
// enters the list. Ties are decided exactly, and masses of equal rows, which lie in units of equal keys and growing
// ids, are left out as soon as k of them are found. Nothing depends on which rows lie together: a bad order is slow,
// and not wrong.
#pragma once

#include <cstdint>

#include "cuda/base/session.hpp"
#include "cuda/nearest/direct.hpp"
#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

inline constexpr int kTreeWidth = 32;              ///< rows of a leaf, units of a node
inline constexpr int kBoxValues = 2 * kTreeWidth;  ///< of a node and column
inline constexpr int kMaxTreeHeight = 6;           ///< enough for 2^35 rows
inline constexpr std::int64_t kMaxTreeRows = 0xfffffffe;
inline constexpr std::int64_t kMaxTreeColumns = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxTreeNeighbors = 2048;  ///< of a k list

/// How many units each level has. Level 0 are the leaves, level `height` (at least 1) the root alone; above it is one
/// more level, whose only box is that of the whole table.
struct TreeLevels {
  int height = 0;
  std::int64_t units[kMaxTreeHeight + 2] = {};

  explicit TreeLevels(std::int64_t rows);
  TreeLevels() = default;
};

/// What kernels are given of a tree. Values are float32 where the table is no wider, else float64.
struct TreeView {
  TreeLevels levels;
  std::int64_t rows = 0;
  int d = 0;
  bool narrow = false;
  const void* points = nullptr;                ///< [leaf][d][32] rows in order; 0 beyond the last
  const void* boxes[kMaxTreeHeight + 2] = {};  ///< of level l from 1 on: [unit][d][2][32] smallest and largest
                                               ///< values of the units of level l - 1 that it holds
  const std::uint32_t* first_ids[kMaxTreeHeight + 1] = {};  ///< of level l: [unit] the smallest id in it
  const std::uint32_t* order = nullptr;                     ///< [rows] ids
};

/// Owns what a view points to.
struct DeviceTree {
  Session* session = nullptr;
  TreeView view;
  Buffer<std::byte> points;
  Buffer<std::byte> boxes;
  Buffer<std::uint32_t> first_ids;
  Buffer<std::uint32_t> order;
  std::uint64_t bytes = 0;
};

/// Bytes that stay with a tree, and that building takes besides.
std::uint64_t tree_bytes(std::int64_t rows, std::int64_t d, DType dtype);
std::uint64_t tree_build_bytes(std::int64_t rows);

/// Builds the tree of a table (build.cu) and waits for it. The same table gives the same tree. Throws
/// `over_memory` where there is no room.
DeviceTree* build_tree(Session& session, const Host& host, const Resident& table);
/// The ids in the order of the leaves, to [rows] memory of the host's.
void fetch_order(const DeviceTree& tree, std::int64_t* ids);

/// Whether a search is one that trees serve, whatever the room.
bool tree_serves(const plugin::Search& search);
/// Whether there is room for the tree of a search, or it stands.
bool has_room_for_tree(const Session& session, const plugin::Search& search);

/// k lists, each in order, with reported distances (search.cu). False, and nothing is decided, where some key may
/// overflow: then every pair must be looked at (clause 1). `in_order`: queries are taken in the order of the leaves.
bool tree_k_lists(const Engine& engine, const TreeView& tree, const Search& search, bool in_order, const KLists& lists,
                  Counters& counters);
/// A pass of a radius search or a count, whose counts are 0: as `direct_pass`, or false, as above.
bool tree_pass(const Engine& engine, const TreeView& tree, const DirectTask& task, bool in_order, Counters& counters);
/// Bytes they take at most within `limit`, for m queries.
std::uint64_t tree_search_bytes(std::int64_t d, std::int64_t m, std::uint64_t limit);

}  // namespace vicinal::cuda
