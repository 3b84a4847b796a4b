// Closed classes of the directed neighbor graph (contract clause 17): sets of points that all lead to each other and to
// no other point. I - W has a null vector for each of them.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/rows.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

/// Classes are numbered in the order in which they are found.
struct ClosedClasses {
  static constexpr Point kSeveral = -1;
  Point count = 0;
  core::RawVector<Point> reached;  ///< [n] the only class that a point leads to, or kSeveral
};

/// Arrows go from each point to all columns of its block. All threads join points that have each other, in O(n width^2)
/// at most; one goes through the arrows that are left, O(n width) at most. At most 40 bytes a point. Polls for
/// cancellation.
ClosedClasses closed_classes_of(const Context& ctx, const LocalRows& a);

}  // namespace vicinal::solver
