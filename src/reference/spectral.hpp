// Singular values of the normalized relation matrix of docs/contract.md, clause 16, by Jacobi's one-sided rotations of
// the dense matrix. Shares no code with the library.
#pragma once

#include <vector>

#include "vicinal/cocluster.hpp"

namespace vicinal::reference {

/// All min(n_a, n_b) of them, descending. O(n_a n_b^2) a sweep.
std::vector<double> singular_values(const BipartiteEdges& edges);

}  // namespace vicinal::reference
