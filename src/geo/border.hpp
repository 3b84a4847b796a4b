// The border of a feature whose rings or parts touch each other, or themselves (contract clause 18): edges are cut at
// the corners that lie on them, and a stretch that two edges run along in opposite directions is left out, because the
// feature has the same on both of its sides. What is left meets in common end points only, which is what the exact
// relations rest on (relation.hpp). Corners are input points, so nothing is rounded.
//
// Cost for a feature of n edges: box tests of each block of 16 edges with the blocks that share a stretch of the
// feature's longer side with it, in practice O(n), at most n^2 / 256; O(n log n) to cut it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "geo/box_sweep.hpp"
#include "geo/layer.hpp"
#include "vicinal/context.hpp"

namespace vicinal::geo {

/// Turns a closed ring of `edges` edges: a shell clockwise, a hole the other way. Returns what it adds to a feature's
/// area, below 0 for a hole, within 2^-30 of itself. The direction is exact.
double turn_ring(Point* ring, std::int64_t edges, bool shell);

/// Whether a ring of at most kMaxSmallRing points, the first one not repeated, touches itself as
/// Border::touches_itself says.
inline constexpr std::int64_t kMaxSmallRing = 16;
bool touches_itself(const double* xy, std::int64_t points);

/// What one worker needs; keep it from feature to feature. Once the token is cancelled what it says means nothing.
class Border {
 public:
  explicit Border(CancelToken token) : token_(std::move(token)) {}

  /// Consecutive edges of one ring: edge e goes from points[first + e] to points[first + e + 1].
  struct Chain {
    std::int64_t first = 0;
    std::int64_t edges = 0;
  };

  void clear();
  /// Adds a ring of three points or more, the first one not repeated.
  void add_ring(const double* xy, std::int64_t points, bool shell);
  /// Whether a corner lies on an edge that does not begin or end with it, or on another corner.
  bool touches_itself();
  /// Cuts the border of a feature that touches itself; then it is `chains` of `points`. Shells run clockwise, holes
  /// the other way.
  void cut();

  /// Of the feature that was cut.
  [[nodiscard]] double area() const { return area_; }
  [[nodiscard]] const std::vector<Point>& points() const { return cut_points_; }
  [[nodiscard]] const std::vector<Chain>& chains() const { return chains_; }

 private:
  struct Ring {
    std::int64_t first;  // of corners_
    std::int64_t count;
    bool shell;
  };
  struct Block {
    Box corners;  // of the points first .. last - 1
    Box edges;    // of the edges that begin with them
    std::int64_t first;
    std::int64_t last;
  };
  struct Piece {
    Point from;
    Point to;
    bool kept;
  };
  struct Split {
    std::int64_t edge;
    Point at;
  };

  void turn_rings();
  void make_blocks();
  template <class Found>
  bool find_contacts(const Found& found) const;
  template <class Found>
  bool contacts_of(const Block& edges, const Block& corners, const Found& found) const;
  void cut_edges();
  void drop_doubled();
  void add_chains(std::int64_t first, std::int64_t last);

  std::vector<Ring> rings_;
  std::vector<Point> corners_;
  std::vector<std::int64_t> next_;  // the corner that the edge from a corner goes to
  CancelToken token_;
  std::vector<Block> blocks_;
  BoxSweep sweep_;  // of the blocks' corners
  std::vector<Split> splits_;
  std::vector<Piece> pieces_;              // of all edges, in the order of the rings
  std::vector<std::int64_t> first_piece_;  // of each corner's edge
  std::vector<std::int64_t> order_;
  double area_ = 0;
  std::vector<Point> cut_points_;
  std::vector<Chain> chains_;
};

}  // namespace vicinal::geo
