// The one rule for pivots of L D L' (contract clause 17), the same on host and device: none is chosen, and one of no
// magnitude is replaced.
#pragma once

namespace vicinal::solver {

/// A pivot of lesser magnitude is rounding, rows of A being about one.
inline constexpr double kTinyPivot = 1e-17;

/// The pivot, or the least one with its sign; of what is no number, too.
constexpr double kept_pivot(double pivot) noexcept {
  const double magnitude = pivot < 0 ? -pivot : pivot;
  if (magnitude > kTinyPivot) return pivot;
  return pivot < 0 ? -kTinyPivot : kTinyPivot;
}

}  // namespace vicinal::solver
