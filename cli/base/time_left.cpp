// See time_left.hpp.
#include "base/time_left.hpp"

#include <algorithm>

namespace vicinal::cli {
namespace {

constexpr double kSpacing = 1.0 / 256;  // between points that are kept
constexpr double kFirstSeconds = 1;
constexpr double kFirstShare = 0.05;
constexpr std::size_t kFirstSteps = 3;
constexpr double kNear = 1.2;  // a number that is shown is corrected to within this factor of the estimate
constexpr double kFalse = 1.5;
constexpr double kLearned = 0.25;  // of the work: what is shown then never rises
constexpr double kAnew = 0.5;

}  // namespace

void TimeLeft::begin(double now) {
  last_ = {now, 0};
  points_ = {last_};
  shown_.reset();
  quiet_until_ = 0;
}

bool TimeLeft::add(double now, double done) {
  const bool anew = done < kAnew * last_.done;
  if (anew) begin(now);
  if (!(done > last_.done)) return anew;
  last_ = {now, done};
  if (done - points_.back().done >= kSpacing) points_.push_back(last_);
  return anew;
}

std::optional<double> TimeLeft::estimate(double now) const {
  if (elapsed(now) < kFirstSeconds || points_.size() <= kFirstSteps) return std::nullopt;
  if (last_.done < std::max(kFirstShare, quiet_until_)) return std::nullopt;
  const double half = last_.done / 2;
  // points_[0] is before half of the work, and last_ behind it.
  const auto after =
      std::find_if(points_.begin(), points_.end(), [&](const Point& point) { return point.done >= half; });
  const Point& right = after == points_.end() ? last_ : *after;
  const Point& left = *(after - 1);
  const double halfway = left.time + (right.time - left.time) * (half - left.done) / (right.done - left.done);
  double longest = last_.time - points_.back().time;
  for (auto point = after; point != points_.end(); ++point)
    longest = std::max(longest, point->time - (point - 1)->time);
  const double silence = now - last_.time;
  const double late = std::max(0.0, silence - longest);
  const double pace = (last_.time - halfway + late) / half;
  return std::max(0.0, pace * (1 - last_.done) - std::min(silence, longest));
}

std::optional<double> TimeLeft::show(double now) {
  const std::optional<double> found = estimate(now);
  if (!found) return std::nullopt;
  const double since = now - shown_at_;
  shown_at_ = now;
  if (!shown_) {
    shown_ = found;
    return shown_;
  }
  if (*shown_ * kFalse < *found) {
    if (last_.done >= kLearned) return std::nullopt;
    shown_.reset();
    quiet_until_ = std::min(2 * last_.done, kLearned);
    return std::nullopt;
  }
  const double held = std::min(*shown_, *found / kNear);
  shown_ = std::max(std::min(*shown_ - since, *found * kNear), held);
  return shown_;
}

}  // namespace vicinal::cli
