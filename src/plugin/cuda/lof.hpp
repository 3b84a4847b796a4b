// Outlier scores on a device, in terms of the plug-in's functions.
#pragma once

#include <memory>

#include "backend/lof.hpp"
#include "plugin/cuda/device.hpp"
#include "plugin/cuda/nearest.hpp"

namespace vicinal::plugin {

class CudaLof final : public kernels::LofBackend {
 public:
  /// `nearest` must outlive it.
  CudaLof(std::shared_ptr<Device> device, const CudaNearest& nearest) : device_(std::move(device)), nearest_(nearest) {}

  void score(const Context& ctx, const kernels::LofTask& task, kernels::LofResult& result) const override;
  kernels::MemoryNeed bytes(const Context& ctx, const kernels::LofTask& task) const override;
  void search_and_score(const Context& ctx, const kernels::NearestTask& search, const kernels::LofTask& task,
                        kernels::LofResult& result, SearchStats& stats) const override;

 private:
  std::shared_ptr<Device> device_;
  const CudaNearest& nearest_;
};

}  // namespace vicinal::plugin
