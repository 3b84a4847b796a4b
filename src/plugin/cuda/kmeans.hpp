// k-means on a device: centers, labels and sums lie there, and an iteration costs one call.
#pragma once

#include <memory>

#include "backend/kmeans.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

/// A task for functions that only look.
Clustering clustering_of(const kernels::ClusterTask& task, const Table& table);

std::unique_ptr<kernels::Lloyd> make_lloyd(std::shared_ptr<Device> device, const Context& ctx,
                                           const kernels::ClusterTask& task);

class CudaKMeans final : public kernels::KMeansBackend {
 public:
  explicit CudaKMeans(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::string screens(const kernels::ClusterTask& task) const override;
  std::unique_ptr<kernels::Lloyd> lloyd(const Context& ctx, const kernels::ClusterTask& task) const override;
  kernels::ClusterPlan plan(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials) const override;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace vicinal::plugin
