// Density clustering on a device, in terms of the plug-in's functions: the minimum spanning tree
// (density.cpp) and DBSCAN (dbscan.cpp).
#pragma once

#include <memory>

#include "backend/density.hpp"
#include "plugin/cuda/device.hpp"
#include "plugin/cuda/nearest.hpp"

namespace vicinal::plugin {

class CudaDensity final : public kernels::DensityBackend {
 public:
  /// `nearest` must outlive it.
  CudaDensity(std::shared_ptr<Device> device, const CudaNearest& nearest)
      : device_(std::move(device)), nearest_(nearest) {}

  [[nodiscard]] bool serves(kernels::DensityWork work) const override;
  [[nodiscard]] bool finds_lists() const override { return true; }

  void spanning_tree(const Context& ctx, const kernels::SpanningTask& task,
                     kernels::SpanningResult& result) const override;
  [[nodiscard]] kernels::MemoryNeed spanning_tree_bytes(const Context& ctx,
                                                        const kernels::SpanningTask& task) const override;

  void dbscan(const Context& ctx, const kernels::DbscanTask& task, kernels::DbscanResult& result) const override;
  [[nodiscard]] kernels::MemoryNeed dbscan_bytes(const Context& ctx, const kernels::DbscanTask& task) const override;

  void optics(const Context& ctx, const kernels::OpticsTask& task, kernels::OpticsResult& result) const override;
  [[nodiscard]] kernels::MemoryNeed optics_bytes(const Context& ctx, const kernels::OpticsTask& task) const override;

 private:
  std::shared_ptr<Device> device_;
  const CudaNearest& nearest_;
};

}  // namespace vicinal::plugin
