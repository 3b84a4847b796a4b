// Missing values from the nearest rows that have them (contract clause 24): what a backend provides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/memory_need.hpp"
#include "core/exact_sum.hpp"
#include "vicinal/context.hpp"

namespace vicinal::kernels {

struct DonorTask {
  std::span<const double> donors;  ///< [n, cols] row-major, NaN where a value is missing
  std::int64_t cols = 0;
  std::span<const std::int64_t> compared;  ///< the columns of numbers, ascending
  std::span<const double> means;           ///< [cols] of the donors, where no row is near
  std::int64_t k = 0;                      ///< at most n
};

/// What the memory of such a task depends on.
struct DonorShape {
  std::int64_t donors = 0;
  std::int64_t cols = 0;
  std::int64_t k = 0;
  std::int64_t rows = 0;     ///< that lack values
  std::int64_t missing = 0;  ///< values
};

/// The mean of a column over its nearest donors; the column's own where there are none.
class DonorMean {
 public:
  DonorMean(const DonorTask& task, std::int64_t column) : task_(task), column_(column) {}

  void add(std::int64_t donor) {
    sum_.add(task_.donors[static_cast<std::size_t>(donor * task_.cols + column_)]);
    ++count_;
  }
  [[nodiscard]] double value() const {
    if (count_ == 0) return task_.means[static_cast<std::size_t>(column_)];
    return sum_.rounded() / static_cast<double>(count_);
  }

 private:
  const DonorTask& task_;
  std::int64_t column_;
  std::int64_t count_ = 0;
  core::ExactSum sum_;
};

class DonorBackend {
 public:
  DonorBackend() = default;
  DonorBackend(const DonorBackend&) = delete;
  DonorBackend& operator=(const DonorBackend&) = delete;
  virtual ~DonorBackend() = default;

  /// What `fill` takes. Throws `over_memory` where a device has no room.
  [[nodiscard]] virtual MemoryNeed bytes(const Context& ctx, const DonorShape& shape) const = 0;
  /// Fills the missing values of the given rows (ascending) of `values` [m, cols] in their place. A mean that overflows
  /// stays infinite.
  virtual void fill(const Context& ctx, const DonorTask& task, std::span<const std::int64_t> rows,
                    double* values) const = 0;
};

}  // namespace vicinal::kernels
