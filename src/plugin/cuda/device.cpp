// See device.hpp.
#include "plugin/cuda/device.hpp"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "plugin/cuda/loader.hpp"

namespace vicinal::plugin {
namespace {

constexpr std::int64_t kFillBytes = std::int64_t{1} << 19;  // of one thread's task

Error error_of(const Status& status) {
  return Error(static_cast<ErrorCode>(status.code - 1), status.message);
}

}  // namespace

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

void Call::finish(const Status& status) const {
  if (error_) std::rethrow_exception(error_);
  if (status.code != kOk) throw error_of(status);
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
  if (view_.is_block_source() || end - begin <= step) {
    ctx.check_cancelled();
    core::copy_rows(view_, begin, end, rows);
    return;
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

Device::~Device() {
  // In a forked child the engine belongs to the parent: touching it there could hang.
  if (engine_ != nullptr && owner_ == getpid()) functions_.close(engine_);
}

void Device::use(const Context& ctx, const std::function<void(void*, Call&, Status&)>& work) {
  if (owner_ != getpid()) {
    throw Error(ErrorCode::device_unavailable,
                "cuda:" + std::to_string(number_) + " was opened before this process was forked; open it in the child");
  }
  while (!turn_.try_lock()) {
    ctx.check_cancelled();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  const std::lock_guard turn(turn_, std::adopt_lock);
  ctx.check_cancelled();
  Call call(ctx);
  Status status;
  work(engine_, call, status);
  call.finish(status);
}

std::shared_ptr<void> Device::own(void* held, void (*release)(void* held)) {
  return {held, [device = shared_from_this(), release](void* made) {
            if (device->owner_ != getpid()) return;
            const std::lock_guard turn(device->turn_);
            release(made);
          }};
}

}  // namespace vicinal::plugin
