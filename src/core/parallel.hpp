// The thread pool: fixed tasks claimed one by one, cancellable, safe after fork, aware of affinity and cgroup quota.
// Results never depend on which thread ran a task (contract clause 4): tasks are fixed by the caller, not by the pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "vicinal/context.hpp"

namespace vicinal::core {

/// Cores this process may use: affinity mask cut by the cgroup's CPU quota (rounded up), at least 1.
int available_cores();

class ThreadPool {
 public:
  /// Starts nothing: threads are started by the first `run` that needs them.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const noexcept { return threads_; }

  /// Runs body(task, worker) for task in [0, tasks), worker in [0, threads()); the caller is worker 0 and takes part.
  /// Once a task has thrown no further one is claimed, and when all claimed ones have ended the exception of the
  /// smallest task number is rethrown: tasks are claimed in ascending order, so it is the same one whatever the thread
  /// count. Calls from several threads take turns. A call from inside a body runs serially, as the worker that makes it
  /// (as worker 0 when the body belongs to another pool). Every body sees the default floating-point environment
  /// (round to nearest, nothing flushed to zero), whatever the caller has set (contract clause 1).
  void run(std::int64_t tasks, const std::function<void(std::int64_t task, int worker)>& body);

  /// True on a thread that a pool has started.
  static bool on_worker_thread() noexcept;

 private:
  struct State;
  State& state_of_this_process();

  int threads_;
  std::atomic<State*> state_;  ///< replaced, not repaired, in a forked child
};

/// `pool.run` that polls the cancel token before each task (a task should take well under 100 ms).
void parallel_for(const Context& ctx, std::int64_t tasks,
                  const std::function<void(std::int64_t task, int worker)>& body);

}  // namespace vicinal::core
