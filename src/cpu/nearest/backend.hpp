// The CPU's searches behind the interface of backends.
#pragma once

#include "backend/nearest.hpp"

namespace vicinal::cpu {

const kernels::NearestBackend& nearest_backend();

}  // namespace vicinal::cpu
