// From a radius, which bounds reported distances, to keys (contract clause 2: inclusive on the reported distance).
#pragma once

#include "vicinal/graph.hpp"

namespace vicinal::core {

/// The largest key whose reported distance is at most r; -infinity when there is none. Reported distances grow with
/// keys, so bisection over the bit patterns finds it exactly for every metric: some sixty evaluations for
/// minkowski, and about seven for the others, whose key is guessed.
double largest_key_within(Metric metric, double r, double p);

}  // namespace vicinal::core
