// Which of some boxes meet another one, for the edges of one feature or one pair: boxes in the order of one axis, with
// how far they reach along it. BoxTree serves whole layers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "geo/layer.hpp"

namespace vicinal::geo {

class BoxSweep {
 public:
  void clear() { placed_.clear(); }
  /// Boxes are numbered from 0 in the order in which they are added.
  void add(const Box& box) { placed_.push_back({box, static_cast<std::int64_t>(placed_.size())}); }

  /// Call once all boxes are added. `whole` is about where they are: they are swept along its longer side.
  void sort(const Box& whole) {
    upright_ = whole.y1 - whole.y0 > whole.x1 - whole.x0;
    std::sort(placed_.begin(), placed_.end(), [this](const Placed& x, const Placed& y) {
      return begin(x.box) != begin(y.box) ? begin(x.box) < begin(y.box) : x.number < y.number;
    });
    reach_.resize(placed_.size());
    double reach = -kInfinity;
    for (std::size_t k = 0; k < placed_.size(); ++k) reach_[k] = reach = std::max(reach, end(placed_[k].box));
  }

  /// Calls found(number) for each box that meets `box` until it says true; returns whether it did.
  template <class Found>
  bool find(const Box& box, const Found& found) const {
    auto k = static_cast<std::size_t>(std::lower_bound(reach_.begin(), reach_.end(), begin(box)) - reach_.begin());
    for (; k < placed_.size() && begin(placed_[k].box) <= end(box); ++k) {
      if (meet(placed_[k].box, box) && found(placed_[k].number)) return true;
    }
    return false;
  }

 private:
  struct Placed {
    Box box;
    std::int64_t number;
  };
  [[nodiscard]] double begin(const Box& box) const { return upright_ ? box.y0 : box.x0; }
  [[nodiscard]] double end(const Box& box) const { return upright_ ? box.y1 : box.x1; }

  bool upright_ = false;        // swept along y
  std::vector<Placed> placed_;  // by their begins
  std::vector<double> reach_;   // up to each
};

}  // namespace vicinal::geo
