// Missing values from the nearest rows that have them (contract clause 24). The host computes them for every backend.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vicinal/context.hpp"

namespace vicinal::kernels {

struct DonorTask {
  std::span<const double> donors;  ///< [n, cols] row-major, NaN where a value is missing
  std::int64_t cols = 0;
  std::span<const std::int64_t> compared;  ///< the columns of numbers, ascending
  std::span<const double> means;           ///< [cols] of the donors, where no row is near
  std::int64_t k = 0;
};

/// Bytes that `fill_from_donors` takes for rows of which `missing` have missing values.
std::uint64_t donor_bytes(const Context& ctx, const DonorTask& task, std::int64_t missing);

/// Fills the missing values of the given rows (ascending) of `values` [m, cols] in their place. A mean that overflows
/// stays infinite.
void fill_from_donors(const Context& ctx, const DonorTask& task, std::span<const std::int64_t> rows, double* values);

}  // namespace vicinal::kernels
