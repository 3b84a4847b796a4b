// The progress line on stderr: stage, bar, percent, time passed and time left of the stage (time_left.hpp). One line,
// redrawn at most ten times a second, and wiped before anything else is written.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/time_left.hpp"

namespace vicinal::cli {

class ProgressLine {
 public:
  /// `when`: "auto" (only when stderr is a terminal), "always", "never".
  explicit ProgressLine(std::string_view when);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  [[nodiscard]] bool active() const noexcept { return active_; }
  /// Redraws when the last drawing is 100 ms old, the stage is new or the work is done.
  void show(std::string_view stage, double fraction);
  /// From now on what is reported of a stage is that of a range of it: 0 stands for `begin`, 1 for `end`. Work that was
  /// done before the stage's first range does not count for the time left.
  void set_range(std::string_view stage, double begin, double end);
  /// Wipes the line, if there is one.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::string text(double fraction, double now);

  bool active_ = false;
  bool color_ = false;
  bool unicode_ = false;
  bool drawn_ = false;
  std::string stage_;
  std::string stage_of_range_;
  double first_ = 0;  ///< where the first range of the stage begins
  double begin_ = 0;
  double end_ = 1;
  TimeLeft left_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_drawn_;
};

/// "0.8 s", "12 s", "3 min 04 s", "2 h 05 min".
std::string format_duration(double seconds);

}  // namespace vicinal::cli
