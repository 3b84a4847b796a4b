// k-means on several devices: each labels a range of the rows and keeps their sums as integers in one layout, which
// follows from the ranges of all rows. An iteration adds these integers on the host, and every device makes the same
// means of them (contract clause 12, shards). First centers by k-means++ and k-means|| are drawn on the first device,
// or on the host where that has no room for the whole table.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "plugin/cuda/crew.hpp"
#include "plugin/cuda/kmeans.hpp"

namespace vicinal::plugin {

class DividedKMeans final : public kernels::KMeansBackend {
 public:
  explicit DividedKMeans(std::shared_ptr<Crew> crew);

  std::string screens(const kernels::ClusterTask& task) const override;
  std::unique_ptr<kernels::Lloyd> lloyd(const Context& ctx, const kernels::ClusterTask& task) const override;
  kernels::ClusterPlan plan(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials) const override;

 private:
  std::shared_ptr<Crew> crew_;
  std::deque<CudaKMeans> members_;
};

}  // namespace vicinal::plugin
