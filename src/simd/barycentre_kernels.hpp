// Standard weights (contract clause 17) of several rows at once, a row a lane, compiled once for each instruction set.
// Each lane does what solver::barycentre does, in the same order, and no product is added before it is rounded: so the
// bits are the same everywhere.
#pragma once

#include <cstdint>

#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// Rows that are done at once, whose numbers lie side by side.
inline constexpr std::int64_t kBarycentreRows = 8;

struct BarycentreTask {
  std::int64_t k = 0;
  std::int64_t d = 0;
  double reg = 0;
  const double* differences = nullptr;  ///< [k, d, kBarycentreRows]: neighbors less the row, in range
  double* gram = nullptr;               ///< room [k, k, kBarycentreRows]
  double* weights = nullptr;            ///< [k, kBarycentreRows]
};

/// False where the weights of one of the rows are not determined.
using BarycentresFn = bool (*)(const BarycentreTask& task);

/// The one for an instruction set in use (never `automatic`).
BarycentresFn barycentres(Isa isa);

}  // namespace vicinal::cpu
