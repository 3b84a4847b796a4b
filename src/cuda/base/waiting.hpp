// Waiting for kernels that look at a flag now and then, because they may take long.
#pragma once

#include <thread>

#include "cuda/base/device.hpp"

namespace vicinal::cuda {

/// Waits for the stream. When the caller has cancelled, it sets `stop`, on the device, beside the stream, which is
/// busy, and throws `cancelled` once the stream has ended.
inline void wait_or_stop(const Engine& engine, int* stop) {
  for (;;) {
    const cudaError_t status = cudaStreamQuery(engine.stream);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check(status, "wait for the device");
    static_cast<void>(cudaGetLastError());
    try {
      engine.host.check_cancelled();
    } catch (const Failure&) {
      cudaStream_t beside = nullptr;
      check(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking), "create a stream");
      const int yes = 1;
      static_cast<void>(cudaMemcpyAsync(stop, &yes, sizeof yes, cudaMemcpyHostToDevice, beside));
      static_cast<void>(cudaStreamSynchronize(beside));
      static_cast<void>(cudaStreamDestroy(beside));
      engine.synchronize();
      throw;
    }
    std::this_thread::yield();
  }
}

}  // namespace vicinal::cuda
