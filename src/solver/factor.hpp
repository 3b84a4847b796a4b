// The direct way: M - shift I + grounding = L D L' by a multifrontal factor over the dissection (Duff and Reid 1983),
// one dense front a node, and solves with it. No pivoting: D's signs are those of the eigenvalues (Sylvester), which is
// what counts them; to count, no panel is kept. Parts of the tree go to workers whole, fronts above them are shared
// tile by tile; every sum has one order (contract clause 17). Cost: symbolic.hpp.
//
// Panels are kept in five bytes a number, off by u = 2^-32 of itself at most. x'M x is |D^1/2 L'x|^2, so that its root
// changes by |D^1/2 E'x|, |E| <= u |L|: about u |x| of rows of A of length one, as the rows of L D^1/2 have the lengths
// of M's columns. The square of that, 5e-20, is less than what a pivot is replaced for (formulas/lle/pivot.hpp) and
// than what float64 rounds a pivot by, 1e-16. Below that, where tables are degenerate, the iteration takes a step more
// at times.
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
  // Panels node by node, column by column: own rows, then those below.
  core::AlignedArray<float> high_;
  core::AlignedArray<std::uint8_t> low_;
  std::vector<double> pivots_;  // [n]
};

/// The negative pivots of such a factor without keeping it: a panel is forgotten when its front is done, so that the
/// memory is that of the fronts. O(s.flops).
std::int64_t negative_pivots(const Context& ctx, const LocalRows& a, const Incidence& in, const Symbolic& s,
                             const Pencil& pencil);

}  // namespace vicinal::solver
