// The overlap join of two layers (contract clause 18): boxes by a tree, then what each pair of features shares. Tasks
// are runs of features of the first layer; results do not depend on who does them.
#pragma once

#include <cstdint>
#include <vector>

#include "geo/layer.hpp"

namespace vicinal::geo {

/// Every pair of `a` and `b` that shares a point, by (a, b). Throws `over_memory` before they are made.
Overlaps join(const Context& ctx, const Layer& a, const Layer& b, const OverlapOptions& options);

/// [groups], true where two features of the layer that are in one group (groups[feature]) share area.
std::vector<char> groups_that_overlap(const Context& ctx, const Layer& layer, const std::vector<std::int64_t>& groups,
                                      std::int64_t count);

/// See vicinal::self_overlapping.
std::vector<std::int64_t> self_overlapping(const Context& ctx, const Layer& layer);

}  // namespace vicinal::geo
