// Timing that can be repeated: warm-up runs, then timed ones, each of them kept; median, least and most are reported.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/output.hpp"
#include "vicinal/context.hpp"

namespace vicinal::cli {

struct Timings {
  std::vector<double> seconds;  ///< of each timed run, in order

  [[nodiscard]] double least() const { return *std::min_element(seconds.begin(), seconds.end()); }
  [[nodiscard]] double most() const { return *std::max_element(seconds.begin(), seconds.end()); }
  [[nodiscard]] double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t middle = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
};

struct Runs {
  int warmup = 1;
  int repeat = 3;
  double max_seconds = std::numeric_limits<double>::infinity();  ///< of all runs together
};

/// Runs `work` warmup + repeat times, and `after` when each of the timed ones is done. `work` returns nothing and
/// leaves its result where the caller wants it. No run starts once `max_seconds` are over; the last one is timed in any
/// case, also if it is a warm-up.
inline Timings measure(
    const Context& ctx, const Runs& runs, const std::function<void()>& work,
    const std::function<void()>& after = [] {}) {
  Timings timings;
  double spent = 0;
  for (int i = 0; i < runs.warmup + runs.repeat; ++i) {
    ctx.check_cancelled();
    const auto start = std::chrono::steady_clock::now();
    work();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    spent += seconds;
    const bool over = spent >= runs.max_seconds;
    if (i < runs.warmup && !over) continue;
    timings.seconds.push_back(seconds);
    after();
    if (over) break;
  }
  return timings;
}

inline Json to_json(const Timings& timings) {
  return {{"median", timings.median()}, {"min", timings.least()}, {"max", timings.most()}, {"runs", timings.seconds}};
}

}  // namespace vicinal::cli
