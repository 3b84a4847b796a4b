// The time that a stage of work still takes, from the shares of it that were done at the times seen.
//
// What is measured. The pace is that of the later half of the work done so far: what was slow or fast in the beginning
// (cold caches, a screen's sample) is forgotten as the stage goes on. Work that is reported in bursts is taken as
// steady between them: since the last burst as much time has passed as is taken off, at most the longest wait between
// two. A longer silence counts as slower work. The estimate E is that pace times what is left to do.
//
// What is shown. Nothing in the first second, nor before a twentieth is done and was reported in three steps. Then the
// number runs down as a clock does, and is only held or lowered to stay within [E / 1.2, 1.2 E]. It never rises: where
// E has grown beyond one and a half of it, it is no longer true, and nothing is shown until it is. Only in the first
// quarter of the work such a number is forgotten, and a larger one may follow when twice as much, or that quarter, is
// done. So what is shown is within a factor of 2 of the truth wherever the rest of the stage goes on at 0.6 to 1.33
// times the measured pace (2 / 1.2 and 2 / 1.5); a stage that slows down more says nothing for a while.
//
// A stage is one report's name. Its time left is its own: how long stages take that follow is not known. A share that
// falls by more than a half is a new run of the stage (a second file that is read); smaller falls are ignored.
#pragma once

#include <optional>
#include <vector>

namespace vicinal::cli {

class TimeLeft {
 public:
  /// A stage begins at `now`, seconds of any clock.
  void begin(double now);
  /// `done` of its work, in [0, 1], is done. Whether it began anew.
  bool add(double now, double done);
  /// Seconds left, as they are to be shown at `now`; none where there is not enough to say.
  std::optional<double> show(double now);
  /// Seconds since the stage began.
  [[nodiscard]] double elapsed(double now) const { return now - points_.front().time; }

 private:
  struct Point {
    double time;
    double done;
  };
  [[nodiscard]] std::optional<double> estimate(double now) const;

  std::vector<Point> points_ = {{0, 0}};  ///< ascending, some share of the work apart
  Point last_ = {0, 0};                   ///< the latest advance
  std::optional<double> shown_;
  double shown_at_ = 0;
  double quiet_until_ = 0;  ///< share of the work
};

}  // namespace vicinal::cli
