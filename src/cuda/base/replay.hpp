// Launches that are repeated as they are: from the third time on they are one graph, which takes the host some
// microseconds instead of some a kernel.
#pragma once

#include <cstdint>
#include <utility>

#include "cuda/base/device.hpp"

namespace vicinal::cuda {

class Replay {
 public:
  Replay() = default;
  ~Replay() { forget(); }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Puts into the engine's stream what enqueue(engine) would put there: kernels and copies that are the same for the
  /// same key, none of which allocates.
  template <class Enqueue>
  void run(const Engine& engine, std::pair<std::int64_t, std::int64_t> key, const Enqueue& enqueue) {
    if (key != key_) {
      forget();
      key_ = key;
      seen_ = 0;
    }
    if (graph_ == nullptr) {
      if (++seen_ < kWorthIt) return enqueue(engine);
      Capture capture(engine);
      enqueue(capture.engine());
      graph_ = capture.end();
    }
    check(cudaGraphLaunch(graph_, engine.stream), "launch a graph");
  }

 private:
  static constexpr int kWorthIt = 3;

  /// A stream that records. It is none of those that wait for the default stream, whose use by others would be an error
  /// meanwhile.
  class Capture {
   public:
    explicit Capture(const Engine& engine) : engine_(engine) {
      check(cudaStreamCreateWithFlags(&engine_.stream, cudaStreamNonBlocking), "create a stream");
      const cudaError_t begun = cudaStreamBeginCapture(engine_.stream, cudaStreamCaptureModeThreadLocal);
      if (begun != cudaSuccess) static_cast<void>(cudaStreamDestroy(engine_.stream));
      check(begun, "record a graph");
    }
    ~Capture() {
      cudaGraph_t unused = nullptr;
      if (!ended_) static_cast<void>(cudaStreamEndCapture(engine_.stream, &unused));
      if (unused != nullptr) static_cast<void>(cudaGraphDestroy(unused));
      static_cast<void>(cudaStreamDestroy(engine_.stream));
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    [[nodiscard]] const Engine& engine() const noexcept { return engine_; }
    [[nodiscard]] cudaGraphExec_t end() {
      cudaGraph_t recorded = nullptr;
      ended_ = true;
      check(cudaStreamEndCapture(engine_.stream, &recorded), "record a graph");
      cudaGraphExec_t made = nullptr;
      const cudaError_t status = cudaGraphInstantiate(&made, recorded, 0);
      static_cast<void>(cudaGraphDestroy(recorded));
      check(status, "make a graph");
      return made;
    }

   private:
    Engine engine_;
    bool ended_ = false;
  };

  void forget() {
    if (graph_ != nullptr) static_cast<void>(cudaGraphExecDestroy(std::exchange(graph_, nullptr)));
  }

  std::pair<std::int64_t, std::int64_t> key_{-1, -1};
  int seen_ = 0;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace vicinal::cuda
