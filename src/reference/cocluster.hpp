// Groups of a bipartite graph by the letter of docs/contract.md, clause 16: a walk from every member. Shares no code
// with the library.
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/cocluster.hpp"

namespace vicinal::reference {

/// What `vicinal::cocluster` must return: labels and groups.
Cocluster cocluster(const BipartiteEdges& edges);

/// The ones after each product, counted by the lengths of the shortest paths between all pairs. O(n (n + edges)).
std::vector<std::int64_t> closure_nonzeros(const BipartiteEdges& edges);

}  // namespace vicinal::reference
