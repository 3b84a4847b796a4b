// Orderings for a sparse factor, ours: points near each other are put into cells (a kd order of their coordinates); the
// graph of M is then dissected: a part is halved along its longest way through the cells, and a minimum vertex cut of
// the band around that line is its separator (George 1973, nested dissection; Lipton and Tarjan 1979).
// Parts are independent of each other, so that every thread count gives the same ordering.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "solver/rows.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

inline constexpr Point kCellPoints = 16;  ///< of a leaf at most, and half of them at least where there are more
/// Points in the order of a kd-tree's leaves, and where each leaf (a cell) begins.
struct Cells {
  std::vector<Point> order;  ///< [n]
  std::vector<Point> first;  ///< [cells + 1] positions in `order`
};
/// Of coordinates [n, d], float32, row-major: O(n log n). Polls for cancellation.
Cells kd_cells(const Context& ctx, const core::RawVector<float>& coordinates, std::int64_t d);

/// The graph of M by the blocks that make it: two points are neighbors where they share one. Values are not looked at.
struct Pattern {
  const LocalRows& a;
  Incidence in;
};
inline Pattern pattern_of(const Context& /*ctx*/, const LocalRows& a, Incidence in) {
  return {a, std::move(in)};
}

/// The same written down, some three times as long: M without its diagonal, [n] lists, ascending.
struct Adjacency {
  std::vector<std::int64_t> first;  ///< [n + 1]
  std::vector<Point> neighbors;
};
Adjacency adjacency_of(const Context& ctx, const Pattern& pattern);

/// A tree of separators and what is left between them, children before parents: node t owns points order[begin, end),
/// which no edge joins with points outside of its ancestors and descendants.
struct Dissection {
  struct Node {
    Point begin = 0;
    Point end = 0;
    std::int32_t parent = -1;
  };
  std::vector<Point> order;  ///< [n] old number of each new one
  std::vector<Node> nodes;
};
/// What dissects small parts on a device: it puts the points of each, order[begin, end), in the order of elimination,
/// and fills in `splits`, in which none is done.
struct SmallParts;
struct Splits;
using DissectOnDevice = std::function<void(const SmallParts& parts, Point* order, Splits& splits)>;

/// `near`: where each of a cell order's cells begins, in the pattern's numbering. O(n width + n log n), and flows
/// through bands of O(sqrt(n)) points on two-dimensional data. With a device its small parts are dissected there; the
/// dissection is the same. Polls for cancellation and tells its progress as "order".
Dissection dissect(const Context& ctx, const Pattern& pattern, const std::vector<Point>& near,
                   const DissectOnDevice& device = {});

/// Bytes that the incidence of n such blocks and their dissection take at most, beside the blocks.
std::uint64_t ordering_bytes(const Context& ctx, std::int64_t n, std::int64_t width);

/// The blocks of the points that are listed, point i called order[i] before. Their columns must all be listed. Without
/// values where `a` has none.
LocalRows renumbered(const Context& ctx, const LocalRows& a, const std::vector<Point>& order);

}  // namespace vicinal::solver
