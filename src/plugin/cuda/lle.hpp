// Locally linear embedding on a device, in terms of the plug-in's functions.
#pragma once

#include <memory>

#include "backend/lle.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

class CudaLleBackend final : public kernels::LleBackend {
 public:
  explicit CudaLleBackend(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  [[nodiscard]] kernels::LlePlace place(const LleOptions& options) const override;
  [[nodiscard]] std::unique_ptr<kernels::DeviceLle> begin(const Context& ctx,
                                                          const kernels::LleTask& task) const override;
  [[nodiscard]] kernels::MemoryNeed bytes(const Context& ctx, const TableView& table,
                                          const LleOptions& options) const override;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace vicinal::plugin
