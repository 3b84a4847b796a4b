// The overlap join of two layers (contract clause 18): boxes by a tree, then what each pair of features shares. Tasks
// are runs of features of the first layer; results do not depend on who does them.
#pragma once

#include <cstdint>
#include <vector>

#include "geo/layer.hpp"
#include "geo/overlap.hpp"
#include "geo/relation.hpp"

namespace vicinal::geo {

/// How one pair lies, and what it shares; one a worker.
class PairJudge {
 public:
  explicit PairJudge(const Context& ctx);
  /// `width`: asked for.
  Overlap operator()(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j, bool width);

  OverlapArea area;
  RelationOf relation;
  std::vector<std::int64_t> ids;  ///< for whoever has it

 private:
  Overlap without_width(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j);
};

/// Every pair of `a` and `b` that shares a point, by (a, b). Throws `over_memory` before they are made.
Overlaps join(const Context& ctx, const Layer& a, const Layer& b, const OverlapOptions& options);

/// Decides the pairs whose relation is `undecided`, and returns how many those were.
std::int64_t decide(const Context& ctx, const Layer& a, const Layer& b, std::vector<Overlap>& pairs,
                    RegionRelation undecided, const OverlapOptions& options);

/// [groups], true where two features of the layer that are in one group (groups[feature]) share area.
std::vector<char> groups_that_overlap(const Context& ctx, const Layer& layer, const std::vector<std::int64_t>& groups,
                                      std::int64_t count);

/// See vicinal::overlaps_within.
LayerOverlap overlaps_within(const Context& ctx, const Layer& layer);

/// See vicinal::self_overlapping.
std::vector<std::int64_t> self_overlapping(const Context& ctx, const Layer& layer);

}  // namespace vicinal::geo
