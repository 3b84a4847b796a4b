// How a rank waits: it asks MPI again and again, and sleeps between when the wait is no longer a short one.
//
// MPI has no wait that sleeps until something arrives. Ranks may share a core, and one that asks without a break takes
// it from the others; one that yields may wait for the end of another one's time slice; one that sleeps runs soon after
// it wakes. A sleep is a small share of the time waited so far, so that what it adds is a small share, too.
#pragma once

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace vicinal::mpi {

class Waiting {
 public:
  using Clock = std::chrono::steady_clock;

  /// `has_core`: no other rank of the host needs the core of this one.
  explicit Waiting(bool has_core) : eager_(has_core ? kEager : kEagerOnSharedCores) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (slack_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_));
  }

  [[nodiscard]] Clock::time_point begun() const noexcept { return begun_; }

  /// Between two questions.
  void pause(Clock::time_point now) {
    const auto waited = now - begun_;
    if (waited < eager_) return;
    if (slack_ == 0) {  // Linux wakes a thread up to 50 us late unless that is changed
      slack_ = prctl(PR_GET_TIMERSLACK);
      prctl(PR_SET_TIMERSLACK, 1UL);
    }
    std::this_thread::sleep_for(std::clamp<Clock::duration>(waited / kShare, kMinSleep, kMaxSleep));
  }

 private:
  // Longer than another rank needs to wake, so that a rank that is answered by one that slept does not sleep as well.
  static constexpr Clock::duration kEager = std::chrono::microseconds(200);
  static constexpr Clock::duration kEagerOnSharedCores = std::chrono::microseconds(20);
  static constexpr Clock::duration kMinSleep = std::chrono::microseconds(5);
  static constexpr Clock::duration kMaxSleep = std::chrono::milliseconds(2);
  static constexpr int kShare = 64;

  Clock::time_point begun_ = Clock::now();
  Clock::duration eager_;
  int slack_ = 0;  // nanoseconds, before it was changed; 0: it was not
};

}  // namespace vicinal::mpi
