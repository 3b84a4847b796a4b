// Ranks as threads: one body for each, and what each of them threw. A watchdog ends the process if one hangs.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "vicinal/communicator.hpp"
#include "vicinal/context.hpp"

namespace vicinal::contract {

/// Ends the process, and with it the test, unless it goes out of scope in time.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds limit)
      : thread_([this, limit] {
          std::unique_lock lock(mutex_);
          if (over_.wait_for(lock, limit, [this] { return is_over_; })) return;
          std::fputs("a rank hangs\n", stderr);
          std::abort();
        }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    over_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

/// While it lives, contexts are made whose ranks search one shard at a time, as they do where memory is short.
class OneShardAtATime {
 public:
  explicit OneShardAtATime(bool is_so) {
    if (is_so) static_cast<void>(setenv("VICINAL_ABLATION", "whole-table", 1));
  }
  OneShardAtATime(const OneShardAtATime&) = delete;
  OneShardAtATime& operator=(const OneShardAtATime&) = delete;
  ~OneShardAtATime() { static_cast<void>(unsetenv("VICINAL_ABLATION")); }
};

/// What a rank threw: its code and sentence; none for one that came to its end.
struct Thrown {
  bool is_error = false;
  ErrorCode code = ErrorCode::internal;
  std::string sentence;
};

/// Runs body(communicator) on every rank. Communicators end with their body, as those of ranks that leave do.
inline std::vector<Thrown> run_ranks(int ranks, const std::function<void(Communicator& communicator)>& body,
                                     std::chrono::milliseconds stall_limit = std::chrono::minutes(5)) {
  const Watchdog watchdog(std::chrono::minutes(10));
  std::vector<Communicator> ends = Communicator::threads(ranks, stall_limit);
  std::vector<Thrown> thrown(ends.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Communicator own = std::move(ends[rank]);
      try {
        body(own);
      } catch (const Error& error) {
        thrown[rank] = {true, error.code(), error.what()};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

/// No rank threw.
inline void expect_no_error(const std::vector<Thrown>& thrown, const std::string& what) {
  for (std::size_t rank = 0; rank < thrown.size(); ++rank) {
    EXPECT_FALSE(thrown[rank].is_error) << what << ", rank " << rank << ": " << thrown[rank].sentence;
  }
}

/// All ranks threw the same error, whose sentence has these words.
inline void expect_same_error(const std::vector<Thrown>& thrown, ErrorCode code, const std::string& words) {
  for (std::size_t rank = 0; rank < thrown.size(); ++rank) {
    EXPECT_TRUE(thrown[rank].is_error) << "rank " << rank << " did not throw, though " << words;
    EXPECT_EQ(thrown[rank].code, code) << thrown[rank].sentence;
    EXPECT_EQ(thrown[rank].sentence, thrown[0].sentence) << "rank " << rank;
  }
  EXPECT_NE(thrown[0].sentence.find(words), std::string::npos) << thrown[0].sentence << "\nwithout: " << words;
}

/// Where n rows are cut for so many ranks, [ranks + 1]: each has a row, sizes differ, the first shard is small.
inline std::vector<std::int64_t> uneven_cuts(std::int64_t n, int ranks, std::uint64_t seed) {
  std::vector<std::int64_t> cuts = {0};
  std::uint64_t state = seed * 2654435761U + 12345;
  for (int rank = 1; rank < ranks; ++rank) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::int64_t left = n - cuts.back() - (ranks - rank);  // a row for each that follows
    const std::int64_t most = rank == 1 ? std::min<std::int64_t>(left, 3) : 2 * left / (ranks - rank + 1);
    cuts.push_back(cuts.back() + 1 + static_cast<std::int64_t>(state >> 33) % std::max<std::int64_t>(most, 1));
  }
  cuts.push_back(n);
  return cuts;
}

/// A context of a rank: instruction sets and threads differ between ranks.
inline Context context_of_rank(int rank, std::uint64_t turn, const CancelToken& cancel = {}) {
  const auto& isas = available_isas();
  return Context::cpu({.threads = 1 + (rank + static_cast<int>(turn % 3)) % 3,
                       .cancel = cancel,
                       .isa = isas[(static_cast<std::size_t>(rank) + turn) % isas.size()]});
}

}  // namespace vicinal::contract
