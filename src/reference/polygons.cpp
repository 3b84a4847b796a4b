// See polygons.hpp.
#include "reference/polygons.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace vicinal::reference {
namespace {

using Real = __float128;
constexpr double kNothing = 1e-20;  // what 113 bits may leave of 0

struct Corner {
  Real x;
  Real y;
};
struct Edge {
  Corner p;
  Corner q;
  int side;  // 0: a, 1: b
};

Real absolute(Real v) {
  return v < 0 ? -v : v;
}
Real root(Real v) {
  if (v <= 0) return 0;
  Real r = std::sqrt(static_cast<double>(v));
  for (int i = 0; i < 4; ++i) r = (r + v / r) / 2;
  return r;
}
Real distance(const Corner& p, const Corner& q) {
  return root((p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y));
}

void add_edges(const PolygonsView& polygons, std::int64_t feature, int side, std::vector<Edge>& edges) {
  const auto at = [](std::span<const std::int64_t> list, std::int64_t i) { return list[static_cast<std::size_t>(i)]; };
  for (std::int64_t ring = at(polygons.parts, at(polygons.features, feature));
       ring < at(polygons.parts, at(polygons.features, feature + 1)); ++ring) {
    const std::int64_t first = at(polygons.rings, ring);
    const std::int64_t count = at(polygons.rings, ring + 1) - first;
    for (std::int64_t k = 0; k < count; ++k) {
      const auto corner = [&](std::int64_t c) {
        const auto p = static_cast<std::size_t>(2 * (first + c % count));
        return Corner{polygons.points[p], polygons.points[p + 1]};
      };
      const Edge edge = {corner(k), corner(k + 1), side};
      if (edge.p.x != edge.q.x || edge.p.y != edge.q.y) edges.push_back(edge);
    }
  }
}

Real height(const Edge& edge, Real x) {
  return edge.p.y + (edge.q.y - edge.p.y) * (x - edge.p.x) / (edge.q.x - edge.p.x);
}

/// Where two edges that are not parallel meet, as places along the first and the second in [0, 1].
bool crossing(const Edge& e, const Edge& f, Real& s, Real& t) {
  const Corner d = {e.q.x - e.p.x, e.q.y - e.p.y};
  const Corner g = {f.q.x - f.p.x, f.q.y - f.p.y};
  const Real determinant = d.x * g.y - d.y * g.x;
  if (determinant == 0) return false;
  const Corner w = {f.p.x - e.p.x, f.p.y - e.p.y};
  s = (w.x * g.y - w.y * g.x) / determinant;
  t = (w.x * d.y - w.y * d.x) / determinant;
  const Real slack = 1e-28;
  return s >= -slack && s <= 1 + slack && t >= -slack && t <= 1 + slack;
}

Real to_segment(const Corner& c, const Edge& e) {
  const Corner d = {e.q.x - e.p.x, e.q.y - e.p.y};
  Real s = ((c.x - e.p.x) * d.x + (c.y - e.p.y) * d.y) / (d.x * d.x + d.y * d.y);
  s = s < 0 ? 0 : s > 1 ? 1 : s;
  return distance(c, {e.p.x + s * d.x, e.p.y + s * d.y});
}

/// Whether the side covers the place, by crossings of a line straight up; not for places on its border.
bool covers(const std::vector<Edge>& edges, int side, const Corner& c) {
  bool odd = false;
  for (const Edge& e : edges) {
    if (e.side != side || (e.p.x <= c.x) == (e.q.x <= c.x)) continue;
    if (height(e, c.x) > c.y) odd = !odd;
  }
  return odd;
}

/// The length of one side's border that lies inside the other, and the length that runs along the other's border.
void lengths(const std::vector<Edge>& edges, int side, Real& within, Real& along) {
  for (const Edge& e : edges) {
    if (e.side != side) continue;
    std::vector<Real> cuts = {0, 1};
    const Real length = distance(e.p, e.q);
    for (const Edge& f : edges) {
      if (f.side == side) continue;
      Real s = 0;
      Real t = 0;
      if (crossing(e, f, s, t)) cuts.push_back(s);
      for (const Corner& c : {f.p, f.q}) {
        if (static_cast<double>(to_segment(c, e)) < kNothing) cuts.push_back(distance(e.p, c) / length);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
      const Real from = cuts[k] < 0 ? Real(0) : cuts[k];
      const Real to = cuts[k + 1] > 1 ? Real(1) : cuts[k + 1];
      if (to - from < Real(1e-25)) continue;
      const Real middle = (from + to) / 2;
      const Corner c = {e.p.x + middle * (e.q.x - e.p.x), e.p.y + middle * (e.q.y - e.p.y)};
      bool on = false;
      for (const Edge& f : edges) on |= f.side != side && static_cast<double>(to_segment(c, f)) < kNothing;
      if (on) {
        along += (to - from) * length;
      } else if (covers(edges, 1 - side, c)) {
        within += (to - from) * length;
      }
    }
  }
}

bool borders_meet(const std::vector<Edge>& edges) {
  for (const Edge& e : edges) {
    for (const Edge& f : edges) {
      if (e.side == f.side) continue;
      Real s = 0;
      Real t = 0;
      if (crossing(e, f, s, t)) return true;
      for (const Corner& c : {f.p, f.q}) {
        if (static_cast<double>(to_segment(c, e)) < kNothing) return true;
      }
      for (const Corner& c : {e.p, e.q}) {
        if (static_cast<double>(to_segment(c, f)) < kNothing) return true;
      }
    }
  }
  return false;
}

}  // namespace

Shared shared(const PolygonsView& a, std::int64_t i, const PolygonsView& b, std::int64_t j) {
  std::vector<Edge> edges;
  add_edges(a, i, 0, edges);
  add_edges(b, j, 1, edges);
  std::vector<Real> xs;
  for (const Edge& e : edges) {
    xs.push_back(e.p.x);
    for (const Edge& f : edges) {
      Real s = 0;
      Real t = 0;
      if (crossing(e, f, s, t)) xs.push_back(e.p.x + s * (e.q.x - e.p.x));
    }
  }
  std::sort(xs.begin(), xs.end());
  Real both = 0;
  Real area[2] = {0, 0};
  for (std::size_t k = 0; k + 1 < xs.size(); ++k) {
    const Real width = xs[k + 1] - xs[k];
    if (width <= 0) continue;
    const Real middle = xs[k] + width / 2;
    struct Height {
      Real y;
      int side;
    };
    std::vector<Height> heights;
    for (const Edge& e : edges) {
      if ((e.p.x <= middle) != (e.q.x <= middle)) heights.push_back({height(e, middle), e.side});
    }
    std::sort(heights.begin(), heights.end(), [](const Height& p, const Height& q) { return p.y < q.y; });
    bool in[2] = {false, false};
    for (std::size_t h = 0; h + 1 < heights.size(); ++h) {
      in[heights[h].side] = !in[heights[h].side];
      const Real piece = (heights[h + 1].y - heights[h].y) * width;
      if (in[0]) area[0] += piece;
      if (in[1]) area[1] += piece;
      if (in[0] && in[1]) both += piece;
    }
  }
  Shared result;
  result.area = static_cast<double>(both);
  result.area_a = static_cast<double>(area[0]);
  result.area_b = static_cast<double>(area[1]);
  Real within = 0;
  Real along[2] = {0, 0};
  lengths(edges, 0, within, along[0]);
  lengths(edges, 1, within, along[1]);
  result.perimeter = static_cast<double>(within + (along[0] + along[1]) / 2);
  const bool interiors = result.area > kNothing;
  const bool only_a = static_cast<double>(absolute(area[0] - both)) > kNothing;
  const bool only_b = static_cast<double>(absolute(area[1] - both)) > kNothing;
  const bool meet = borders_meet(edges);
  if (!interiors) {
    result.relation = meet ? RegionRelation::touches : RegionRelation::disjoint;
  } else if (only_a && only_b) {
    result.relation = RegionRelation::overlaps;
  } else if (only_a) {
    result.relation = meet ? RegionRelation::covers : RegionRelation::contains;
  } else if (only_b) {
    result.relation = meet ? RegionRelation::covered_by : RegionRelation::within;
  } else {
    result.relation = RegionRelation::equals;
  }
  return result;
}

}  // namespace vicinal::reference
