// What every file of the CUDA plug-in stands on: checked calls, device memory by stream order, and the engine, which is
// one device with its stream. Included by .cu files only; nothing outside src/cuda knows it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/ablation.hpp"
#include "formulas/nearest/accumulation.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cuda {

/// The plug-in's exception; turned into a status by plugin.cu. It does not link the library, whose `Error`
/// it therefore cannot throw.
struct Failure {
  ErrorCode code;
  std::string sentence;
};

/// Throws `Failure` naming what failed: `over_memory` where memory ran out, else `internal`.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw Failure{status == cudaErrorMemoryAllocation ? ErrorCode::over_memory : ErrorCode::internal,
                std::string("CUDA: ") + what + ": " + cudaGetErrorString(status)};
}
/// After a launch.
inline void check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
}
inline constexpr int kThreads = 256;              ///< of a block whose kernel asks for no other number
inline constexpr std::int64_t kMaxLines = 65535;  ///< blocks on the second side of a grid

/// The number of a thread in a grid of one side.
__device__ inline std::int64_t own_number() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
/// Blocks of `threads` for `items`.
inline unsigned blocks_for(std::int64_t items, std::int64_t threads) {
  return static_cast<unsigned>((items + threads - 1) / threads);
}

/// What the caller of a long operation offers: see plugin.hpp. `check_cancelled` throws `Failure{cancelled}`.
struct Host {
  void* user = nullptr;
  int (*cancelled)(void* user) = nullptr;
  void (*report)(void* user, const char* stage, double fraction) = nullptr;

  void check_cancelled() const {
    if (cancelled != nullptr && cancelled(user) != 0) throw Failure{ErrorCode::cancelled, "cancelled"};
  }
  void progress(const char* stage, double fraction) const {
    if (report != nullptr) report(user, stage, fraction);
  }
};

/// How a matrix unit adds, as its self-test found (self_test.hpp).
struct MatrixSums {
  core::Accumulation model{};  ///< width 0: none that is known holds, and there is no screen
  const char* name = "";       ///< "hopper", "ampere" or "volta"; empty where none holds
  double error = 0;            ///< the largest seen, over the model's bound; over the widest one where none holds
};

/// One device, its stream, and how many bytes a call may take there. Not for several threads at once.
struct Engine {
  int device = 0;
  cudaStream_t stream = nullptr;
  cudaMemPool_t pool = nullptr;
  int multiprocessors = 0;
  int compute_capability = 0;  ///< 90 for Hopper
  int compiled_for = 0;   ///< what the kernels were compiled for that the device runs, such as 75: __CUDA_ARCH__ / 10
  bool portable = false;  ///< VICINAL_CUDA_PATH=portable, or no sm_90a: mma.sync instead of wgmma
  MatrixSums sums;        ///< of the instruction that it takes
  MatrixSums warp_sums;   ///< of mma.sync on a device where that is another one
  bool has_tf32 = false;  ///< products of tf32 add as formulas/nearest/few_queries.hpp wants it
  std::uint64_t memory_limit = 0;  ///< bytes of device memory
  std::size_t shared_memory = 0;   ///< bytes a block may have
  core::Ablation ablation = core::Ablation::nothing;
  Host host;

  void synchronize() const { check(cudaStreamSynchronize(stream), "synchronize"); }
};

/// Bytes of device memory that are left within the engine's limit.
inline std::uint64_t memory_left(const Engine& engine) {
  std::uint64_t used = 0;
  check(cudaMemPoolGetAttribute(engine.pool, cudaMemPoolAttrUsedMemCurrent, &used), "ask for device memory in use");
  return engine.memory_limit - std::min(engine.memory_limit, used);
}

/// An array in device memory, allocated and freed in the order of the engine's stream (microseconds, from a pool that
/// keeps what was freed). Not initialized.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Engine& engine, std::int64_t size) : stream_(engine.stream), size_(size) {
    if (size > 0) {
      void* data = nullptr;
      check(cudaMallocFromPoolAsync(&data, static_cast<std::size_t>(size) * sizeof(T), engine.pool, stream_),
            "allocate device memory");
      data_ = static_cast<T*>(data);
    }
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) static_cast<void>(cudaFreeAsync(data_, stream_));
  }

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(size_) * sizeof(T); }
  void zero() const { check(cudaMemsetAsync(data_, 0, bytes(), stream_), "clear device memory"); }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(stream_, other.stream_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  cudaStream_t stream_ = nullptr;
  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

/// Copies in the order of the stream. What lies on the host must stay there until the engine is synchronized.
template <class T>
void to_device(const Engine& engine, T* to, const T* from, std::int64_t count) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(T), cudaMemcpyHostToDevice, engine.stream),
        "copy to the device");
}

/// A copy of an array of the host's, which must stay there until the engine is synchronized.
template <class T>
Buffer<T> uploaded(const Engine& engine, const T* from, std::int64_t count) {
  Buffer<T> to(engine, count);
  if (count > 0) to_device(engine, to.data(), from, count);
  return to;
}

template <class T>
void to_host(const Engine& engine, T* to, const T* from, std::int64_t count) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(T), cudaMemcpyDeviceToHost, engine.stream),
        "copy from the device");
}

}  // namespace vicinal::cuda
