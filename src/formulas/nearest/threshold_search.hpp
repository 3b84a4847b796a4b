// Where the filter of the LOF paper (docs/papers.md) moves its threshold, for host and device: to the middle of what is
// left of a sequence of guesses, beyond its ends by ever longer steps, between two known thresholds to the double in
// the middle. What a pass over the keys finds out about its threshold narrows the search to keys that are there, so
// that it ends at once where masses of equal keys leave no threshold that lets few enough pass.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/order.hpp"
#include "core/ordered_bits.hpp"

namespace vicinal::core {

/// What a threshold does to a row of keys; infinite keys are none.
struct Passed {
  std::int64_t count = 0;   ///< of keys not above it
  double last = -HUGE_VAL;  ///< the largest of those
  double above = HUGE_VAL;  ///< the least of the others
};

class ThresholdSearch {
 public:
  /// sequence: ascending, finite.
  VICINAL_HD ThresholdSearch(const double* sequence, std::int64_t size) noexcept : begin_(sequence), size_(size) {
    if (size == 0) return;
    threshold_ = sequence[size / 2];
    const double first = std::fabs(sequence[0]);
    const double last = std::fabs(sequence[size - 1]);
    const double step = (first > last ? first : last) / 8;
    if (step > step_) step_ = step;
  }

  [[nodiscard]] VICINAL_HD double threshold() const noexcept { return threshold_; }
  /// Moves on from what the threshold let pass. False when the only threshold that lets enough pass lets too many pass:
  /// it is the threshold then.
  VICINAL_HD bool move(const Passed& passed, bool too_many) noexcept {
    if (too_many) {
      ceiling_ = passed.last;
      has_ceiling_ = true;
    } else {
      floor_ = passed.above;
      has_floor_ = true;
    }
    threshold_ = ceiling_;
    if (has_floor_ && has_ceiling_ && floor_ >= ceiling_) return false;
    const std::int64_t below = first_not_below(floor_);
    size_ = first_not_below(ceiling_) - below;
    begin_ += below;
    threshold_ = size_ > 0 ? begin_[size_ / 2] : beyond_sequence();
    return true;
  }

 private:
  // Position in what is left of the sequence.
  [[nodiscard]] VICINAL_HD std::int64_t first_not_below(double value) const noexcept {
    std::int64_t low = 0;
    std::int64_t high = size_;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (begin_[middle] < value) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  VICINAL_HD double beyond_sequence() noexcept {
    constexpr double kLargest = 0x1.fffffffffffffp1023;
    if (has_floor_ && has_ceiling_) return middle_of(floor_, ceiling_);
    const double step = step_;
    step_ = step_ < kLargest / growth_ ? step_ * growth_ : kLargest;
    growth_ = growth_ < 0x1p400 ? growth_ * growth_ : growth_;
    if (has_floor_) return floor_ < kLargest - step ? floor_ + step : kLargest;
    const double below = next_below(ceiling_);
    return ceiling_ - step < below ? ceiling_ - step : below;
  }

  const double* begin_;  // what is left of the sequence
  std::int64_t size_;
  double threshold_ = 0;
  double floor_ = -HUGE_VAL;   // from here on thresholds are worth trying ...
  double ceiling_ = HUGE_VAL;  // ... and below this one, which lets too many pass
  double step_ = 0x1p-1000;
  double growth_ = 2;
  bool has_floor_ = false;
  bool has_ceiling_ = false;
};

}  // namespace vicinal::core
