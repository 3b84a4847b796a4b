// See lattice_region.hpp.
#include "lattice_region.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace vicinal::lattice {
namespace {

std::int64_t cross(const Corner& o, const Corner& p, const Corner& q) {
  return (p.x - o.x) * (q.y - o.y) - (p.y - o.y) * (q.x - o.x);
}

// ---- regions of triangles
// --------------------------------------------------------------------------------------------

using Edge = std::pair<Corner, Corner>;

/// Whether, turning clockwise from the ray o -> from, o -> p is met before o -> q.
bool clockwise_before(const Corner& o, const Corner& from, const Corner& p, const Corner& q) {
  const auto half = [&](const Corner& c) {
    const std::int64_t side = cross(o, from, c);
    if (side != 0) return side < 0 ? 0 : 2;
    const bool same = (from.x - o.x) * (c.x - o.x) + (from.y - o.y) * (c.y - o.y) > 0;
    return same ? 3 : 1;  // straight back is the last one
  };
  if (half(p) != half(q)) return half(p) < half(q);
  return cross(o, p, q) < 0;
}

/// The rings around triangles that hang together, the region on the left of each.
std::vector<Ring> rings_around(const std::vector<Triangle>& triangles) {
  std::set<Edge> edges;
  for (const Triangle& t : triangles) {
    for (std::size_t k = 0; k < 3; ++k) edges.insert({t[k], t[(k + 1) % 3]});
  }
  std::map<Corner, std::vector<Corner>> out;
  std::set<Edge> border;
  for (const Edge& e : edges) {
    if (edges.contains({e.second, e.first})) continue;
    border.insert(e);
    out[e.first].push_back(e.second);
  }
  std::vector<Ring> rings;
  while (!border.empty()) {
    const Edge first = *border.begin();
    Edge at = first;
    Ring ring;
    do {
      border.erase(at);
      ring.push_back(at.first);
      const std::vector<Corner>& ways = out[at.second];
      const Corner next = *std::min_element(ways.begin(), ways.end(), [&](const Corner& p, const Corner& q) {
        return clockwise_before(at.second, at.first, p, q);
      });
      at = {at.second, next};
    } while (at != first);
    rings.push_back(ring);
  }
  return rings;
}

std::int64_t signed_doubled(const Ring& ring) {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < ring.size(); ++k) {
    const Corner& p = ring[k];
    const Corner& q = ring[(k + 1) % ring.size()];
    sum += p.x * q.y - p.y * q.x;
  }
  return sum;
}

/// Sets of triangles that hang together by their edges.
std::vector<std::vector<Triangle>> connected(const std::vector<Triangle>& triangles) {
  std::map<Edge, std::size_t> owner;
  std::vector<std::size_t> parent(triangles.size());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto root = [&](std::size_t i) {
    while (parent[i] != i) i = parent[i];
    return i;
  };
  for (std::size_t i = 0; i < triangles.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) owner[{triangles[i][k], triangles[i][(k + 1) % 3]}] = i;
  }
  for (const auto& [edge, i] : owner) {
    const auto other = owner.find({edge.second, edge.first});
    if (other != owner.end()) parent[root(i)] = root(other->second);
  }
  std::map<std::size_t, std::vector<Triangle>> sets;
  for (std::size_t i = 0; i < triangles.size(); ++i) sets[root(i)].push_back(triangles[i]);
  std::vector<std::vector<Triangle>> all;
  for (auto& [number, set] : sets) all.push_back(std::move(set));
  return all;
}

Ring disguised(Ring ring, bool straighten, Random& random) {
  if (straighten) {
    Ring bends;
    for (std::size_t k = 0; k < ring.size(); ++k) {
      const Corner& before = ring[(k + ring.size() - 1) % ring.size()];
      if (cross(before, ring[k], ring[(k + 1) % ring.size()]) != 0) bends.push_back(ring[k]);
    }
    ring = bends;
  }
  std::rotate(ring.begin(), ring.begin() + static_cast<std::ptrdiff_t>(random() % ring.size()), ring.end());
  if (random() % 2 == 0) std::reverse(ring.begin(), ring.end());
  if (random() % 2 == 0) ring.push_back(ring.front());
  return ring;
}

// ---- how two regions lie
// ---------------------------------------------------------------------------------------------

/// The point (x / d, y / d), d above 0, in lowest terms.
struct Place {
  std::int64_t x;
  std::int64_t y;
  std::int64_t d;

  friend bool operator==(const Place&, const Place&) = default;
  friend bool operator<(const Place& p, const Place& q) {
    if (p.x * q.d != q.x * p.d) return p.x * q.d < q.x * p.d;
    return p.y * q.d < q.y * p.d;
  }
};

Place place(std::int64_t x, std::int64_t y, std::int64_t d) {
  if (d < 0) return place(-x, -y, -d);
  const std::int64_t common = std::gcd(std::gcd(x, y), d);
  return {x / common, y / common, d / common};
}

struct Segment {
  Corner from;
  Corner to;
  int region;
  std::size_t part;
  std::size_t ring;
};

std::vector<Segment> segments_of(const Region& region, int number) {
  std::vector<Segment> segments;
  for (std::size_t p = 0; p < region.size(); ++p) {
    for (std::size_t r = 0; r < region[p].size(); ++r) {
      const Ring& ring = region[p][r];
      for (std::size_t k = 0; k < ring.size(); ++k) {
        const Segment s = {ring[k], ring[(k + 1) % ring.size()], number, p, r};
        if (s.from != s.to) segments.push_back(s);
      }
    }
  }
  return segments;
}

bool on(const Segment& s, const Corner& c) {
  return cross(s.from, s.to, c) == 0 && std::min(s.from.x, s.to.x) <= c.x && c.x <= std::max(s.from.x, s.to.x) &&
         std::min(s.from.y, s.to.y) <= c.y && c.y <= std::max(s.from.y, s.to.y);
}

std::vector<Place> places_on(const Segment& s, const std::vector<Segment>& all) {
  std::vector<Place> places;
  for (const Segment& other : all) {
    for (const Corner& c : {other.from, other.to}) {
      if (on(s, c)) places.push_back(place(c.x, c.y, 1));
    }
    const std::int64_t from = cross(s.from, s.to, other.from);
    const std::int64_t to = cross(s.from, s.to, other.to);
    const std::int64_t own_from = cross(other.from, other.to, s.from);
    const std::int64_t own_to = cross(other.from, other.to, s.to);
    if ((from < 0) == (to < 0) || (own_from < 0) == (own_to < 0) || from * to == 0 || own_from * own_to == 0) continue;
    const std::int64_t d = own_from - own_to;
    places.push_back(
        place(s.from.x * d + own_from * (s.to.x - s.from.x), s.from.y * d + own_from * (s.to.y - s.from.y), d));
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

/// Whether each region covers the places right above the middle of a piece (or right of an upright one), and those
/// right below it.
struct Sides {
  bool above[2] = {false, false};
  bool below[2] = {false, false};
};

Sides sides_of(const Place& low, const Place& high, const std::vector<Segment>& all, const Region* const regions[2]) {
  const bool upright = low.x * high.d == high.x * low.d;
  const auto turned = [upright](std::int64_t x, std::int64_t y) { return upright ? Corner{y, x} : Corner{x, y}; };
  const std::int64_t d = 2 * low.d * high.d;
  const Corner middle = turned(low.x * high.d + high.x * low.d, low.y * high.d + high.y * low.d);
  // [region][part][ring]: edges above the place that is above the piece, and above the one below it.
  std::vector<std::vector<int>> counts[2][2];
  for (int region = 0; region < 2; ++region) {
    for (const Part& part : *regions[region]) {
      for (auto& count : counts[region]) count.emplace_back(part.size(), 0);
    }
  }
  for (const Segment& s : all) {
    Corner left = turned(s.from.x, s.from.y);
    Corner right = turned(s.to.x, s.to.y);
    if ((left.x * d <= middle.x) == (right.x * d <= middle.x)) continue;
    if (left.x > right.x) std::swap(left, right);
    const std::int64_t height =
        (right.x - left.x) * (middle.y - left.y * d) - (right.y - left.y) * (middle.x - left.x * d);
    if (height < 0) ++counts[s.region][0][s.part][s.ring];
    if (height <= 0) ++counts[s.region][1][s.part][s.ring];
  }
  Sides sides;
  for (int region = 0; region < 2; ++region) {
    for (int below = 0; below < 2; ++below) {
      bool& covered = (below != 0 ? sides.below : sides.above)[region];
      for (const std::vector<int>& part : counts[region][below]) {
        const bool in_hole = std::any_of(part.begin() + 1, part.end(), [](int count) { return count % 2 != 0; });
        covered |= part[0] % 2 != 0 && !in_hole;
      }
    }
  }
  return sides;
}

}  // namespace

std::int64_t doubled_area(const std::vector<Triangle>& triangles) {
  std::int64_t sum = 0;
  for (const Triangle& t : triangles) sum += cross(t[0], t[1], t[2]);
  return sum;
}

Region region_of(const std::vector<Triangle>& triangles, Division division, Random& random) {
  std::vector<std::vector<Triangle>> sets;
  if (division == Division::triangles) {
    for (const Triangle& t : triangles) sets.push_back({t});
  } else if (division == Division::connected) {
    sets = connected(triangles);
  } else {
    std::vector<Triangle> colored[2];
    for (const Triangle& t : triangles) colored[random() % 2].push_back(t);
    for (const auto& color : colored) {
      for (auto& set : connected(color)) sets.push_back(std::move(set));
    }
  }
  const bool straighten = random() % 4 != 0;
  Region region;
  for (const std::vector<Triangle>& set : sets) {
    Part part;
    for (const Ring& ring : rings_around(set)) {
      const bool shell = signed_doubled(ring) > 0;
      part.insert(shell ? part.begin() : part.end(), disguised(ring, straighten, random));
    }
    region.push_back(part);
  }
  std::shuffle(region.begin(), region.end(), random);
  return region;
}

Lie lie_of(const Region& a, const Region& b) {
  std::vector<Segment> all = segments_of(a, 0);
  const std::vector<Segment> others = segments_of(b, 1);
  all.insert(all.end(), others.begin(), others.end());
  std::set<std::pair<Place, Place>> pieces;
  for (const Segment& s : all) {
    const std::vector<Place> places = places_on(s, all);
    for (std::size_t k = 0; k + 1 < places.size(); ++k) pieces.insert({places[k], places[k + 1]});
  }
  const Region* const regions[2] = {&a, &b};
  bool interiors = false;
  bool only[2] = {false, false};
  std::set<Place> borders[2];
  Lie lie;
  for (const auto& [low, high] : pieces) {
    const Sides sides = sides_of(low, high, all, regions);
    for (const bool* side : {sides.above, sides.below}) {
      interiors |= side[0] && side[1];
      only[0] |= side[0] && !side[1];
      only[1] |= side[1] && !side[0];
    }
    for (int region = 0; region < 2; ++region) {
      if (sides.above[region] == sides.below[region]) continue;
      borders[region].insert(low);
      borders[region].insert(high);
    }
    const bool above = sides.above[0] && sides.above[1];
    const bool below = sides.below[0] && sides.below[1];
    if (above == below) continue;
    const auto doubled = static_cast<__float128>(low.x * high.y - low.y * high.x) / (low.d * high.d);
    // Above a piece that goes to the right is on its left; right of an upright one that goes up is not.
    const bool left = above != (low.x * high.d == high.x * low.d);
    lie.area += (left ? doubled : -doubled) / 2;
  }
  const bool meet =
      std::any_of(borders[0].begin(), borders[0].end(), [&](const Place& p) { return borders[1].contains(p); });
  if (!interiors) {
    lie.relation = meet ? RegionRelation::touches : RegionRelation::disjoint;
  } else if (only[0] && only[1]) {
    lie.relation = RegionRelation::overlaps;
  } else if (only[0]) {
    lie.relation = meet ? RegionRelation::covers : RegionRelation::contains;
  } else if (only[1]) {
    lie.relation = meet ? RegionRelation::covered_by : RegionRelation::within;
  } else {
    lie.relation = RegionRelation::equals;
  }
  return lie;
}

}  // namespace vicinal::lattice
