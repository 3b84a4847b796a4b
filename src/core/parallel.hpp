// The thread pool: fixed tasks claimed one by one, cancellable, safe after fork, aware of affinity and cgroup quota.
// Results never depend on which thread ran a task (contract clause 4): tasks are fixed by the caller, not by the pool.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "vicinal/context.hpp"

namespace vicinal::core {

/// Cores this process may use: affinity mask cut by the cgroup's CPU quota (rounded up), at least 1.
int available_cores();

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const noexcept { return threads_; }
  /// Runs body(task, worker) for task in [0, tasks), worker in [0, threads()); the caller is worker 0 and takes part.
  /// The first exception (by task number among those thrown) is rethrown after every running task has ended; no task
  /// starts after one has thrown. Calls from several threads take turns; a call from inside a body runs serially.
  void run(std::int64_t tasks, const std::function<void(std::int64_t task, int worker)>& body);

 private:
  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

/// `pool.run` that polls the cancel token before each task (a task should take well under 100 ms).
void parallel_for(const Context& ctx, std::int64_t tasks,
                  const std::function<void(std::int64_t task, int worker)>& body);

}  // namespace vicinal::core
