// The CUDA backend in terms of the plug-in's functions.
#pragma once

#include <memory>

#include "backend/backend.hpp"
#include "plugin/cuda/device.hpp"

namespace vicinal::plugin {

std::shared_ptr<const kernels::Backend> make_backend(const std::shared_ptr<Device>& device);

}  // namespace vicinal::plugin
