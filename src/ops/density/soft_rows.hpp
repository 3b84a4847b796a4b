// From a row's distances and heights to its memberships (contract clause 29).
#pragma once

#include <cstddef>

#include "ops/density/branches.hpp"

namespace vicinal::ops {

/// Of a row that was clustered. `cluster` and `lambda`: its last cluster, and with what it leaves that; heights are in
/// `room`. `values`: on entry its distances to the nearest exemplar of each cluster, then its memberships.
void weigh_fitted_row(const Branches& branches, std::size_t cluster, double lambda, SoftRoom& room, double* values);
/// Of a row that was not.
void weigh_new_row(const Branches& branches, std::size_t cluster, double lambda, SoftRoom& room, double* values);

}  // namespace vicinal::ops
