// What labels of a bipartite graph's members make: the groups, in the order of their labels (contract clause 16).
#pragma once

#include "vicinal/cocluster.hpp"

namespace vicinal::ops {

/// Finite and at least 0.
bool is_weight(double weight);
/// Throws `bad_data` naming the first edge with a weight that is below 0 or not finite.
void check_weights(const Context& ctx, std::span<const double> weights);

/// Fills `groups` from the labels, all threads at once and with no scratch that grows with the members.
void make_groups(const Context& ctx, Cocluster& found);

}  // namespace vicinal::ops
