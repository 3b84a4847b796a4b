// The overlap join on a device, in terms of the plug-in's functions: what the device leaves undecided, the context's
// threads decide.
#pragma once

#include <memory>

#include "backend/overlap.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

class CudaJoins final : public kernels::OverlapBackend {
 public:
  explicit CudaJoins(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  [[nodiscard]] Overlaps join(const Context& ctx, const geo::Layer& a, const geo::Layer& b,
                              const OverlapOptions& options) const override;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace vicinal::plugin
