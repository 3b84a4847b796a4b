// Which boxes of a layer meet a box: a packed tree, sort-tile-recursive (Leutenegger et al. 1997), built in
// O(n log n).
#pragma once

#include <cstdint>
#include <vector>

#include "geo/layer.hpp"

namespace vicinal::geo {

class BoxTree {
 public:
  BoxTree(const Context& ctx, const std::vector<Box>& boxes);

  /// Appends the ids of all boxes that meet `box`, sides included. In no order.
  void query(const Box& box, std::vector<std::int64_t>& ids) const;
  static std::uint64_t bytes(std::int64_t n);

 private:
  static constexpr std::int64_t kWidth = 16;  // children of a node
  // Boxes of a level side by side; level 0 are the leaves' in the tree's order.
  struct Level {
    std::vector<Box> boxes;
  };
  void search(std::size_t level, std::int64_t first, std::int64_t last, const Box& box,
              std::vector<std::int64_t>& ids) const;

  std::vector<std::int64_t> order_;  // id at each position
  std::vector<Level> levels_;
};

}  // namespace vicinal::geo
