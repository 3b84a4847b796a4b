// How two features lie, exactly (contract clause 18): the 9-intersection of two regions from signs of determinants of
// their own points. Nothing is rounded, and no crossing is computed: where two edges cross the relation is decided, and
// where none do borders meet in points of the input only.
#pragma once

#include <cstdint>
#include <vector>

#include "geo/box_sweep.hpp"
#include "geo/layer.hpp"

namespace vicinal::geo {

/// What one worker needs; keep it from pair to pair. For regions that do not cover themselves.
class RelationOf {
 public:
  /// Of feature i of `a` to feature j of `b`. O(edges near each other + edges of chains that touch nothing).
  RegionRelation operator()(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j);

 private:
  struct Edge {
    Point from;
    Point to;
    std::int64_t chain;
  };
  // A point of a border that lies on the other region's border.
  struct Contact {
    Point at;
    std::int64_t own;    // edge of this side's list
    std::int64_t other;  // of the other side's
  };
  struct Side {
    std::vector<Edge> edges;  // near the other region
    std::vector<Contact> contacts;
    std::vector<std::int64_t> chains;  // that have a contact
  };
  struct Facts {
    bool meet = false;  ///< borders
    bool interiors = false;
    bool only_a = false;  ///< a has what b has not
    bool only_b = false;
    [[nodiscard]] bool overlap() const noexcept { return interiors && only_a && only_b; }
  };

  void gather(Side& side, const Layer& layer, std::int64_t feature, const Box& box);
  bool crossed(const Box& shared);
  void classify_contacts(const Side& own, const Side& other, bool first);
  void classify_chains(const Layer& own, std::int64_t i, const Side& side, const Layer& other, std::int64_t j,
                       bool first);

  Side a_;
  Side b_;
  BoxSweep sweep_;  // of the edges of b
  Facts facts_;
};

}  // namespace vicinal::geo
