// Krylov spaces of the CPU.
#pragma once

#include "backend/krylov.hpp"

namespace vicinal::cpu {

class HostSpaces final : public kernels::KrylovBackend {
 public:
  [[nodiscard]] kernels::MemoryNeed bytes(const Context& ctx, const solver::LocalRows& a,
                                          const solver::KrylovShape& shape) const override;
  [[nodiscard]] std::unique_ptr<solver::KrylovSpace> space(const Context& ctx,
                                                           const kernels::KrylovTask& task) const override;
  bool product(const Context& /*ctx*/, const kernels::ProductTask& /*task*/, Spmv& /*found*/) const override {
    return false;
  }
};

}  // namespace vicinal::cpu
