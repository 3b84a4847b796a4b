// See border.hpp.
#include "geo/border.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/exact_sum.hpp"
#include "formulas/overlap/orientation.hpp"

namespace vicinal::geo {
namespace {

constexpr std::int64_t kCornersPerBlock = 16;
constexpr double kSureShare = 0x1p-30;  // of the doubled area: a larger error asks for the exact sum

/// Without branches, which no one could foresee.
inline __attribute__((always_inline)) bool holds(const Box& box, const Point& p) {
  return std::max(std::max(box.x0 - p.x, p.x - box.x1), std::max(box.y0 - p.y, p.y - box.y1)) <= 0;
}

/// A point in one register.
using Two = double __attribute__((vector_size(16)));

inline Two two(const double* xy) {
  Two both;
  std::memcpy(&both, xy, sizeof both);
  return both;
}

bool precedes(const Point& p, const Point& q) {
  return p.x != q.x ? p.x < q.x : p.y < q.y;
}

/// Twice the area of a closed ring, positive where it runs clockwise; the sign is exact.
/// The float64 sum has n - 2 terms of two products each. Differences and products round to within (1 + eps)^3, a term
/// once more and the sum at most n times: the error is at most (n + 4) eps times the sum of all |product|, but for
/// terms of eps squared, which the factor 2 pays for.
double doubled_area(const Point* p, std::int64_t edges) {
  double sum = 0;
  double size = 0;
  for (std::int64_t e = 1; e + 1 < edges; ++e) {
    const double first = (p[e].y - p[0].y) * (p[e + 1].x - p[0].x);
    const double second = (p[e].x - p[0].x) * (p[e + 1].y - p[0].y);
    sum += first - second;
    size += std::fabs(first) + std::fabs(second);
  }
  const double error = static_cast<double>(edges + 4) * 0x1p-52 * size;
  if (error <= kSureShare * std::fabs(sum)) return sum;
  core::ExactSum exact;
  for (std::int64_t e = 0; e < edges; ++e) {
    add_product(exact, p[e].y, p[e + 1].x);
    add_product(exact, -p[e].x, p[e + 1].y);
  }
  return exact.rounded();
}

}  // namespace

double turn_ring(Point* ring, std::int64_t edges, bool shell) {
  const double doubled = doubled_area(ring, edges);
  if ((doubled < 0) == shell) std::reverse(ring, ring + edges + 1);
  const double area = std::fabs(doubled) / 2;
  return shell ? area : -area;
}

bool touches_itself(const double* xy, std::int64_t points) {
  for (std::int64_t e = 0; e < points; ++e) {
    const double* const from = xy + 2 * e;
    const double* const to = e + 1 < points ? from + 2 : xy;
    const Two low = two(from) < two(to) ? two(from) : two(to);
    const Two high = two(from) < two(to) ? two(to) : two(from);
    const auto holds_any = [&](std::int64_t first, std::int64_t last) {
      for (const double* corner = xy + 2 * first; corner < xy + 2 * last; corner += 2) {
        const auto within = (low <= two(corner)) & (two(corner) <= high);
        if ((within[0] & within[1]) != 0 &&
            orientation({from[0], from[1]}, {to[0], to[1]}, {corner[0], corner[1]}) == 0) {
          return true;
        }
      }
      return false;
    };
    // All corners but its own two.
    if (holds_any(e + 1 < points ? 0 : 1, e) || holds_any(e + 2, points)) return true;
  }
  return false;
}

void Border::clear() {
  rings_.clear();
  corners_.clear();
  next_.clear();
}

void Border::add_ring(const double* xy, std::int64_t points, bool shell) {
  const auto first = static_cast<std::int64_t>(corners_.size());
  for (std::int64_t i = 0; i < points; ++i) {
    const Point p = {xy[2 * i], xy[2 * i + 1]};
    if (static_cast<std::int64_t>(corners_.size()) == first || !(corners_.back() == p)) corners_.push_back(p);
  }
  const auto count = static_cast<std::int64_t>(corners_.size()) - first;
  for (std::int64_t i = 0; i < count; ++i) next_.push_back(first + (i + 1) % count);
  rings_.push_back({first, count, shell});
}

void Border::make_blocks() {
  blocks_.clear();
  sweep_.clear();
  const auto count = static_cast<std::int64_t>(corners_.size());
  Box whole = kEmptyBox;
  for (std::int64_t first = 0; first < count; first += kCornersPerBlock) {
    Block block = {kEmptyBox, kEmptyBox, first, std::min(first + kCornersPerBlock, count)};
    for (std::int64_t c = block.first; c < block.last; ++c) {
      widen(block.corners, corners_[static_cast<std::size_t>(c)]);
      widen(block.edges, corners_[static_cast<std::size_t>(next_[static_cast<std::size_t>(c)])]);
    }
    widen(block.edges, {block.corners.x0, block.corners.y0});
    widen(block.edges, {block.corners.x1, block.corners.y1});
    widen(whole, {block.corners.x0, block.corners.y0});
    widen(whole, {block.corners.x1, block.corners.y1});
    blocks_.push_back(block);
    sweep_.add(block.corners);
  }
  sweep_.sort(whole);
}

/// Calls found(edge, corner) for each corner of one block on an edge of another, the edge's own two ends left out,
/// until it says true.
template <class Found>
bool Border::contacts_of(const Block& edges, const Block& corners, const Found& found) const {
  for (std::int64_t e = edges.first; e < edges.last; ++e) {
    const std::int64_t end = next_[static_cast<std::size_t>(e)];
    const Point& from = corners_[static_cast<std::size_t>(e)];
    const Point& to = corners_[static_cast<std::size_t>(end)];
    const Box box = box_of(from, to);
    if (!meet(box, corners.corners)) continue;
    for (std::int64_t k = corners.first; k < corners.last; ++k) {
      const Point& corner = corners_[static_cast<std::size_t>(k)];
      if (k == e || k == end || !holds(box, corner)) continue;
      if (orientation(from, to, corner) == 0 && found(e, corner)) return true;
    }
  }
  return false;
}

template <class Found>
bool Border::find_contacts(const Found& found) const {
  for (const Block& block : blocks_) {
    if (token_.cancelled()) return false;
    const bool stopped = sweep_.find(block.edges, [&](std::int64_t other) {
      return contacts_of(block, blocks_[static_cast<std::size_t>(other)], found);
    });
    if (stopped) return true;
  }
  return false;
}

bool Border::touches_itself() {
  make_blocks();
  return find_contacts([](std::int64_t /*edge*/, const Point& /*corner*/) { return true; });
}

void Border::turn_rings() {
  area_ = 0;
  for (const Ring& ring : rings_) {
    const auto first = corners_.begin() + ring.first;
    cut_points_.assign(first, first + ring.count);
    cut_points_.push_back(*first);
    area_ += turn_ring(cut_points_.data(), ring.count, ring.shell);
    std::copy(cut_points_.begin(), cut_points_.end() - 1, first);
  }
}

void Border::cut() {
  turn_rings();
  make_blocks();
  cut_edges();
  drop_doubled();
  cut_points_.clear();
  chains_.clear();
  for (const Ring& ring : rings_) {
    const auto piece = [&](std::int64_t corner) { return first_piece_[static_cast<std::size_t>(corner)]; };
    add_chains(piece(ring.first), piece(ring.first + ring.count));
  }
}

/// Pieces of all edges between the corners that lie on them.
void Border::cut_edges() {
  splits_.clear();
  find_contacts([this](std::int64_t edge, const Point& corner) {
    const Point& from = corners_[static_cast<std::size_t>(edge)];
    const Point& to = corners_[static_cast<std::size_t>(next_[static_cast<std::size_t>(edge)])];
    if (!(corner == from) && !(corner == to)) splits_.push_back({edge, corner});
    return false;
  });
  std::sort(splits_.begin(), splits_.end(), [this](const Split& x, const Split& y) {
    if (x.edge != y.edge) return x.edge < y.edge;
    const Point& from = corners_[static_cast<std::size_t>(x.edge)];
    const bool rises = precedes(from, corners_[static_cast<std::size_t>(next_[static_cast<std::size_t>(x.edge)])]);
    return rises ? precedes(x.at, y.at) : precedes(y.at, x.at);
  });
  pieces_.clear();
  first_piece_.clear();
  auto split = splits_.begin();
  for (std::size_t e = 0; e < corners_.size(); ++e) {
    first_piece_.push_back(static_cast<std::int64_t>(pieces_.size()));
    Point from = corners_[e];
    for (; split != splits_.end() && split->edge == static_cast<std::int64_t>(e); ++split) {
      if (split->at == from) continue;  // several corners there
      pieces_.push_back({from, split->at, true});
      from = split->at;
    }
    const Point& to = corners_[static_cast<std::size_t>(next_[e])];
    if (!(from == to)) pieces_.push_back({from, to, true});
  }
  first_piece_.push_back(static_cast<std::int64_t>(pieces_.size()));
}

/// Of pieces between the same two points, one in each direction goes as long as there are both.
void Border::drop_doubled() {
  const auto rises = [this](std::int64_t k) {
    const Piece& piece = pieces_[static_cast<std::size_t>(k)];
    return precedes(piece.from, piece.to);
  };
  const auto ends = [&](std::int64_t k) {
    const Piece& piece = pieces_[static_cast<std::size_t>(k)];
    return rises(k) ? std::pair{piece.from, piece.to} : std::pair{piece.to, piece.from};
  };
  order_.resize(pieces_.size());
  for (std::size_t k = 0; k < order_.size(); ++k) order_[k] = static_cast<std::int64_t>(k);
  std::sort(order_.begin(), order_.end(), [&](std::int64_t x, std::int64_t y) {
    const auto [x_low, x_high] = ends(x);
    const auto [y_low, y_high] = ends(y);
    if (!(x_low == y_low)) return precedes(x_low, y_low);
    if (!(x_high == y_high)) return precedes(x_high, y_high);
    return rises(x) != rises(y) ? rises(x) : x < y;
  });
  for (std::size_t k = 0; k < order_.size();) {
    std::size_t end = k;
    std::size_t up = 0;
    for (; end < order_.size() && ends(order_[end]) == ends(order_[k]); ++end) up += rises(order_[end]) ? 1 : 0;
    const std::size_t pairs = std::min(up, end - k - up);
    for (std::size_t i = 0; i < pairs; ++i) {
      pieces_[static_cast<std::size_t>(order_[k + i])].kept = false;
      pieces_[static_cast<std::size_t>(order_[k + up + i])].kept = false;
    }
    k = end;
  }
}

/// The kept ones of a ring's pieces, in chains that are closed or end where pieces are missing.
void Border::add_chains(std::int64_t first, std::int64_t last) {
  const std::int64_t count = last - first;
  std::int64_t begin = 0;  // a missing piece, if there is one: no chain goes over it
  while (begin < count && pieces_[static_cast<std::size_t>(first + begin)].kept) ++begin;
  bool open = false;
  for (std::int64_t i = 0; i < count; ++i) {
    const Piece& piece = pieces_[static_cast<std::size_t>(first + (begin + i) % count)];
    if (piece.kept && !open) {
      chains_.push_back({static_cast<std::int64_t>(cut_points_.size()), 0});
      cut_points_.push_back(piece.from);
    }
    open = piece.kept;
    if (!open) continue;
    cut_points_.push_back(piece.to);
    ++chains_.back().edges;
  }
}

}  // namespace vicinal::geo
