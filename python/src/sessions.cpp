#include "sessions.hpp"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "vicinal/device.hpp"

namespace vicinal::python {

struct Session::State {
  Place place;              // its memory limit aside
  std::string environment;  // that the context was made in
  Context context;
  std::shared_ptr<ProgressFn> progress;
  std::chrono::steady_clock::time_point limited;  // when the default memory limit was looked up
};

namespace {

// How old the default memory limit may be, 80 % of what is free: reading that takes longer than a small search.
constexpr std::chrono::seconds kLimitAge{1};
constexpr std::size_t kMaxWaiting = 8;  // each has threads of its own

struct Waiting {
  std::mutex mutex;                                       // locked with the GIL alone, so that no fork finds it locked
  std::vector<std::unique_ptr<Session::State>> sessions;  // the latest last
};
/// Never deleted, so that no thread is joined when the interpreter ends.
Waiting& waiting() {
  static auto* const all = new Waiting;
  return *all;
}

/// What a context reads of the environment.
std::string environment_now() {
  std::string all;
  for (const char* const name : {"VICINAL_DEVICE", "VICINAL_ISA", "VICINAL_ABLATION"}) {
    const char* const value = std::getenv(name);
    all += value == nullptr ? "" : value;
    all += '\n';
  }
  return all;
}

bool is_same(const Place& a, const Place& b) {
  return a.device == b.device && a.threads == b.threads && a.device_memory_limit == b.device_memory_limit;
}

/// The latest session for a place; null where none waits.
std::unique_ptr<Session::State> waiting_state(const Place& place, const std::string& environment) {
  const std::lock_guard lock(waiting().mutex);
  auto& sessions = waiting().sessions;
  for (auto one = sessions.rbegin(); one != sessions.rend(); ++one) {
    if (!is_same((*one)->place, place) || (*one)->environment != environment) continue;
    std::unique_ptr<Session::State> state = std::move(*one);
    sessions.erase(std::next(one).base());
    return state;
  }
  return nullptr;
}

std::atomic<int> threadpoolctl_limit{0};  // 0: none

/// What joblib's workers and many users set; 0 where it is not set or no number.
int threads_by_environment() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  const std::string_view view(text);
  int threads = 0;
  std::from_chars(view.data(), view.data() + view.size(), threads);
  return std::max(threads, 0);
}

template <class Options>
Options options_of(const Place& place, const ProgressFn& progress) {
  Options options;
  // What is no thread count, the context refuses.
  options.threads = place.threads < 0 || place.threads > 1 << 30 ? -1 : static_cast<int>(place.threads);
  options.progress = progress;
  return options;
}

Context context_of(const Place& place, const ProgressFn& progress) {
  const std::string_view device = place.device;
  if (device == "auto") return Context::automatic(options_of<CpuOptions>(place, progress));
  if (device == "cpu") return Context::cpu(options_of<CpuOptions>(place, progress));
  auto options = options_of<CudaOptions>(place, progress);
  options.device_memory_limit = place.device_memory_limit;
  options.devices = cuda_devices_from(device);
  if (options.devices.empty()) {
    throw Error(ErrorCode::invalid_argument, "device: unknown value '" + place.device +
                                                 "'; expected 'auto', 'cpu', 'cuda', a number such as 'cuda:1' or "
                                                 "several such as 'cuda:0,1'");
  }
  return Context::cuda(options);
}

std::unique_ptr<Session::State> new_state(const Place& place, const std::string& environment) {
  const nanobind::gil_scoped_release released;  // a device takes some tenths of a second to open
  auto progress = std::make_shared<ProgressFn>();
  const ProgressFn forward = [progress](std::string_view stage, double fraction) {
    if (*progress) (*progress)(stage, fraction);
  };
  return std::make_unique<Session::State>(
      Session::State{place, environment, context_of(place, forward), progress, std::chrono::steady_clock::now()});
}

}  // namespace

Session::Session(Place place) {
  if (place.threads == 0) place.threads = thread_limit();
  const auto now = std::chrono::steady_clock::now();
  const std::string environment = environment_now();
  state_ = waiting_state(place, environment);
  if (state_ == nullptr) state_ = new_state(place, environment);
  if (place.memory_limit != 0) {
    context_ = state_->context.with_memory_limit(place.memory_limit);
    return;
  }
  if (now - state_->limited > kLimitAge) {
    state_->context = state_->context.with_memory_limit(0);
    state_->limited = now;
  }
  context_ = state_->context;
}

Session::~Session() {
  *state_->progress = nullptr;
  context_.reset();
  if (state_->context.cancel_token().cancelled()) return;
  const std::lock_guard lock(waiting().mutex);
  auto& sessions = waiting().sessions;
  sessions.push_back(std::move(state_));
  if (sessions.size() > kMaxWaiting) sessions.erase(sessions.begin());
}

int thread_limit() {
  const int by_environment = threads_by_environment();
  const int limit = threadpoolctl_limit.load(std::memory_order_relaxed);
  const int threads = limit == 0 || by_environment == 0 ? limit + by_environment : std::min(limit, by_environment);
  // Asked last, since the system is asked for the number of cores.
  return threads == 0 || threads >= static_cast<int>(std::thread::hardware_concurrency()) ? 0 : threads;
}

void forget_sessions() {
  const std::lock_guard lock(waiting().mutex);
  waiting().sessions.clear();
}

void Session::tell(ProgressFn progress) {
  *state_->progress = std::move(progress);
}

}  // namespace vicinal::python

int vicinal_get_num_threads() {
  using namespace vicinal;
  const int limit = python::thread_limit();
  if (limit > 0) return limit;
  try {
    return Context::cpu().threads();
  } catch (const std::exception&) {
    return 1;  // no context can be made, so no call has threads
  }
}

void vicinal_set_num_threads(int threads) {
  vicinal::python::threadpoolctl_limit.store(std::max(threads, 0), std::memory_order_relaxed);
}
