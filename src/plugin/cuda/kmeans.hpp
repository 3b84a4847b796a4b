// k-means on a device, as the waist knows it: centres, labels and sums lie there, and an iteration costs one call.
#pragma once

#include <memory>

#include "backend/backend.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

/// A task for functions that only look.
Clustering clustering_of(const kernels::ClusterTask& task, const Table& table);

std::unique_ptr<kernels::Lloyd> make_lloyd(std::shared_ptr<Device> device, const Context& ctx,
                                           const kernels::ClusterTask& task);

}  // namespace vicinal::plugin
