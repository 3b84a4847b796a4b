// How a multifrontal factor goes over a device (contract clause 17): which fronts are worked on together, by which
// tiles, and where everything lies, all of it known before anything is allocated. A level is a distance from the root:
// the deepest comes first, and a front's parent is in the level after its own, so that the squares of two levels are
// all that waits. Within a level wide fronts come first: those that have a block column are the first few.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/abi/lle.hpp"

namespace vicinal::cuda::lle {

inline constexpr int kFrontTile = 64;  ///< rows and columns of a tile, columns of a block column

/// A node's front: its panel [own + below, own], by columns, and its square [below, below], which goes into its parent.
struct Front {
  std::int64_t panel = 0;    ///< where its panel begins
  std::int64_t square = 0;   ///< where its square begins, among those of its level
  std::int64_t rows = 0;     ///< where its rows below, and their places in the parent's front, begin
  std::int64_t vectors = 0;  ///< where its rows begin among those of all fronts
  std::int32_t begin = 0;    ///< first own point
  std::int32_t own = 0;
  std::int32_t below = 0;
  std::int32_t parent = -1;  ///< a front, or -1

#ifdef __CUDACC__
  __host__ __device__
#endif
      [[nodiscard]] std::int64_t
      height() const {
    return std::int64_t{own} + below;
  }
};

/// A tile of a front. Of a block column, `col`: the block on the diagonal, 0, or rows below it, from 1 on. Or of a
/// square.
struct FrontTile {
  std::int32_t front = 0;
  std::int32_t row = 0;
  std::int32_t col = 0;
};

/// Tiles [begin, end) of the plan's, by one launch.
struct TileRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct FrontLevel {
  std::int32_t first = 0;  ///< of its fronts
  std::int32_t last = 0;
  std::int64_t squares_size = 0;     ///< of its squares together
  std::vector<TileRange> children;   ///< squares of the level before: of first children, of second ones, ...
  std::vector<TileRange> panels;     ///< for each block column its tiles, from the diagonal on
  std::vector<std::int32_t> active;  ///< for each block column, how many fronts have it
  std::vector<TileRange> squares;    ///< of its squares, on and below the diagonal
};

struct FrontPlan {
  std::vector<Front> fronts;  ///< level by level
  std::vector<FrontTile> tiles;
  std::vector<FrontLevel> levels;  ///< the deepest first
  std::int64_t panel_size = 0;
  std::int64_t row_count = 0;
  std::int64_t vector_rows = 0;     ///< rows of all fronts
  std::int64_t arena_size[2] = {};  ///< of squares of even and of odd levels

  /// Bytes of device memory that stay, and those beside them while it factors or solves for `width` right sides.
  [[nodiscard]] std::uint64_t held_bytes(std::int64_t points) const;
  [[nodiscard]] std::uint64_t factor_bytes() const;
  [[nodiscard]] std::uint64_t solve_bytes(std::int64_t width) const;
};

/// O(nodes log nodes + tiles).
FrontPlan plan_fronts(const plugin::LleTree& tree);

}  // namespace vicinal::cuda::lle
