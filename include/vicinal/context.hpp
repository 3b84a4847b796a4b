// Context: where work runs and within which limits. Cheap to copy; copies share one thread pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/error.hpp"

namespace vicinal {

namespace core {
struct ContextAccess;
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
  /// Regular files are mapped instead of read: a table costs no memory of its own, and rows are fetched when they are
  /// used. A mapped file must not shrink while anything read from it is in use: touching what is gone raises SIGBUS.
  bool map_files = false;
};

/// A CUDA device, and the CPU for what stays there: reading files, filling blocks, custom weights.
struct CudaOptions {
  std::vector<int> devices = {0};  ///< numbers as the driver counts them; one, for now
  std::uint64_t device_memory_limit =
      0;                           ///< bytes of device memory, tables kept there included; 0: 80 % of what is free
  std::uint64_t memory_limit = 0;  ///< as CpuOptions, of host memory
  int threads = 0;
  ProgressFn progress = {};
  CancelToken cancel = {};
  Isa isa = Isa::automatic;
  bool map_files = false;  ///< as CpuOptions
};

class VICINAL_API Context {
 public:
  /// The CPU. Throws `invalid_argument` for a thread count below 0 or above 4096 and for an unknown name in
  /// VICINAL_ISA, `device_unavailable` naming an instruction set that is not there. Threads start with the first work
  /// for them.
  static Context cpu(const CpuOptions& options = {});
  /// A CUDA device. Tables may lie in its memory (Memory::cuda), prepared tables stay there, and calls from several
  /// threads take turns. Takes some tenths of a second, once a process. Throws `device_unavailable` naming the first
  /// thing that is missing (driver, device, plug-in, a fitting version or architecture), `invalid_argument` for more
  /// than one device, and what `cpu` throws.
  static Context cuda(const CudaOptions& options = {});
  /// The best device of this machine: the first CUDA device where driver, device and plug-in are there, else the CPU.
  /// VICINAL_DEVICE decides where it is set: "auto", "cpu", "cuda" or "cuda:1"; throws `invalid_argument` for any other
  /// value, and what `cuda` throws where it asks for CUDA.
  static Context automatic(const CpuOptions& options = {});

  /// The same device, threads, progress function and cancel token with another limit on host memory; 0: 80 % of what
  /// machine or cgroup has free. For a part of a job, where other parts hold memory of their own.
  [[nodiscard]] Context with_memory_limit(std::uint64_t bytes) const;

  /// "cpu", "cuda:0".
  [[nodiscard]] const std::string& device() const noexcept;
  [[nodiscard]] int threads() const noexcept;
  [[nodiscard]] std::uint64_t memory_limit() const noexcept;
  [[nodiscard]] Isa isa() const noexcept;  ///< the one in use, never `automatic`
  [[nodiscard]] bool map_files() const noexcept;
  /// Throws Error{cancelled} once the token was set.
  void check_cancelled() const;
  /// Forwards to the progress function; does nothing without one.
  void report(std::string_view stage, double fraction) const;
  [[nodiscard]] const CancelToken& cancel_token() const noexcept;

 private:
  friend struct core::ContextAccess;  // the library's own sources
  struct State;
  explicit Context(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace vicinal
