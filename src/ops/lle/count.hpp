// Whether an embedding's eigenvalues are the least ones: a factor's signs say how many lie below a shift (contract
// clause 17).
#pragma once

#include <cstdint>
#include <functional>

#include "solver/smallest.hpp"
#include "vicinal/lle.hpp"

namespace vicinal::ops {

/// Fills `counted` and `count` of a piece whose norm is known. `below(shift)`: eigenvalues of M below a shift, the
/// constant vector's among them; called once, or twice where the cut goes through a cluster.
void count_eigenvalues(const solver::Smallest& found, const std::function<std::int64_t(double)>& below,
                       LlePiece& piece);

}  // namespace vicinal::ops
