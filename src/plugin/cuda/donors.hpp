// Donors of missing values on a device, in terms of the plug-in's functions.
#pragma once

#include <memory>

#include "backend/donors.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

class CudaDonors final : public kernels::DonorBackend {
 public:
  explicit CudaDonors(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  [[nodiscard]] kernels::MemoryNeed bytes(const Context& ctx, const kernels::DonorShape& shape) const override;
  void fill(const Context& ctx, const kernels::DonorTask& task, std::span<const std::int64_t> rows,
            double* values) const override;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace vicinal::plugin
