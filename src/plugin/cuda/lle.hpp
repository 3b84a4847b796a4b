// The CUDA backend's half of the waist for sparse matrices (backend/lle.hpp) in terms of the plug-in's functions.
#pragma once

#include <memory>

#include "backend/lle.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

class CudaSparse : public kernels::Sparse {
 public:
  explicit CudaSparse(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  [[nodiscard]] std::string why_on_host(const LleOptions& options) const override;
  [[nodiscard]] std::unique_ptr<kernels::DeviceLle> begin(const Context& ctx,
                                                          const kernels::LleTask& task) const override;
  [[nodiscard]] std::uint64_t lle_bytes(const Context& ctx, const TableView& table,
                                        const LleOptions& options) const override;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace vicinal::plugin
