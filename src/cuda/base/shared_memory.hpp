// Shared memory that a launch asks for beyond what blocks have without asking (48 KB).
#pragma once

#include <cstddef>

#include "cuda/base/device.hpp"

namespace vicinal::cuda {

/// Lets blocks of a kernel have so many bytes of dynamic shared memory on the engine's device. The permission belongs
/// to the kernel, which other engines of the device may launch with more at the same time: it is only ever raised. Any
/// thread.
void allow_shared_memory(const Engine& engine, const void* kernel, std::size_t bytes);

template <class... Arguments>
void allow_shared_memory(const Engine& engine, void (*kernel)(Arguments...), std::size_t bytes) {
  allow_shared_memory(engine, reinterpret_cast<const void*>(kernel), bytes);
}

}  // namespace vicinal::cuda
