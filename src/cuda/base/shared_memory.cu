// See shared_memory.hpp.
#include <map>
#include <mutex>
#include <utility>

#include "cuda/base/shared_memory.hpp"

namespace vicinal::cuda {

void allow_shared_memory(const Engine& engine, const void* kernel, std::size_t bytes) {
  static std::mutex mutex;
  static std::map<std::pair<int, const void*>, std::size_t> allowed;
  const std::scoped_lock lock(mutex);
  std::size_t& most = allowed[{engine.device, kernel}];
  if (bytes <= most) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "ask for shared memory");
  most = bytes;
}

}  // namespace vicinal::cuda
