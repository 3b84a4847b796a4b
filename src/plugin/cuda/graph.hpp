// Graphs on a device, in terms of the plug-in's functions.
#pragma once

#include <memory>

#include "backend/graph.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

class CudaGraphs final : public kernels::GraphBackend {
 public:
  explicit CudaGraphs(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  [[nodiscard]] kernels::MemoryNeed bytes(const Context& ctx, const kernels::GraphTask& task) const override;
  void label(const Context& ctx, const kernels::GraphTask& task, kernels::GraphLabels& labels) const override;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace vicinal::plugin
