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
  static constexpr std::size_t kWidth = 16;  // children of a node
  struct Wide {
    float x0, y0, x1, y1;
  };
  // Sixteen boxes side by side as float32 rounded outwards, which four compares each of a vector of them ask.
  struct alignas(64) Node {
    float x0[kWidth];
    float y0[kWidth];
    float x1[kWidth];
    float y1[kWidth];
  };
  void search(std::size_t level, std::size_t node, const Wide& wide, const Box& box,
              std::vector<std::int64_t>& ids) const;

  struct Leaf {
    Box box;  // as it is
    std::int64_t id;
  };
  std::vector<Leaf> leaves_;               // in the tree's order
  std::vector<std::vector<Node>> levels_;  // level 0 has the leaves' boxes, every other the nodes of the one below
};

}  // namespace vicinal::geo
