// The CPU's search for donors of missing values, behind the interface of backends.
#pragma once

#include "backend/donors.hpp"

namespace vicinal::cpu {

class CpuDonors final : public kernels::DonorBackend {
 public:
  [[nodiscard]] kernels::MemoryNeed bytes(const Context& ctx, const kernels::DonorShape& shape) const override;
  void fill(const Context& ctx, const kernels::DonorTask& task, std::span<const std::int64_t> rows,
            double* values) const override;
};

}  // namespace vicinal::cpu
