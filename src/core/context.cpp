// Context: options checked once, then shared by every copy. Contexts are made where their backends are known:
// src/backend/backend.cpp, src/plugin/cuda/context.cpp.
#include "vicinal/context.hpp"

#include <chrono>
#include <string>

#include "core/context_state.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"

namespace vicinal {
namespace {

constexpr int kMaxThreads = 4096;                  // beyond any machine; catches nonsense before it starts threads
constexpr std::int64_t kReportEvery = 20'000'000;  // nanoseconds between two progress reports

std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

int core::checked_threads(int threads) {
  if (threads < 0 || threads > kMaxThreads) {
    throw Error(ErrorCode::invalid_argument, "threads = " + std::to_string(threads) + ": must be between 0 (all) and " +
                                                 std::to_string(kMaxThreads));
  }
  return threads == 0 ? available_cores() : threads;
}

Context Context::with_memory_limit(std::uint64_t bytes) const try {
  const core::Entry entry;
  return Context(std::make_shared<State>(*state_, bytes));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

int Context::threads() const noexcept {
  return state_->pool->threads();
}
std::uint64_t Context::memory_limit() const noexcept {
  return state_->memory_limit;
}
bool Context::map_files() const noexcept {
  return state_->map_files;
}
Isa Context::isa() const noexcept {
  return state_->isa;
}
const CancelToken& Context::cancel_token() const noexcept {
  return state_->cancel;
}
const std::string& Context::device() const noexcept {
  return state_->device;
}

void Context::check_cancelled() const {
  if (state_->cancel.cancelled()) throw Error(ErrorCode::cancelled, "cancelled");
}

void Context::report(std::string_view stage, double fraction) const {
  if (!state_->progress || core::ThreadPool::on_worker_thread()) return;
  const std::int64_t now = nanoseconds_now();
  std::int64_t next = state_->next_report.load(std::memory_order_relaxed);
  // A stage's beginning and its end are always told, however short it is.
  const bool begins = state_->reported_stage.exchange(stage.data(), std::memory_order_relaxed) != stage.data();
  if (begins) {
    state_->next_report.store(now + kReportEvery, std::memory_order_relaxed);
  } else if (!(fraction >= 1)) {
    if (now < next) return;
    // Of two threads that call the library at once, one reports.
    if (!state_->next_report.compare_exchange_strong(next, now + kReportEvery, std::memory_order_relaxed)) return;
  }
  state_->progress(stage, fraction);
}

}  // namespace vicinal
