// The inner loop of imputation (cpu/nearest/donors.cpp), compiled once for each instruction set: which rows of a block
// may be near, over the columns that both rows have. Sums may be rounded differently on each, inside the bound of
// donors.cpp, and never reach a result.
#pragma once

#include <cstdint>

#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// Rows of a block; the last block is padded by rows without values.
inline constexpr std::int64_t kDonorRows = 128;

/// A row and the columns that it has.
struct DonorQuery {
  const double* values = nullptr;         ///< [count]
  const std::int64_t* columns = nullptr;  ///< [count]
  std::int64_t count = 0;
  double limit = 0;
};

/// The rows of a block [columns, kDonorRows], NaN where a value is missing, whose sum of squared differences over the
/// columns that both have is at most the query's limit: their positions, ascending, in near[kDonorRows]. Returns how
/// many there are.
using NearDonorsFn = std::int64_t (*)(const DonorQuery& query, const double* block, std::int32_t* near);

/// The one for an instruction set in use (never `automatic`).
NearDonorsFn near_donors(Isa isa);

}  // namespace vicinal::cpu
