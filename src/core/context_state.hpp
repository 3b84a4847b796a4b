// What the copies of a context share, and the way to it for the library's own sources.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/ablation.hpp"
#include "core/isa.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "vicinal/context.hpp"

namespace vicinal {

namespace kernels {
class Backend;
}
namespace core {

/// The number of threads that options ask for; throws as Context::cpu does.
int checked_threads(int threads);

}  // namespace core

struct Context::State {
  /// Options are checked here; see Context::cpu for what is thrown. Inline, so that no library exports it.
  State(const CpuOptions& options, std::string device_name, std::shared_ptr<const kernels::Backend> of_device)
      : pool(std::make_shared<core::ThreadPool>(core::checked_threads(options.threads))),
        isa(core::resolve_isa(options.isa)),
        memory_limit(options.memory_limit != 0 ? options.memory_limit : core::free_memory() / 10 * 8),
        map_files(options.map_files),
        progress(options.progress),
        cancel(options.cancel),
        ablation(core::ablation_of_environment()),
        device(std::move(device_name)),
        backend(std::move(of_device)) {}
  /// Shares threads, device and cancel token with another; `bytes` as CpuOptions::memory_limit.
  State(const State& other, std::uint64_t bytes)
      : pool(other.pool),
        isa(other.isa),
        memory_limit(bytes != 0 ? bytes : core::free_memory() / 10 * 8),
        map_files(other.map_files),
        progress(other.progress),
        cancel(other.cancel),
        ablation(other.ablation),
        device(other.device),
        backend(other.backend) {}

  std::shared_ptr<core::ThreadPool> pool;
  Isa isa;
  std::uint64_t memory_limit;
  bool map_files;
  ProgressFn progress;
  CancelToken cancel;
  core::Ablation ablation;  ///< of benchmarks and tests
  std::atomic<std::int64_t> next_report{0};
  std::atomic<const char*> reported_stage{nullptr};  ///< where its name lies; names are literals
  std::string device;
  std::shared_ptr<const kernels::Backend> backend;  ///< never null
};

namespace core {

struct ContextAccess {
  using State = Context::State;
  static const Context::State& state(const Context& ctx) noexcept { return *ctx.state_; }
  static ThreadPool& pool(const Context& ctx) noexcept { return *ctx.state_->pool; }
  static Ablation ablation(const Context& ctx) noexcept { return ctx.state_->ablation; }
  static Context context(std::shared_ptr<Context::State> state) { return Context(std::move(state)); }
  /// Whether the work is cancelled from now on.
  static void set(const CancelToken& token, bool cancelled) noexcept {
    token.flag_->store(cancelled, std::memory_order_relaxed);
  }
};

}  // namespace core
}  // namespace vicinal
