// The direct way: M - shift I + grounding = L D L' by a multifrontal factor over the dissection (Duff and Reid 1983),
// one dense front a node, and solves with it. No pivoting: D's signs are those of the eigenvalues (Sylvester), which is
// what counts them; to count, no panel is kept. Parts of the tree go to workers whole, fronts above them are shared
// tile by tile; every sum has one order (contract clause 17). Cost: symbolic.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/aligned.hpp"
#include "solver/rows.hpp"
#include "solver/symbolic.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

/// What is factored beside M.
struct Pencil {
  double shift = 0;   ///< taken from the diagonal
  double ground = 0;  ///< added to the last point's diagonal
};

/// How many steps it takes to cover so many.
constexpr std::int64_t tiles_of(std::int64_t count, std::int64_t step) noexcept {
  return (count + step - 1) / step;
}

class Factor {
 public:
  /// `a`, in the symbolic factor's numbering, and `s` must outlive it. O(s.flops).
  Factor(const Context& ctx, const LocalRows& a, const Incidence& in, const Symbolic& s, const Pencil& pencil);

  /// x becomes (M - shift I + grounding)^-1 x; x.width a multiple of eight.
  void solve(const Context& ctx, Vectors& x) const;
  /// Negative pivots: eigenvalues below the shift.
  [[nodiscard]] std::int64_t negative() const noexcept;

 private:
  const Symbolic& s_;
  core::AlignedArray<double> panels_;  // node by node, column by column: own rows, then those below
  std::vector<double> pivots_;         // [n]
};

/// The negative pivots of such a factor without keeping it: a panel is forgotten when its front is done, so that the
/// memory is that of the fronts. O(s.flops).
std::int64_t negative_pivots(const Context& ctx, const LocalRows& a, const Incidence& in, const Symbolic& s,
                             const Pencil& pencil);

}  // namespace vicinal::solver
