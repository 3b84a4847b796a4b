// The connected pieces of the neighbors' graph (contract clause 17), each of which is a problem of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/rows.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

/// [n] the number of each point's piece: pieces are numbered by their smallest points. O(n width).
std::vector<std::int64_t> pieces_of(const Context& ctx, const LocalRows& a);

}  // namespace vicinal::solver
