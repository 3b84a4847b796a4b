// See separator.hpp. A vertex is two states, where a path comes in and where it goes out, joined by an arc that one
// path may use; the network is never written down, only who precedes and who follows whom on the paths found so far.
#include "solver/separator.hpp"

#include <algorithm>

namespace vicinal::solver {
namespace {

constexpr Point kNone = -1;
constexpr Point kLeft = -2;   // the predecessor of a path's first vertex
constexpr Point kRight = -3;  // the successor of its last one

class Flow {
 public:
  explicit Flow(const Band& band)
      : band_(band),
        n_(static_cast<Point>(band.at_left.size())),
        before_(band.at_left.size(), kNone),
        after_(band.at_left.size(), kNone),
        level_(2 * band.at_left.size()),
        arc_(2 * band.at_left.size()) {}

  void fill() {
    while (find_levels()) {
      std::fill(arc_.begin(), arc_.end(), 0);
      for (Point v = 0; v < n_; ++v) {
        if (band_.at_left[v] != 0 && before_[v] != kLeft) augment(v);
      }
    }
  }

  /// After `fill`: what can still be reached from the left is left.
  [[nodiscard]] std::vector<Side> sides() const {
    std::vector<Side> found(static_cast<std::size_t>(n_), Side::right);
    for (Point v = 0; v < n_; ++v) {
      if (level_[out(v)] != kUnseen) {
        found[v] = Side::left;
      } else if (level_[in(v)] != kUnseen) {
        found[v] = Side::separator;
      }
    }
    return found;
  }

 private:
  static constexpr std::int32_t kUnseen = -1;
  static std::size_t in(Point v) { return 2 * static_cast<std::size_t>(v); }
  static std::size_t out(Point v) { return 2 * static_cast<std::size_t>(v) + 1; }
  [[nodiscard]] bool used(Point v) const { return after_[v] != kNone; }

  // Distances from the left in what is left of the capacities; whether the right is reached.
  bool find_levels() {
    std::fill(level_.begin(), level_.end(), kUnseen);
    queue_.clear();
    for (Point v = 0; v < n_; ++v) {
      if (band_.at_left[v] != 0) reach(in(v), 0);
    }
    bool reached = false;
    for (std::size_t at = 0; at < queue_.size(); ++at) {
      const std::size_t state = queue_[at];
      const auto v = static_cast<Point>(state / 2);
      const std::int32_t next = level_[state] + 1;
      if (state == in(v)) {
        if (!used(v)) {
          reach(out(v), next);
        } else if (before_[v] >= 0) {
          reach(out(before_[v]), next);
        }
        continue;
      }
      reached = reached || (band_.at_right[v] != 0 && after_[v] != kRight);
      if (used(v)) reach(in(v), next);
      for (std::int64_t e = band_.first[v]; e < band_.first[v + 1]; ++e) {
        reach(in(band_.neighbors[e]), next);  // an edge has room for any number of paths: only vertices are cut
      }
    }
    return reached;
  }

  void reach(std::size_t state, std::int32_t level) {
    if (level_[state] != kUnseen) return;
    level_[state] = level;
    queue_.push_back(state);
  }

  // The state that the next arc out of `state` leads to, one level on; false where there is none left.
  bool advance(std::size_t state, std::size_t& to) {
    const auto v = static_cast<Point>(state / 2);
    const auto fits = [&](std::size_t other) { return level_[other] == level_[state] + 1; };
    std::int64_t& arc = arc_[state];
    if (state == in(v)) {
      if (arc++ > 0) return false;
      if (used(v) && before_[v] < 0) return false;
      to = used(v) ? out(before_[v]) : out(v);
      return fits(to);
    }
    if (arc == 0) {
      ++arc;
      if (used(v) && fits(in(v))) {
        to = in(v);
        return true;
      }
    }
    for (std::int64_t e = band_.first[v] + arc - 1; e < band_.first[v + 1]; ++e) {
      ++arc;
      const Point w = band_.neighbors[e];
      if (!fits(in(w))) continue;
      to = in(w);
      return true;
    }
    return false;
  }

  // A path from vertex `start` to the right along rising levels, if there is one; it changes who follows whom.
  void augment(Point start) {
    path_.assign(1, in(start));
    while (!path_.empty()) {
      const std::size_t state = path_.back();
      const auto v = static_cast<Point>(state / 2);
      if (state == out(v) && band_.at_right[v] != 0 && after_[v] != kRight) return take();
      std::size_t to = 0;
      if (advance(state, to)) {
        path_.push_back(to);
      } else {
        level_[state] = kUnseen - 1;  // leads nowhere in this round
        path_.pop_back();
      }
    }
  }

  void take() {
    before_[path_[0] / 2] = kLeft;
    for (std::size_t i = 1; i < path_.size(); ++i) {
      const auto from = static_cast<Point>(path_[i - 1] / 2);
      const auto to = static_cast<Point>(path_[i] / 2);
      const bool leaves = path_[i - 1] == out(from);
      if (from != to && leaves) {
        after_[from] = to;
        before_[to] = from;
      } else if (from == to && leaves) {
        after_[to] = before_[to] = kNone;  // the path that used it goes another way now
      }
    }
    after_[path_.back() / 2] = kRight;
    for (const std::size_t state : path_) level_[state] = kUnseen - 1;  // one path a state and round
  }

  const Band& band_;
  Point n_;
  std::vector<Point> before_;
  std::vector<Point> after_;
  std::vector<std::int32_t> level_;
  std::vector<std::int64_t> arc_;
  std::vector<std::size_t> queue_;
  std::vector<std::size_t> path_;
};

}  // namespace

std::vector<Side> separate(const Band& band) {
  Flow flow(band);
  flow.fill();
  return flow.sides();
}

}  // namespace vicinal::solver
