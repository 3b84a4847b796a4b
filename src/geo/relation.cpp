// See relation.hpp.
//
// Why this decides. The edges of a border meet in common end points only (border.hpp). So where two edges cross, no
// corner is at the crossing, each region has points inside and outside the other there, and they overlap. Else every
// piece of a border between two contacts lies inside, outside or along the other border as a whole, and its first
// stretch at a contact tells which, by the sector of the other border that it enters: sides of lines through input
// points. Each edge of the other border that comes to a contact ends there or passes it, and has a contact of its own
// there, so that no sector is missed. A chain without a contact lies where any of its points does. A border inside the
// other region shows interiors that meet and a part that only the other one has; one outside shows a part of its own;
// two along each other show interiors that meet where their regions are on the same side, else a part of each own.
#include "geo/relation.hpp"

#include <algorithm>
#include <array>

#include "core/infinity.hpp"
#include "formulas/overlap/orientation.hpp"

namespace vicinal::geo {
namespace {

bool on_segment(const Point& p, const Point& from, const Point& to) {
  return std::min(from.x, to.x) <= p.x && p.x <= std::max(from.x, to.x) && std::min(from.y, to.y) <= p.y &&
         p.y <= std::max(from.y, to.y) && orientation(from, to, p) == 0;
}

/// The ray from `at` through `to` is in the open half turn to the left of the one through `from`, or along the one
/// straight on; 0: along `from` itself. Angles counted counterclockwise from `from` are compared by this half first.
int half_of(const Point& at, const Point& from, const Point& to) {
  const int side = orientation(at, from, to);
  if (side != 0) return side > 0 ? 1 : 3;
  const bool same = (from.x > at.x) == (to.x > at.x) && (from.x < at.x) == (to.x < at.x) &&
                    (from.y > at.y) == (to.y > at.y) && (from.y < at.y) == (to.y < at.y);
  return same ? 0 : 2;
}

/// Whether, turning left around `at` from the ray through `from`, the ray through p comes before that through q.
bool before(const Point& at, const Point& from, const Point& p, const Point& q) {
  const int first = half_of(at, from, p);
  const int second = half_of(at, from, q);
  if (first != second) return first < second;
  return (first == 1 || first == 3) && orientation(at, p, q) > 0;
}

enum class Where : std::uint8_t { outside, inside, along, against };

/// A ray of a border at a contact: `out` where the edge leaves it, else where it comes in.
struct Ray {
  Point to;
  bool out;
};

/// Where the first stretch of the ray from `at` through `to` lies, `out` telling which way its own border runs. An edge
/// has its region on its right. Turning left from the ray, the first ray of the other border that is met tells: an edge
/// that leaves has its region on its right, which is where we come from.
Where sector(const Point& at, const Ray& ray, const std::vector<Ray>& others) {
  const Ray* nearest = nullptr;
  for (const Ray& other : others) {
    if (half_of(at, ray.to, other.to) == 0) return other.out == ray.out ? Where::along : Where::against;
    if (nearest == nullptr || before(at, ray.to, other.to, nearest->to)) nearest = &other;
  }
  return nearest != nullptr && nearest->out ? Where::inside : Where::outside;
}

bool inside(const Point& p, const Layer& layer, std::int64_t feature) {
  const Box& whole = layer.boxes[static_cast<std::size_t>(feature)];
  if (p.x < whole.x0 || p.x > whole.x1 || p.y < whole.y0 || p.y > whole.y1) return false;
  bool odd = false;
  for (std::int64_t r = layer.first_run[static_cast<std::size_t>(feature)];
       r < layer.first_run[static_cast<std::size_t>(feature) + 1]; ++r) {
    const Run& run = layer.runs[static_cast<std::size_t>(r)];
    if (run.box.y1 < p.y || run.box.y0 > p.y || run.box.x1 < p.x) continue;
    const Point* q = layer.points.data() + run.first;
    for (std::int64_t e = 0; e < run.edges; ++e) {
      const bool up = q[e].y <= p.y && q[e + 1].y > p.y;
      const bool down = q[e + 1].y <= p.y && q[e].y > p.y;
      if (up || down) odd ^= orientation(q[e], q[e + 1], p) == (up ? 1 : -1);
    }
  }
  return odd;
}

}  // namespace

void RelationOf::gather(Side& side, const Layer& layer, std::int64_t feature, const Box& box) {
  side.edges.clear();
  side.contacts.clear();
  side.chains.clear();
  for (std::int64_t r = layer.first_run[static_cast<std::size_t>(feature)];
       r < layer.first_run[static_cast<std::size_t>(feature) + 1]; ++r) {
    const Run& run = layer.runs[static_cast<std::size_t>(r)];
    if (!meet(run.box, box)) continue;
    const Point* const p = layer.points.data() + run.first;
    for (std::int64_t e = 0; e < run.edges; ++e) {
      if (p[e] == p[e + 1]) continue;
      if (meet(box_of(p[e], p[e + 1]), box)) side.edges.push_back({p[e], p[e + 1], run.chain});
    }
  }
}

/// Finds contacts; true, and nothing more, where two edges cross.
bool RelationOf::crossed(const Box& shared) {
  sweep_.clear();
  for (const Edge& edge : b_.edges) sweep_.add(box_of(edge.from, edge.to));
  sweep_.sort(shared);
  for (std::size_t i = 0; i < a_.edges.size(); ++i) {
    const Edge& e = a_.edges[i];
    const bool crosses = sweep_.find(box_of(e.from, e.to), [&](std::int64_t other) {
      const Edge& f = b_.edges[static_cast<std::size_t>(other)];
      const int from_f = orientation(e.from, e.to, f.from);
      const int to_f = orientation(e.from, e.to, f.to);
      if (from_f * to_f > 0) return false;
      const int from_e = orientation(f.from, f.to, e.from);
      const int to_e = orientation(f.from, f.to, e.to);
      if (from_e * to_e > 0) return false;
      if (from_f * to_f < 0 && from_e * to_e < 0) return true;
      const auto touch = [&](const Point& p) {
        facts_.meet = true;
        a_.contacts.push_back({p, static_cast<std::int64_t>(i), other});
        b_.contacts.push_back({p, other, static_cast<std::int64_t>(i)});
      };
      if (from_f == 0 && on_segment(f.from, e.from, e.to)) touch(f.from);
      if (to_f == 0 && on_segment(f.to, e.from, e.to)) touch(f.to);
      if (from_e == 0 && e.from != f.from && e.from != f.to && on_segment(e.from, f.from, f.to)) touch(e.from);
      if (to_e == 0 && e.to != f.from && e.to != f.to && on_segment(e.to, f.from, f.to)) touch(e.to);
      return false;
    });
    if (crosses) return true;
  }
  return false;
}

void RelationOf::classify_contacts(const Side& own, const Side& other, bool first) {
  std::vector<Ray> others;
  const auto add_rays = [](const Edge& edge, const Point& at, std::vector<Ray>& rays) {
    if (edge.to != at) rays.push_back({edge.to, true});
    if (edge.from != at) rays.push_back({edge.from, false});
  };
  std::vector<Ray> rays;
  for (std::size_t k = 0; k < own.contacts.size() && !facts_.overlap();) {
    const Point at = own.contacts[k].at;
    others.clear();
    rays.clear();
    std::int64_t last = -1;
    std::size_t end = k;
    for (; end < own.contacts.size() && own.contacts[end].at == at; ++end) {
      const Contact& contact = own.contacts[end];
      if (contact.own != last) add_rays(own.edges[static_cast<std::size_t>(contact.own)], at, rays);
      last = contact.own;
      add_rays(other.edges[static_cast<std::size_t>(contact.other)], at, others);
    }
    k = end;
    for (const Ray& ray : rays) {
      const Where where = sector(at, ray, others);
      const bool here = where == Where::inside;
      facts_.interiors |= here || where == Where::along;
      const bool outside = where == Where::outside;
      const bool both = where == Where::against;
      (first ? facts_.only_a : facts_.only_b) |= outside || both;
      (first ? facts_.only_b : facts_.only_a) |= here || both;
    }
  }
}

void RelationOf::classify_chains(const Layer& own, std::int64_t i, const Side& side, const Layer& other, std::int64_t j,
                                 bool first) {
  std::int64_t chain = -1;
  for (std::int64_t r = own.first_run[static_cast<std::size_t>(i)];
       r < own.first_run[static_cast<std::size_t>(i) + 1] && !facts_.overlap(); ++r) {
    const Run& run = own.runs[static_cast<std::size_t>(r)];
    if (run.chain == chain) continue;
    chain = run.chain;
    if (std::binary_search(side.chains.begin(), side.chains.end(), chain)) continue;
    if (inside(own.points[static_cast<std::size_t>(run.first)], other, j)) {
      facts_.interiors = true;
      (first ? facts_.only_b : facts_.only_a) = true;
    } else {
      (first ? facts_.only_a : facts_.only_b) = true;
    }
  }
}

RegionRelation RelationOf::operator()(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j) {
  const Box& first = a.boxes[static_cast<std::size_t>(i)];
  const Box& second = b.boxes[static_cast<std::size_t>(j)];
  if (!meet(first, second)) return RegionRelation::disjoint;
  const Box box = {std::max(first.x0, second.x0), std::max(first.y0, second.y0), std::min(first.x1, second.x1),
                   std::min(first.y1, second.y1)};
  facts_ = {};
  gather(a_, a, i, box);
  gather(b_, b, j, box);
  if (crossed(box)) return RegionRelation::overlaps;
  for (Side* side : {&a_, &b_}) {
    std::sort(side->contacts.begin(), side->contacts.end(), [](const Contact& x, const Contact& y) {
      if (x.at.x != y.at.x) return x.at.x < y.at.x;
      if (x.at.y != y.at.y) return x.at.y < y.at.y;
      return x.own != y.own ? x.own < y.own : x.other < y.other;
    });
    for (const Contact& contact : side->contacts) {
      side->chains.push_back(side->edges[static_cast<std::size_t>(contact.own)].chain);
    }
    std::sort(side->chains.begin(), side->chains.end());
    side->chains.erase(std::unique(side->chains.begin(), side->chains.end()), side->chains.end());
  }
  classify_contacts(a_, b_, true);
  classify_contacts(b_, a_, false);
  classify_chains(a, i, a_, b, j, true);
  classify_chains(b, j, b_, a, i, false);
  if (!facts_.interiors) return facts_.meet ? RegionRelation::touches : RegionRelation::disjoint;
  if (facts_.only_a && facts_.only_b) return RegionRelation::overlaps;
  if (facts_.only_a) return facts_.meet ? RegionRelation::covers : RegionRelation::contains;
  if (facts_.only_b) return facts_.meet ? RegionRelation::covered_by : RegionRelation::within;
  return RegionRelation::equals;
}

}  // namespace vicinal::geo
