// The plug-in's interface for locally linear embedding: plain structs, as in plugin.hpp. An embedding is begun
// with a table's neighbors; its pieces are then taken one after the other, factored, and iterated by steps.
#pragma once

#include "plugin/abi/plugin.hpp"

namespace vicinal::plugin {

/// As solver::LocalTask.
struct LleTask {
  Table table;
  void* resident = nullptr;           ///< of that table, or null: it is uploaded
  const std::int32_t* ids = nullptr;  ///< [rows, k] host
  std::int64_t k = 0;
  std::int64_t dim = 0;
  std::int32_t variant = 0;
  double reg = 0;

  double largest_weight = 0;  ///< filled: of standard
};

/// Blocks of the rows of one piece, numbered anew; none of their columns is outside of it.
struct LleTaken {
  const std::int32_t* rows = nullptr;  ///< [n] the table's row of each point, host
  std::int64_t n = 0;

  std::int64_t block_rows = 0;  ///< filled: rows of A
  std::int64_t width = 0;       ///< filled: of its blocks
  double norm = 0;              ///< filled: at least M's
};

/// Blocks in host memory, as solver::LocalRows.
struct LleBlocks {
  std::int32_t* cols = nullptr;   ///< [n, width]
  std::int64_t* first = nullptr;  ///< [n + 1]
  double* values = nullptr;       ///< [block_rows, width]
};

/// Parts of a dissection of the piece taken last, as solver::SmallParts: cells of each, their neighbors by places.
struct LleParts {
  std::int64_t count = 0;
  const std::int32_t* begin = nullptr;       ///< [count] of each part in the order
  const std::int32_t* end = nullptr;         ///< [count]
  const std::int64_t* first_cell = nullptr;  ///< [count + 1]
  const std::int32_t* cells = nullptr;       ///< [first_cell[count]] ascending in each part
  const std::int64_t* first = nullptr;       ///< [first_cell[count] + 1]
  const std::int32_t* neighbors = nullptr;   ///< [first[first_cell[count]]]
  const std::int32_t* places = nullptr;      ///< [count]
  const std::int64_t* entries = nullptr;     ///< [count]
  const std::int32_t* cell_of = nullptr;     ///< [n] of each point

  std::int32_t* order = nullptr;  ///< [n]: that of the parts is made theirs
  std::int32_t* left = nullptr;   ///< [n] filled, as solver::Splits
  std::int32_t* right = nullptr;  ///< [n]
  std::uint8_t* done = nullptr;   ///< [count] filled: 0 for a part that is left as it was
};

/// The tree of a factor, as solver::Symbolic: children before parents. All memory is the host's.
struct LleNode {
  std::int32_t begin = 0;  ///< its own points
  std::int32_t end = 0;
  std::int32_t parent = -1;
};
struct LleTree {
  std::int64_t count = 0;
  const LleNode* nodes = nullptr;           ///< [count]
  const std::int64_t* first_row = nullptr;  ///< [count + 1]
  const std::int32_t* rows = nullptr;       ///< [first_row[count]] below the own points of each, ascending
};

/// M of the piece taken last, whose points are in the order of elimination.
struct LleFactor {
  LleTree tree;       ///< for the first factor of a piece; of later ones it is the same
  double shift = 0;   ///< taken from the diagonal
  double ground = 0;  ///< added to the last point's diagonal

  std::uint64_t bytes = 0;    ///< filled: of device memory
  std::int64_t negative = 0;  ///< filled: pivots below 0
};

/// As solver::Space's functions, on the sets that solver::Set numbers.
enum LleWork : std::int32_t {
  kLleStart = 0,     ///< best: `width` columns
  kLleSolve,         ///< set
  kLleGradient,      ///< small[width of best]: values
  kLleInner,         ///< small[width of set, width of next]: filled
  kLleSubtract,      ///< small[width of best, width of next]
  kLleMultiply,      ///< small[width of set, width]
  kLleTriangles,     ///< small[kLleTriangles * width of set, width of set]: filled
  kLleRowTriangles,  ///< of A best, likewise
  kLleJoin,
  kLleFetch,  ///< small[n, width]: filled
};
inline constexpr std::int64_t kLleStacked = 32;  ///< triangles that are left to the host

struct LleStep {
  std::int32_t work = kLleStart;
  std::int32_t set = 0;
  std::int64_t width = 0;
  double* small = nullptr;  ///< host
};

}  // namespace vicinal::plugin
