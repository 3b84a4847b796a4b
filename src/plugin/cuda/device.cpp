// See device.hpp.
#include "plugin/cuda/device.hpp"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>

#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "plugin/cuda/loader.hpp"

namespace vicinal::plugin {
namespace {

constexpr std::int64_t kFillBytes = std::int64_t{1} << 19;  // of one thread's task

bool is_of_device(ErrorCode code) {
  return code == ErrorCode::internal || code == ErrorCode::over_memory || code == ErrorCode::device_unavailable;
}

}  // namespace

Error with_name_of(const std::string& device, const Error& error) {
  const std::string_view sentence = error.what();
  if (!is_of_device(error.code()) || sentence.find(device) != std::string_view::npos) return error;
  return Error(error.code(), device + ": " + std::string(sentence));
}

HostCalls Call::host() {
  HostCalls calls;
  calls.user = this;
  calls.cancelled = [](void* user) -> std::int32_t {
    const Call& call = *static_cast<Call*>(user);
    return call.failed_.load(std::memory_order_relaxed) || call.ctx_.cancel_token().cancelled() ? 1 : 0;
  };
  calls.report = [](void* user, const char* stage, double fraction) {
    Call& call = *static_cast<Call*>(user);
    call.keep([&] { call.ctx_.report(stage, fraction); });
  };
  return calls;
}

std::int32_t Call::keep(const std::function<void()>& work) noexcept {
  try {
    work();
    return 0;
  } catch (...) {
    if (!error_) error_ = std::current_exception();
    failed_.store(true, std::memory_order_relaxed);
    return 1;
  }
}

void Call::check() const {
  if (error_) std::rethrow_exception(error_);
}

CallersThread*& CallersThread::current() noexcept {
  static thread_local CallersThread* current = nullptr;
  return current;
}

Table BorrowedTable::shape_of(const TableView& view) {
  Table table;
  table.data = view.is_block_source() ? nullptr : view.data();
  table.rows = view.rows();
  table.cols = view.cols();
  table.row_stride = view.row_stride();
  table.col_stride = view.col_stride();
  table.dtype = static_cast<std::int32_t>(view.dtype());
  table.memory = static_cast<std::int32_t>(view.memory());
  return table;
}

BorrowedTable::BorrowedTable(Call& call, const TableView& view) : call_(call), view_(view), table_(shape_of(view)) {
  table_.source = this;
  table_.fill = [](void* source, std::int64_t begin, std::int64_t end, void* rows) -> std::int32_t {
    const BorrowedTable& table = *static_cast<BorrowedTable*>(source);
    return table.call_.keep([&] { table.fill(begin, end, rows); });
  };
}

void BorrowedTable::fill(std::int64_t begin, std::int64_t end, void* rows) const {
  const Context& ctx = call_.context();
  const std::int64_t bytes = view_.cols() * size_of(view_.dtype());
  const std::int64_t step = std::max<std::int64_t>(1, kFillBytes / bytes);
  const auto copy = [&] { core::copy_rows(view_, begin, end, rows); };
  if (view_.is_block_source() || end - begin <= step) {
    ctx.check_cancelled();
    CallersThread* const caller = view_.is_block_source() ? CallersThread::current() : nullptr;
    return caller != nullptr ? caller->run(copy) : copy();
  }
  core::parallel_for(ctx, (end - begin + step - 1) / step, [&](std::int64_t task, int /*worker*/) {
    const std::int64_t first = begin + task * step;
    core::copy_rows(view_, first, std::min(end, first + step), static_cast<std::byte*>(rows) + task * step * bytes);
  });
}

std::shared_ptr<Device> Device::open(int number, std::uint64_t memory_limit, core::Ablation ablation) {
  const std::string name = "cuda:" + std::to_string(number);
  const Driver& found = driver();
  if (!found.missing.empty()) throw Error(ErrorCode::device_unavailable, name + " cannot be used: " + found.missing);
  if (number < 0 || static_cast<std::size_t>(number) >= found.devices.size()) {
    throw Error(ErrorCode::device_unavailable,
                name + " cannot be used: the NVIDIA driver knows " + std::to_string(found.devices.size()) +
                    (found.devices.size() == 1 ? " device" : " devices") + ", numbered from 0");
  }
  const Functions* functions = nullptr;
  try {
    functions = plugin().functions;
  } catch (const Error& error) {
    throw Error(error.code(), name + " cannot be used: " + error.what());
  }
  std::shared_ptr<Device> device(new Device(*functions, number));
  const OpenOptions options{number, memory_limit, static_cast<std::int32_t>(ablation)};
  Status status;
  functions->open(&options, &device->engine_, &device->facts_, &status);
  if (status.code != kOk) {
    // Whatever fails while a device is opened, it is the device that is not to be had.
    throw Error(ErrorCode::device_unavailable, name + " cannot be used: " + status.message);
  }
  device->owner_ = getpid();
  return device;
}

/// A caller's turn, which has come.
class Device::Turn {
 public:
  explicit Turn(Device& device) : device_(device) {}
  ~Turn() {
    device_.turn_.unlock();
    device_.release_left();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Device& device_;
};

Device::~Device() {
  // In a forked child the engine belongs to the parent: touching it there could hang.
  if (engine_ != nullptr && owner_ == getpid()) functions_.close(engine_);
}

void refuse_callback(const std::string& device) {
  throw Error(ErrorCode::invalid_argument,
              device + " waits for the callback that asks it; call it afterwards, or use another context");
}

void Device::use(const Context& ctx, const std::function<void(void*, Call&, Status&)>& work) {
  if (owner_ != getpid()) {
    throw Error(ErrorCode::device_unavailable,
                "cuda:" + std::to_string(number_) + " was opened before this process was forked; open it in the child");
  }
  while (!turn_.try_lock()) {
    ctx.check_cancelled();
    if (attended_by_ == std::this_thread::get_id()) refuse_callback("cuda:" + std::to_string(number_));
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  const Turn turn(*this);
  ctx.check_cancelled();
  Call call(ctx);
  Status status;
  work(engine_, call, status);
  call.check();
  check(status);
}

void Device::check(const Status& status) const {
  if (status.code == kOk) return;
  const Error error(static_cast<ErrorCode>(status.code - 1), status.message);
  throw name_.empty() ? error : with_name_of(name_, error);
}

std::shared_ptr<void> Device::own(void* held, void (*release)(void* held)) {
  return {held, [device = shared_from_this(), release](void* made) {
            if (device->owner_ == getpid()) device->let_go({made, release});
          }};
}

// Who has the turn may be waiting for this thread, such as for a callback that lets go of a table.
void Device::let_go(Left left) noexcept {
  try {
    const std::lock_guard lock(left_mutex_);
    left_.push_back(left);
  } catch (const std::bad_alloc&) {
    const std::lock_guard turn(turn_);
    return left.release(left.held);
  }
  release_left();
}

// If it is another caller's turn, that caller comes here afterwards.
void Device::release_left() noexcept {
  for (;;) {
    std::vector<Left> left;
    {
      const std::lock_guard lock(left_mutex_);
      if (left_.empty()) return;
    }
    const std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn) return;
    {
      const std::lock_guard lock(left_mutex_);
      left.swap(left_);
    }
    for (const Left& each : left) each.release(each.held);
  }
}

}  // namespace vicinal::plugin
