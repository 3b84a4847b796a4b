// What the copies of a context share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/parallel.hpp"
#include "vicinal/context.hpp"

namespace vicinal {

struct Context::State {
  /// Options are checked here; see Context::cpu for what is thrown.
  explicit State(const CpuOptions& options);
  /// Shares threads, device and cancel token with another.
  State(const State& other, std::uint64_t bytes);

  std::shared_ptr<core::ThreadPool> pool;
  Isa isa;
  std::uint64_t memory_limit;
  bool map_files;
  ProgressFn progress;
  CancelToken cancel;
  std::atomic<std::int64_t> next_report{0};
  std::atomic<const char*> reported_stage{nullptr};  ///< where its name lies; names are literals
  std::string device = "cpu";
  std::shared_ptr<const kernels::Backend> backend;  ///< null: the CPU's, which needs no state
};

}  // namespace vicinal
