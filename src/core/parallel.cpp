// A pool of our own because OpenMP's hangs in forked children and drowns ThreadSanitizer in false races.
// Workers sleep on a condition variable; a job is one atomic counter from which everybody claims task numbers. A run of
// one task, or on one thread, touches neither lock nor thread. After fork() only the forking thread exists in the child
// and locks may be held by threads that are gone, so the child makes itself a new State and abandons the old one.
#include "core/parallel.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/cgroup.hpp"
#include "core/context_state.hpp"
#include "core/floats.hpp"
#include "core/signals.hpp"

namespace vicinal::core {
namespace {

/// Which body this thread is inside of, if any.
struct Inside {
  const ThreadPool* pool = nullptr;
  int worker = 0;
};
thread_local Inside inside;
thread_local bool started_by_pool = false;

/// One call of `run`, on the caller's stack.
struct Job {
  const std::function<void(std::int64_t, int)>* body = nullptr;
  std::int64_t tasks = 0;
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;  // guards the two below
  std::int64_t failed_task = 0;
  std::exception_ptr error;

  /// Claims and runs tasks until none is left. A claimed task always runs: only then is the smallest one that throws
  /// found.
  void work(int worker) noexcept {
    while (!failed.load(std::memory_order_relaxed)) {
      const std::int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks) return;
      try {
        (*body)(task, worker);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error || task < failed_task) {
          error = std::current_exception();
          failed_task = task;
        }
        failed.store(true, std::memory_order_relaxed);
      }
    }
  }
};

/// Around bodies: `inside` set for nested calls to see, and the default floating-point environment.
class BodyScope {
 public:
  BodyScope(const ThreadPool* pool, int worker) noexcept : outer_(inside) { inside = {pool, worker}; }
  ~BodyScope() { inside = outer_; }
  BodyScope(const BodyScope&) = delete;
  BodyScope& operator=(const BodyScope&) = delete;

 private:
  Inside outer_;
  DefaultFloats floats_;
};

}  // namespace

struct ThreadPool::State {
  const pid_t owner = getpid();
  std::mutex turn;   // held by the caller whose job runs
  std::mutex mutex;  // guards all below
  std::condition_variable wake;
  std::condition_variable idle;
  std::vector<std::thread> workers;  // worker i + 1
  Job* job = nullptr;
  std::uint64_t jobs_started = 0;
  int busy = 0;  // workers inside `job`
  bool stop = false;
  State* next_abandoned = nullptr;

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (auto& worker : workers) worker.join();
  }

  void serve(const ThreadPool* pool, int worker) {
    started_by_pool = true;
    const BodyScope scope(pool, worker);
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return stop || (job != nullptr && jobs_started != seen); });
      if (stop) return;
      seen = jobs_started;
      Job* const mine = job;
      ++busy;
      lock.unlock();
      mine->work(worker);
      lock.lock();
      if (--busy == 0) idle.notify_all();
    }
  }

  void start_workers(const ThreadPool* pool, std::size_t count) {
    if (workers.size() >= count) return;
    const SignalsBlocked blocked;
    workers.reserve(count);
    while (workers.size() < count) {
      const int worker = static_cast<int>(workers.size()) + 1;
      try {
        workers.emplace_back([this, pool, worker] { serve(pool, worker); });
      } catch (const std::system_error& error) {
        throw Error(ErrorCode::invalid_argument, "threads = " + std::to_string(pool->threads()) + ": only " +
                                                     std::to_string(worker) + " could be had (" + error.what() + ")");
      }
    }
  }
};

ThreadPool::ThreadPool(int threads) : threads_(std::max(1, threads)), state_(new State) {}

ThreadPool::~ThreadPool() {
  const std::unique_ptr<State> state(&state_of_this_process());
}

bool ThreadPool::on_worker_thread() noexcept {
  return started_by_pool;
}

ThreadPool::State& ThreadPool::state_of_this_process() {
  // Kept reachable: nothing in an abandoned state may be destroyed, its threads and locks belong to another process.
  static std::atomic<State*> abandoned{nullptr};
  State* state = state_.load(std::memory_order_acquire);
  if (state->owner == getpid()) return *state;
  auto fresh = std::make_unique<State>();
  if (!state_.compare_exchange_strong(state, fresh.get(), std::memory_order_acq_rel)) return *state;
  State* head = abandoned.load(std::memory_order_relaxed);
  do {
    state->next_abandoned = head;
  } while (!abandoned.compare_exchange_weak(head, state, std::memory_order_acq_rel));
  return *fresh.release();
}

void ThreadPool::run(std::int64_t tasks, const std::function<void(std::int64_t, int)>& body) {
  if (tasks <= 0) return;
  if (inside.pool != nullptr || tasks == 1 || threads_ == 1) {
    const BodyScope scope(this, inside.pool == this ? inside.worker : 0);
    for (std::int64_t task = 0; task < tasks; ++task) body(task, inside.worker);
    return;
  }
  State& state = state_of_this_process();
  const std::lock_guard turn(state.turn);
  Job job;
  job.body = &body;
  job.tasks = tasks;
  const auto helpers = static_cast<std::size_t>(std::min<std::int64_t>(threads_ - 1, tasks - 1));
  {
    const std::lock_guard lock(state.mutex);
    state.start_workers(this, helpers);
    state.job = &job;
    ++state.jobs_started;
  }
  if (helpers == state.workers.size()) {
    state.wake.notify_all();
  } else {
    for (std::size_t i = 0; i < helpers; ++i) state.wake.notify_one();
  }
  {
    const BodyScope scope(this, 0);
    job.work(0);
  }
  {
    std::unique_lock lock(state.mutex);
    state.job = nullptr;  // whoever wakes up only now has nothing to do
    state.idle.wait(lock, [&] { return state.busy == 0; });
  }
  if (job.error) std::rethrow_exception(job.error);
}

int available_cores() {
  int cores = 0;
  // The kernel's mask may be wider than cpu_set_t: grow until it fits.
  for (int cpus = 1024; cpus <= (1 << 20) && cores == 0; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cpus));
    if (set == nullptr) break;
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    if (sched_getaffinity(0, size, set) == 0) cores = CPU_COUNT_S(size, set);
    CPU_FREE(set);
  }
  if (cores == 0) cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const double quota = std::ceil(read_cgroup_limits().cpus);
  return std::max(1, quota < cores ? static_cast<int>(quota) : cores);
}

void parallel_for(const Context& ctx, std::int64_t tasks,
                  const std::function<void(std::int64_t task, int worker)>& body) {
  ContextAccess::pool(ctx).run(tasks, [&](std::int64_t task, int worker) {
    ctx.check_cancelled();
    body(task, worker);
  });
}

}  // namespace vicinal::core
