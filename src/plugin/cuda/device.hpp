// One CUDA device as a context holds it: the plug-in's engine, one caller at a time, and what a callback of the host
// threw. A forked child cannot use its parent's device and is told so.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/ablation.hpp"
#include "plugin/abi/plugin.hpp"
#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal::plugin {

/// A call into the plug-in: its callbacks, and the first exception that one of them met.
class Call {
 public:
  explicit Call(const Context& ctx) : ctx_(ctx) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] HostCalls host();
  [[nodiscard]] const Context& context() const noexcept { return ctx_; }
  /// Runs `work`; keeps what it throws. Not 0 when it threw.
  std::int32_t keep(const std::function<void()>& work) noexcept;
  /// Throws what a callback threw.
  void check() const;

 private:
  const Context& ctx_;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
};

/// Has work done on the thread that called the library, for a thread of the library's own: block sources are called
/// there.
class CallersThread {
 public:
  CallersThread() = default;
  virtual ~CallersThread() = default;
  CallersThread(const CallersThread&) = delete;
  CallersThread& operator=(const CallersThread&) = delete;

  /// Waits for the end of work(), and throws what it threw.
  virtual void run(const std::function<void()>& work) = 0;

  /// That of this thread; null on the caller's own.
  static CallersThread*& current() noexcept;
};

/// A table as the plug-in sees it. Borrows the view and the call.
class BorrowedTable {
 public:
  BorrowedTable(Call& call, const TableView& view);
  BorrowedTable(const BorrowedTable&) = delete;
  BorrowedTable& operator=(const BorrowedTable&) = delete;

  [[nodiscard]] const Table& table() const noexcept { return table_; }
  /// The table for functions that do not read it.
  static Table shape_of(const TableView& view);

 private:
  void fill(std::int64_t begin, std::int64_t end, void* rows) const;

  Call& call_;
  const TableView& view_;
  Table table_;
};

/// An error whose sentence begins with a device's name if the device is at fault, and not the data, and it does not
/// have the name yet.
Error with_name_of(const std::string& device, const Error& error);

/// For a callback or a block source that asks devices which wait for it.
[[noreturn]] void refuse_callback(const std::string& device);

class Device : public std::enable_shared_from_this<Device> {
 public:
  /// Opens the device. Throws `device_unavailable` naming what is missing.
  static std::shared_ptr<Device> open(int number, std::uint64_t memory_limit, core::Ablation ablation);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] const EngineFacts& facts() const noexcept { return facts_; }
  [[nodiscard]] const Functions& functions() const noexcept { return functions_; }
  /// For functions that only look; all others through `use`.
  [[nodiscard]] void* engine() const noexcept { return engine_; }
  /// Throws what a function that only looks says.
  void check(const Status& status) const;
  /// From now on errors begin with its name: it is one of several devices.
  void name_errors() { name_ = "cuda:" + std::to_string(number_); }
  /// Until the next call: work on this device may wait for that thread, which therefore may not wait for the device.
  void attended_by(std::thread::id thread) noexcept { attended_by_ = thread; }

  /// Calls work(engine, call, status) when it is this caller's turn, and throws what went wrong. Waiting is
  /// cancellable.
  void use(const Context& ctx, const std::function<void(void* engine, Call& call, Status& status)>& work);
  /// Owns a table on the device, or what else `release` lets go of, and the device with it. Letting go of it waits for
  /// nobody: if it is another caller's turn, it is released at the end of that.
  [[nodiscard]] std::shared_ptr<void> own(void* held, void (*release)(void* held));

 private:
  class Turn;
  struct Left {
    void* held;
    void (*release)(void* held);
  };

  Device(const Functions& functions, int number) : functions_(functions), number_(number) {}
  void let_go(Left left) noexcept;
  void release_left() noexcept;

  const Functions& functions_;
  int number_;
  pid_t owner_ = 0;
  void* engine_ = nullptr;
  EngineFacts facts_;
  std::string name_;  // of one of several, which begins its errors
  std::atomic<std::thread::id> attended_by_;
  std::recursive_mutex turn_;  // recursive: a callback may let go of a table
  std::mutex left_mutex_;      // of what follows
  std::vector<Left> left_;     // what was let go of during another caller's turn
};

}  // namespace vicinal::plugin
