// The oracle of clause 25 of docs/contract.md. Shares no code with the library.
#pragma once

#include "vicinal/symmetrize.hpp"

namespace vicinal::reference {

/// Ids, distances and offsets of the symmetric graph; O(e log e).
NeighborGraph symmetrize(const NeighborGraph& graph, Symmetry symmetry);

}  // namespace vicinal::reference
