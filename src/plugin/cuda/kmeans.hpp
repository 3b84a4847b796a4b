// k-means on a device: centers, labels and sums lie there, and an iteration costs one call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/kmeans.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

/// A task for functions that only look; `is_shard`: its rows are some of a table's.
Clustering clustering_of(const kernels::ClusterTask& task, const Table& table, bool is_shard = false);

/// A clustering on one device. What comes after `Lloyd` is of a shard's: its sums are merged with those of others,
/// whose means become the centers (plugin/abi/plugin.hpp).
class CudaLloyd : public kernels::Lloyd {
 public:
  [[nodiscard]] virtual std::vector<TermRange> ranges() const = 0;
  virtual void share(const SumLayout& layout) = 0;
  virtual std::int64_t* parts() = 0;
  virtual double means_of(const std::int64_t* parts) = 0;
  virtual void inertia_limbs(std::span<std::int64_t> limbs) = 0;
};

std::unique_ptr<CudaLloyd> make_lloyd(std::shared_ptr<Device> device, const Context& ctx,
                                      const kernels::ClusterTask& task, bool is_shard = false);

class CudaKMeans final : public kernels::KMeansBackend {
 public:
  explicit CudaKMeans(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::string screens(const kernels::ClusterTask& task) const override;
  std::unique_ptr<kernels::Lloyd> lloyd(const Context& ctx, const kernels::ClusterTask& task) const override;
  kernels::ClusterPlan plan(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials) const override {
    return plan_of(ctx, task, trials, false);
  }
  [[nodiscard]] kernels::ClusterPlan plan_of(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials,
                                             bool is_shard) const;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace vicinal::plugin
