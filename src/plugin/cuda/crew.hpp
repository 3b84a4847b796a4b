// The devices of a context that has several. A call is divided into phases, and in each a thread for every device works
// by itself; the calling thread waits for all of them, polls the cancel token, reports progress, and calls block
// sources for them. So nothing waits for a device that has failed: the others are canceled, and when their threads have
// ended, one error is thrown. Where VICINAL_DEVICE_TIMES names a file when the crew is made, each phase appends a line
// to it, for benchmarks: {"phase": its name, "host": seconds since the phase before, "devices": [seconds of each]}.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.hpp"
#include "plugin/cuda/device.hpp"
#include "vicinal/context.hpp"

namespace vicinal::plugin {

/// Begins of `parts` ranges of n items, as equal as multiples of `unit` allow: [parts + 1], none of them empty; fewer
/// parts where there are not so many units.
std::vector<std::int64_t> equal_cuts(std::int64_t n, std::int64_t parts, std::int64_t unit);

class Crew {
 public:
  /// Opens the devices; what they share of a context is that of `host`. Throws as Device::open.
  Crew(const CudaOptions& options, const CpuOptions& host, core::Ablation ablation);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(members_.size()); }
  /// Stands for this list of devices where an index keeps what devices hold; that of no single device.
  [[nodiscard]] int number() const noexcept { return number_; }
  /// What a device's thread calls a backend with.
  [[nodiscard]] const Context& context(std::int64_t member) const { return of(member).ctx; }
  [[nodiscard]] const std::shared_ptr<Device>& device(std::int64_t member) const { return of(member).device; }

  /// A phase of this name: runs work(member) on a thread for each of the first `count` devices. `meanwhile` is called
  /// on the calling thread again and again, after `wake` and when all have ended. Throws, when all have ended, what the
  /// lowest device threw that was not canceled because of others; what is wrong with a device, and not with the data,
  /// is preceded by its name. Calls from several threads take turns.
  void run(const char* name, const Context& ctx, std::int64_t count,
           const std::function<void(std::int64_t member)>& work, const std::function<void()>& meanwhile = {});
  /// A phase of one device, whose work is short: on the calling thread.
  void run_here(const Context& ctx, std::int64_t member, const std::function<void()>& work);
  /// For a device's thread: calls `meanwhile` soon.
  void wake();

 private:
  struct Board;
  struct Member {
    std::shared_ptr<Device> device;
    Context ctx;
  };
  class Phase;
  class Turn;

  void note(const char* name, std::int64_t count) const;
  [[nodiscard]] const Member& of(std::int64_t member) const { return members_[static_cast<std::size_t>(member)]; }

  std::shared_ptr<Board> board_;
  std::vector<Member> members_;
  int number_;
  pid_t owner_;
  std::string times_;  // where phases are noted; empty: nowhere
  std::mutex turn_;
  std::atomic<std::thread::id> caller_;  // whose turn it is
};

}  // namespace vicinal::plugin
