// Krylov methods and sparse products on a device, in terms of the plug-in's functions.
#pragma once

#include <memory>

#include "backend/krylov.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

class CudaKrylov final : public kernels::KrylovBackend {
 public:
  explicit CudaKrylov(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  [[nodiscard]] kernels::MemoryNeed bytes(const Context& ctx, const solver::LocalRows& a,
                                          const solver::KrylovShape& shape) const override;
  [[nodiscard]] std::unique_ptr<solver::KrylovSpace> space(const Context& ctx,
                                                           const kernels::KrylovTask& task) const override;
  bool product(const Context& ctx, const kernels::ProductTask& task, Spmv& found) const override;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace vicinal::plugin
