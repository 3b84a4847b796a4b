// Two features cut to the box that both boxes share, and what the cut may be off by (contract clause 18; overlap.hpp
// says what for). One source for the host and for devices, whose bits must be the same: all of it is constexpr, and a
// chain of pieces is whatever has empty, back, push_back and pop_back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "formulas/overlap/plane.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal::geo {

struct Piece {
  Point from;
  Point to;
};

/// A box with its own corner as origin.
struct Window {
  Point corner;
  double width = 0;
  double height = 0;
};

/// A feature's edges: its runs, whose `first` counts in `points`.
struct Edges {
  const Point* points = nullptr;
  const Run* runs = nullptr;
  std::int64_t count = 0;  ///< runs
};

inline Edges edges_of(const Layer& layer, std::int64_t feature) {
  const auto i = static_cast<std::size_t>(feature);
  return {layer.points.data(), layer.runs.data() + layer.first_run[i], layer.first_run[i + 1] - layer.first_run[i]};
}

enum class Measure : std::uint8_t { area, flat_edges, steep_edges };

inline constexpr std::int64_t kWhole = 4096;  // pairs of pieces that are not worth cutting a box for
inline constexpr double kEpsilon = 0x1p-53;
inline constexpr double kMargin = 0x1.3p-7;

constexpr double clamp(double v, double low, double high) {
  return v < low ? low : v > high ? high : v;
}

constexpr double magnitude(double v) {
  return v < 0 ? -v : v;
}

constexpr Box common(const Box& a, const Box& b) {
  return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}

constexpr bool is_flat(const Box& box) {
  return !(box.x0 < box.x1 && box.y0 < box.y1);
}

/// For lengths: borders along the box's own sides count, and the box is halved where no border is likely to run.
constexpr Box with_margin(const Box& box) {
  const double margin = kMargin * std::max(box.x1 - box.x0, box.y1 - box.y0);
  return {box.x0 - margin, box.y0 - margin, box.x1 + 2 * margin, box.y1 + 2 * margin};
}

template <class Chain>
constexpr void add_piece(Chain& chain, const Point& from, const Point& to, double ceiling) {
  if (from.x == to.x) return;
  if (from.y == ceiling && to.y == ceiling && !chain.empty()) {
    const Piece last = chain.back();
    if (last.to == from && last.from.y == ceiling) {  // one flat piece; back and forth is none
      chain.pop_back();
      if (last.from.x != to.x) chain.push_back({last.from, {to.x, ceiling}});
      return;
    }
  }
  chain.push_back({from, to});
}

/// The pieces of an edge between the floor and the ceiling of a window, from whose corner they are counted, at most
/// two; flat ones at the ceiling for what is above it.
template <class Chain>
constexpr void cut_edge(Chain& chain, const Point& from, const Point& to, const Window& window) {
  const double w = window.width;
  const double h = window.height;
  const Point p = {from.x - window.corner.x, from.y - window.corner.y};
  const Point q = {to.x - window.corner.x, to.y - window.corner.y};
  const double left = std::min(p.x, q.x);
  const double right = std::max(p.x, q.x);
  const double low = std::min(p.y, q.y);
  const double high = std::max(p.y, q.y);
  if (right <= 0 || left >= w || high <= 0 || left == right) return;
  if (left >= 0 && right <= w && low >= 0 && high <= h) return add_piece(chain, p, q, h);
  const double slope = (q.y - p.y) / (q.x - p.x);
  const auto height = [&](double x) { return clamp(p.y + slope * (x - p.x), low, high); };
  Point a = {clamp(p.x, 0, w), p.y};
  Point b = {clamp(q.x, 0, w), q.y};
  if (a.x != p.x) a.y = height(a.x);
  if (b.x != q.x) b.y = height(b.x);
  if (a.y <= 0 && b.y <= 0) return;
  const auto crossing = [&](double y) {
    return clamp(p.x + (y - p.y) / slope, std::min(a.x, b.x), std::max(a.x, b.x));
  };
  if (a.y < 0) a = {crossing(0), 0};  // what is below the floor adds nothing
  if (b.y < 0) b = {crossing(0), 0};
  if (a.y >= h && b.y >= h) return add_piece(chain, {a.x, h}, {b.x, h}, h);
  if (a.y > h) {
    const Point at = {crossing(h), h};
    add_piece(chain, {a.x, h}, at, h);
    a = at;
  }
  if (b.y > h) {
    const Point at = {crossing(h), h};
    add_piece(chain, a, at, h);
    add_piece(chain, at, {b.x, h}, h);
    return;
  }
  add_piece(chain, a, b, h);
}

/// Appends the pieces of a feature's edges within a box. `turned`: x and y change places, and with them left and right,
/// so that rings run backwards.
template <class Chain>
constexpr void cut_edges(Chain& chain, const Edges& edges, const Box& box, bool turned) {
  const auto place = [turned](const Point& p) { return turned ? Point{p.y, p.x} : p; };
  const Point corner = place({box.x0, box.y0});
  const Point far = place({box.x1, box.y1});
  const Window window = {corner, far.x - corner.x, far.y - corner.y};
  for (std::int64_t k = 0; k < edges.count; ++k) {
    const Run& run = edges.runs[turned ? edges.count - 1 - k : k];
    const Point low = place({run.box.x0, run.box.y0});
    const Point high = place({run.box.x1, run.box.y1});
    if (high.x <= corner.x || low.x >= far.x || high.y <= corner.y) continue;
    const Point* const p = edges.points + run.first;
    if (low.y >= far.y) {
      const double from = clamp(place(p[0]).x - corner.x, 0, window.width);
      const double to = clamp(place(p[run.edges]).x - corner.x, 0, window.width);
      add_piece(chain, {turned ? to : from, window.height}, {turned ? from : to, window.height}, window.height);
    } else {
      for (std::int64_t e = 0; e < run.edges; ++e) {
        const std::int64_t at = turned ? run.edges - 1 - e : e;
        cut_edge(chain, place(p[turned ? at + 1 : at]), place(p[turned ? at : at + 1]), window);
      }
    }
  }
}

/// A piece as sums want it (simd/overlap_kernels.hpp).
struct PieceLine {
  double left = 0;
  double right = 0;
  double height = 0;
  double slope = 0;
  double sign = 0;
  double weight = 0;
};

/// Pieces that only stand for what is above the ceiling have no length of their own. A piece of an edge at 45 degrees
/// is a flat one, however it was rounded.
constexpr PieceLine line_of(const Piece& piece, Measure measure, double ceiling) {
  const bool rightwards = piece.from.x < piece.to.x;
  const Point& l = rightwards ? piece.from : piece.to;
  const Point& r = rightwards ? piece.to : piece.from;
  // A slope beyond the largest float belongs to a piece narrower than its height by 2^-1023, over which any height
  // between its ends is within the bound.
  constexpr double kSteepest = std::numeric_limits<double>::max();
  const double slope = clamp((r.y - l.y) / (r.x - l.x), -kSteepest, kSteepest);
  PieceLine line = {l.x, r.x, l.y, slope, rightwards ? 1.0 : -1.0, 0};
  if (measure == Measure::area) return line;
  const double steepest = measure == Measure::flat_edges ? 1 + 0x1p-30 : 1 - 0x1p-30;
  const bool counts = magnitude(line.slope) <= steepest && !(l.y == ceiling && r.y == ceiling);
  if (counts) line.weight = std::sqrt(1 + line.slope * line.slope);
  return line;
}

/// Rounding of a sum of areas: a height is off by at most 4 roundings of at most the ceiling H, so a term by 24 w H
/// eps; adding up rounds each accumulator once a vector. `span` is the sum of all w.
constexpr double sum_error(double ceiling, double span, std::int64_t pieces_a, std::int64_t pieces_b) {
  const std::int64_t vectors = (pieces_b + 7) / 8;
  const double additions = static_cast<double>(pieces_a) * static_cast<double>(vectors);
  return kEpsilon * ceiling * span * (32 + additions);
}

/// Cutting an edge at the shared box moves it by some roundings of its own length, along a side of the box at most.
constexpr double cut_error(const Box& first, const Box& second, std::int64_t pieces) {
  const Box box = common(first, second);
  const double extent = std::max(std::max(first.x1 - first.x0, first.y1 - first.y0),
                                 std::max(second.x1 - second.x0, second.y1 - second.y0));
  return 16 * kEpsilon * ((box.x1 - box.x0) + (box.y1 - box.y0)) * extent * static_cast<double>(pieces);
}

/// What a layer's own area of a feature may be off by: some roundings of the box for each edge.
constexpr double area_error(const Box& box, std::int64_t run_count) {
  const auto runs = static_cast<double>(run_count);
  const double extent = std::max(box.x1 - box.x0, box.y1 - box.y0);
  return 0x1p-49 * 16 * runs * (runs + 1) * extent * extent;
}

/// Whether what they share, known to within `error`, is more than nothing and less than either.
constexpr bool plainly_overlap(double shared, double error, double least_a, double least_b) {
  return shared > error && shared < least_a - error && shared < least_b - error;
}

/// The area that goes with a relation, `shared` being the sum.
constexpr double area_by(RegionRelation relation, double shared, double area_a, double area_b) {
  switch (relation) {
    case RegionRelation::disjoint:
    case RegionRelation::touches:
      return 0;
    case RegionRelation::covered_by:
    case RegionRelation::within:
    case RegionRelation::equals:
      return area_a;
    case RegionRelation::covers:
    case RegionRelation::contains:
      return area_b;
    case RegionRelation::overlaps:
      break;
  }
  return std::min(shared, std::min(area_a, area_b));
}

}  // namespace vicinal::geo
