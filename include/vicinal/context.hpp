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

/// Instruction set of the CPU kernels. `automatic` takes the widest that the machine has. An instruction set that the
/// machine lacks is an error. All give the same bits, except in embeddings (docs/contract.md, clause 17).
enum class Isa : std::uint8_t { automatic, baseline, avx2, avx512 };

/// "automatic", "baseline", "avx2", "avx512".
VICINAL_API std::string_view name_of(Isa isa) noexcept;

/// Called on the thread that called the library, with the name of a stage ("search", "read") and the fraction of it
/// that is done, in [0, 1]: when a stage begins and ends, and between these at most every 20 ms.
using ProgressFn = std::function<void(std::string_view stage, double fraction)>;

/// A flag by which one thread, or a signal handler, can stop the work of another thread. Copies share the flag. Setting
/// it is async-signal-safe.
class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  void cancel() const noexcept { flag_->store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool cancelled() const noexcept { return flag_->load(std::memory_order_relaxed); }

 private:
  friend struct core::ContextAccess;  // the library's own sources
  std::shared_ptr<std::atomic<bool>> flag_;
};

struct CpuOptions {
  int threads = 0;  ///< 0: every core this process may use (affinity and cgroup quota)
  /// Bytes of working memory and results; 0: 80 % of the free memory of machine or cgroup.
  std::uint64_t memory_limit = 0;
  ProgressFn progress = {};  ///< none by default
  CancelToken cancel = {};   ///< polled at least every 100 ms
  Isa isa = Isa::automatic;  ///< also settable by VICINAL_ISA
  /// Regular files are mapped instead of read: a table takes no memory of its own, and rows are fetched when they are
  /// used. A mapped file must not shrink while anything read from it is in use: access to a missing part raises SIGBUS.
  bool map_files = false;
};

/// CUDA devices, and the CPU for the work that a device does not do: reading files, filling blocks, custom weights.
struct CudaOptions {
  /// The driver's numbers of the devices, each once. Searches, votes, k-means and most outlier scores are divided among
  /// these devices; other work runs on the first one (docs/scale.md).
  std::vector<int> devices = {0};
  /// Bytes of memory of each device, including tables that stay there; 0: 80 % of the free memory.
  std::uint64_t device_memory_limit = 0;
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
  /// VICINAL_ISA, `device_unavailable` naming an instruction set that the machine lacks. Threads are started when they
  /// are first needed.
  static Context cpu(const CpuOptions& options = {});
  /// One CUDA device or several. Prepared tables stay in device memory, and calls from several threads take turns. With
  /// one device, tables may be in its memory (Memory::cuda). With several devices, tables must be in host memory, and
  /// each device gets an equal share of `threads`. The first call in a process takes some tenths of a second. Throws
  /// `device_unavailable` naming the first thing that is missing (driver, device, plug-in, a fitting version or
  /// architecture), `invalid_argument` for no device and for one that is named twice, and what `cpu` throws.
  static Context cuda(const CudaOptions& options = {});
  /// The first CUDA device if driver, device and plug-in are present, else the CPU. If the environment variable
  /// VICINAL_DEVICE is set ("auto", "cpu", "cuda", "cuda:1" or "cuda:0,1"), it decides. Throws `invalid_argument` for
  /// any other value of it, and what `cuda` throws if the value names CUDA.
  static Context automatic(const CpuOptions& options = {});

  /// The same device, threads, progress function and cancel token with another limit of host memory; 0: 80 % of the
  /// free memory of machine or cgroup. For a part of a job while other parts hold memory.
  [[nodiscard]] Context with_memory_limit(std::uint64_t bytes) const;

  /// "cpu", "cuda:0", "cuda:0,1".
  [[nodiscard]] const std::string& device() const noexcept;
  [[nodiscard]] int threads() const noexcept;
  [[nodiscard]] std::uint64_t memory_limit() const noexcept;
  [[nodiscard]] Isa isa() const noexcept;  ///< the one in use, never `automatic`
  [[nodiscard]] bool map_files() const noexcept;
  /// Throws Error{cancelled} once the token was set.
  void check_cancelled() const;
  /// Passes a stage and the fraction of it that is done, in [0, 1], to the progress function, as often as ProgressFn
  /// describes. `stage` must be a string literal, because stages are compared by address. Does nothing without a
  /// progress function, and on the library's own threads.
  void report(std::string_view stage, double fraction) const;
  [[nodiscard]] const CancelToken& cancel_token() const noexcept;

 private:
  friend struct core::ContextAccess;  // the library's own sources
  struct State;
  explicit Context(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace vicinal
