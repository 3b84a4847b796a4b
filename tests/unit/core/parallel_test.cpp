// The thread pool: each task once, on whatever thread; exceptions, cancel, nesting, concurrent callers, fork.
#include "core/parallel.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace vicinal::core {
namespace {

class ThreadPoolOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolOf, testing::Values(1, 2, 3, 7));

TEST_P(ThreadPoolOf, RunsEachTaskOnce) {
  ThreadPool pool(GetParam());
  for (const std::int64_t tasks : {0, 1, 2, 3, 10, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
    std::atomic<bool> valid{true};
    pool.run(tasks, [&](std::int64_t task, int worker) {
      ++runs[static_cast<std::size_t>(task)];
      if (worker < 0 || worker >= GetParam()) valid = false;
    });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
    EXPECT_TRUE(valid);
  }
}

TEST_P(ThreadPoolOf, GivesOneWorkerNumberToOneThreadAtATime) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> inside(static_cast<std::size_t>(GetParam()));
  std::atomic<bool> shared{false};
  pool.run(2000, [&](std::int64_t, int worker) {
    auto& count = inside[static_cast<std::size_t>(worker)];
    if (++count != 1) shared = true;
    --count;
  });
  EXPECT_FALSE(shared);
}

TEST_P(ThreadPoolOf, RethrowsTheExceptionOfTheSmallestTask) {
  ThreadPool pool(GetParam());
  for (int repetition = 0; repetition < 200; ++repetition) {
    std::atomic<int> running{0};
    try {
      pool.run(100, [&](std::int64_t task, int) {
        ++running;
        if (task == 17) std::this_thread::sleep_for(std::chrono::microseconds(50));
        --running;
        if (task >= 17) throw std::runtime_error(std::to_string(task));
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "17");
      EXPECT_EQ(running, 0);
    }
  }
}

TEST_P(ThreadPoolOf, StartsNoTaskLongAfterOneHasThrown) {
  ThreadPool pool(GetParam());
  std::atomic<std::int64_t> begun{0};
  EXPECT_THROW(pool.run(1'000'000,
                        [&](std::int64_t task, int) {
                          ++begun;
                          if (task == 0) throw std::runtime_error("stop");
                          std::this_thread::sleep_for(std::chrono::microseconds(100));
                        }),
               std::runtime_error);
  EXPECT_LT(begun, 500'000);
}

TEST_P(ThreadPoolOf, WorksAgainAfterAnException) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(pool.run(10, [](std::int64_t, int) { throw std::runtime_error("x"); }), std::runtime_error);
  std::atomic<int> count{0};
  pool.run(10, [&](std::int64_t, int) { ++count; });
  EXPECT_EQ(count, 10);
}

TEST_P(ThreadPoolOf, NestedCallsRunSeriallyAsTheSameWorker) {
  ThreadPool pool(GetParam());
  std::atomic<int> count{0};
  std::atomic<bool> moved{false};
  pool.run(20, [&](std::int64_t, int outer) {
    const auto thread = std::this_thread::get_id();
    std::int64_t expected = 0;
    pool.run(5, [&](std::int64_t task, int inner) {
      if (inner != outer || task != expected++ || std::this_thread::get_id() != thread) moved = true;
      ++count;
    });
  });
  EXPECT_EQ(count, 100);
  EXPECT_FALSE(moved);
}

TEST_P(ThreadPoolOf, ABodyMayUseAnotherPoolWhichUsesThisOne) {
  ThreadPool pool(GetParam());
  ThreadPool other(2);
  std::atomic<int> count{0};
  pool.run(8, [&](std::int64_t, int) {
    other.run(4, [&](std::int64_t, int worker) {
      EXPECT_EQ(worker, 0);
      pool.run(2, [&](std::int64_t, int) { ++count; });
    });
  });
  EXPECT_EQ(count, 64);
}

TEST_P(ThreadPoolOf, CallersOfSeveralThreadsTakeTurns) {
  ThreadPool pool(GetParam());
  std::vector<std::int64_t> sums(4);
  std::vector<std::thread> callers;
  for (std::size_t caller = 0; caller < sums.size(); ++caller) {
    callers.emplace_back([&, caller] {
      for (int repetition = 0; repetition < 200; ++repetition) {
        std::atomic<std::int64_t> sum{0};
        pool.run(20, [&](std::int64_t task, int) { sum += task; });
        sums[caller] += sum;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  for (const std::int64_t sum : sums) EXPECT_EQ(sum, 200 * 190);
}

TEST_P(ThreadPoolOf, WhatABodyWroteIsSeenByTheCallerWithoutAtomics) {
  ThreadPool pool(GetParam());
  std::vector<std::int64_t> squares(1000);
  for (int repetition = 0; repetition < 20; ++repetition) {
    pool.run(1000, [&](std::int64_t task, int) { squares[static_cast<std::size_t>(task)] += task; });
  }
  for (std::size_t i = 0; i < squares.size(); ++i) EXPECT_EQ(squares[i], static_cast<std::int64_t>(20 * i));
}

TEST_P(ThreadPoolOf, BodiesSeeTheDefaultRoundingAndTheCallerKeepsItsOwn) {
  ThreadPool pool(GetParam());
  const int before = std::fegetround();
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  std::atomic<int> wrong{0};
  for (const std::int64_t tasks : {1, 50}) {
    pool.run(tasks, [&](std::int64_t, int) {
      const volatile double tiny = 0x1p-60;
      if (1 + tiny != 1) ++wrong;
    });
  }
  const int after = std::fegetround();
  std::fesetround(before);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(after, FE_UPWARD);
}

TEST(ThreadPool, UsesSeveralThreadsWhenTasksWait) {
  ThreadPool pool(3);
  std::atomic<int> present{0};
  // Each task waits for the other two: this ends only if three threads are at work.
  pool.run(3, [&](std::int64_t, int) {
    ++present;
    while (present < 3) std::this_thread::yield();
  });
  EXPECT_EQ(present, 3);
}

TEST(ThreadPool, WorkersLeaveSignalsToTheProgram) {
  ThreadPool pool(3);
  std::atomic<int> present{0};
  std::atomic<int> open{0};
  pool.run(3, [&](std::int64_t, int worker) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (worker > 0 && sigismember(&mask, SIGINT) == 0) ++open;
    ++present;
    while (present < 3) std::this_thread::yield();
  });
  EXPECT_EQ(open, 0);
}

TEST(ThreadPool, OnlyItsOwnThreadsAreWorkerThreads) {
  ThreadPool pool(2);
  std::atomic<int> present{0};
  std::atomic<bool> wrong{false};
  pool.run(2, [&](std::int64_t, int worker) {
    if (ThreadPool::on_worker_thread() != (worker > 0)) wrong = true;
    ++present;
    while (present < 2) std::this_thread::yield();
  });
  EXPECT_FALSE(wrong);
  EXPECT_FALSE(ThreadPool::on_worker_thread());
}

/// Runs `child` in a forked child; its result is the exit status. A child that hangs is ended by its alarm.
template <class Child>
int in_child(const Child& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    int status = 99;
    try {
      status = child();
    } catch (...) {
    }
    _exit(status);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int sum_is_right(ThreadPool& pool) {
  std::atomic<std::int64_t> sum{0};
  std::atomic<int> present{0};
  pool.run(2, [&](std::int64_t task, int) {
    ++present;
    while (present < 2) std::this_thread::yield();  // two threads must be at work
    sum += task + 1;
  });
  return sum == 3 ? 0 : 1;
}

TEST(ThreadPool, WorksInAForkedChild) {
  ThreadPool pool(3);
  ASSERT_EQ(sum_is_right(pool), 0);
  EXPECT_EQ(in_child([&] { return sum_is_right(pool); }), 0);
  EXPECT_EQ(sum_is_right(pool), 0);
}

TEST(ThreadPool, WorksInTheChildOfAForkedChild) {
  ThreadPool pool(2);
  ASSERT_EQ(sum_is_right(pool), 0);
  EXPECT_EQ(in_child([&] {
              if (sum_is_right(pool) != 0) return 1;
              return in_child([&] { return sum_is_right(pool); });
            }),
            0);
}

TEST(ThreadPool, AForkWhileAnotherThreadIsInsideARunLeavesTheChildAWorkingPool) {
  ThreadPool pool(2);
  std::atomic<int> begun{0};
  std::atomic<bool> release{false};
  std::thread other([&] {
    pool.run(4, [&](std::int64_t, int) {
      ++begun;
      while (!release) std::this_thread::yield();
    });
  });
  // Both threads are inside: one that is only starting may hold a lock of a sanitizer's, which the child would inherit.
  while (begun < 2) std::this_thread::yield();
  const int status = in_child([&] { return sum_is_right(pool); });
  release = true;
  other.join();
  EXPECT_EQ(status, 0);
}

TEST(ThreadPool, CanBeDestroyedInAForkedChild) {
  auto pool = std::make_unique<ThreadPool>(3);
  ASSERT_EQ(sum_is_right(*pool), 0);
  EXPECT_EQ(in_child([&] {
              pool.reset();
              return 0;
            }),
            0);
}

TEST(ParallelFor, StopsWhenCancelledAndSaysSo) {
  for (const int threads : {1, 2, 3, 7}) {
    const CancelToken token;
    const Context ctx = Context::cpu({.threads = threads, .cancel = token});
    std::atomic<std::int64_t> begun{0};
    try {
      parallel_for(ctx, 1'000'000'000, [&](std::int64_t, int) {
        if (++begun == 100) token.cancel();
      });
      FAIL() << "not cancelled";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
    EXPECT_LT(begun, 1'000'000'000);
  }
}

TEST(ParallelFor, ACancelledContextStartsNothing) {
  const CancelToken token;
  token.cancel();
  const Context ctx = Context::cpu({.threads = 2, .cancel = token});
  std::atomic<int> begun{0};
  EXPECT_THROW(parallel_for(ctx, 10, [&](std::int64_t, int) { ++begun; }), Error);
  EXPECT_EQ(begun, 0);
}

TEST(AvailableCores, AreAtLeastOneAndAtMostWhatTheMachineHas) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_CONF))));
}

}  // namespace
}  // namespace vicinal::core
