// Context: where work runs and within which limits. Cheap to copy; copies share one thread pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "vicinal/error.hpp"

namespace vicinal {

namespace core {
class ThreadPool;
}

/// Instruction set of the CPU kernels. `automatic` takes the widest that the machine has; naming one
/// the machine lacks is an error. Every choice gives the same bits.
enum class Isa : std::uint8_t { automatic, baseline, avx2, avx512 };

/// "automatic", "baseline", "avx2", "avx512".
VICINAL_API std::string_view name_of(Isa isa) noexcept;

/// Called on the thread that called the library, at most every few milliseconds, with a stage
/// ("search", "read") and the share done in [0, 1].
using ProgressFn = std::function<void(std::string_view stage, double fraction)>;

/// A flag shared between whoever works and whoever may want it stopped. Setting it is async-signal-safe.
class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  void cancel() const noexcept { flag_->store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool cancelled() const noexcept { return flag_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

struct CpuOptions {
  int threads = 0;                 ///< 0: every core this process may use (affinity and cgroup quota)
  std::uint64_t memory_limit = 0;  ///< bytes of working memory and results; 0: 80 % of what machine or cgroup has free
  ProgressFn progress = {};        ///< none by default
  CancelToken cancel = {};         ///< polled at least every 100 ms
  Isa isa = Isa::automatic;        ///< also settable by VICINAL_ISA
};

class VICINAL_API Context {
 public:
  /// The CPU. Throws `invalid_argument` for a thread count below 0 or above 4096 and for an unknown name in
  /// VICINAL_ISA, `device_unavailable` naming an instruction set that is not there. Threads start with the first work
  /// for them.
  static Context cpu(const CpuOptions& options = {});
  /// The best device of this machine. Today that is always the CPU.
  static Context automatic(const CpuOptions& options = {});

  [[nodiscard]] int threads() const noexcept;
  [[nodiscard]] std::uint64_t memory_limit() const noexcept;
  [[nodiscard]] Isa isa() const noexcept;  ///< the one in use, never `automatic`
  /// Throws Error{cancelled} once the token was set.
  void check_cancelled() const;
  /// Forwards to the progress function; does nothing without one.
  void report(std::string_view stage, double fraction) const;
  [[nodiscard]] core::ThreadPool& pool() const noexcept;
  [[nodiscard]] const CancelToken& cancel_token() const noexcept;

 private:
  struct State;
  explicit Context(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace vicinal
