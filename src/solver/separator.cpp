// See separator.hpp. A vertex is two states, where a path comes in and where it goes out, joined by an arc that one
// path may use; the network is never written down, only who precedes and who follows whom on the paths found so far.
// A hub has room for any number of paths, so that a search looks through each only once.
// Levels are distances to the right, of all that can reach it: in each round paths begin wherever on the left they can,
// near ends and far ones, and do not enter what leads nowhere. A band is long, and its places have little to do with
// each other: a round for each distance, as from the left, would be many times as many.
#include "solver/separator.hpp"

#include <algorithm>

namespace vicinal::solver {
namespace {

constexpr Point kNone = -1;
constexpr Point kLeft = -2;   // the predecessor of a path's first vertex
constexpr Point kRight = -3;  // the successor of its last one

class Flow {
 public:
  Flow(const Context& ctx, const Band& band)
      : ctx_(ctx),
        band_(band),
        n_(band.size()),
        before_(band.at_left.size(), kNone),
        after_(band.at_left.size(), kNone),
        level_(2 * band.at_left.size()),
        hub_level_(band.first_vertex.size() - 1),
        arc_(2 * band.at_left.size()),
        hub_arc_(hub_level_.size()) {}

  void fill() {
    while (find_levels()) {
      std::fill(arc_.begin(), arc_.end(), 0);
      std::copy(band_.first_vertex.begin(), band_.first_vertex.end() - 1, hub_arc_.begin());
      for (Point v = 0; v < n_; ++v) {
        if (begins(v) && level_[in(v)] != kUnseen) augment(v);
      }
    }
  }

  /// After `fill`: what can still be reached from the left is left.
  [[nodiscard]] std::vector<Side> sides() {
    std::fill(level_.begin(), level_.end(), kUnseen);
    std::fill(hub_level_.begin(), hub_level_.end(), kUnseen);
    queue_.clear();
    for (Point v = 0; v < n_; ++v) {
      if (band_.at_left[v] != 0) reach(in(v), kReached);
    }
    for (std::size_t at = 0; at < queue_.size(); ++at) {
      poll();
      const auto v = static_cast<Point>(queue_[at] / 2);
      if (queue_[at] == in(v)) {
        if (!used(v)) {
          reach(out(v), kReached);
        } else if (before_[v] >= 0) {
          reach(out(before_[v]), kReached);
        }
        continue;
      }
      if (used(v)) reach(in(v), kReached);
      for_each_beside(v, kReached, [&](Point w) { reach(in(w), kReached); });
    }
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
  static constexpr std::int32_t kSpent = -2;
  static constexpr std::int32_t kReached = 1;
  static constexpr std::int64_t kPolled = 1 << 16;  // states between two looks at the cancel token
  static std::size_t in(Point v) { return 2 * static_cast<std::size_t>(v); }
  static std::size_t out(Point v) { return 2 * static_cast<std::size_t>(v) + 1; }
  [[nodiscard]] bool used(Point v) const { return after_[v] != kNone; }

  void poll() {
    if (++steps_ % kPolled == 0) ctx_.check_cancelled();
  }

  [[nodiscard]] bool begins(Point v) const { return band_.at_left[v] != 0 && before_[v] != kLeft; }
  [[nodiscard]] bool ends(Point v) const { return band_.at_right[v] != 0 && after_[v] != kRight; }

  /// The vertices of hubs of v that no search has been through.
  template <class Body>
  void for_each_beside(Point v, std::int32_t level, const Body& body) {
    for (Point e = band_.first_hub[v]; e < band_.first_hub[v + 1]; ++e) {
      const Point hub = band_.hubs[e];
      if (hub_level_[hub] != kUnseen) continue;
      hub_level_[hub] = level;
      for (Point m = band_.first_vertex[hub]; m < band_.first_vertex[hub + 1]; ++m) body(band_.vertices[m]);
    }
  }

  // Distances to the right, from 1, in what is left of the capacities; whether a path may begin anywhere.
  bool find_levels() {
    std::fill(level_.begin(), level_.end(), kUnseen);
    std::fill(hub_level_.begin(), hub_level_.end(), kUnseen);
    queue_.clear();
    for (Point v = 0; v < n_; ++v) {
      if (ends(v)) reach(out(v), 1);
    }
    bool found = false;
    for (std::size_t at = 0; at < queue_.size(); ++at) {
      poll();
      const std::size_t state = queue_[at];
      const auto v = static_cast<Point>(state / 2);
      const std::int32_t next = level_[state] + 1;
      if (state == out(v)) {
        if (!used(v)) {
          reach(in(v), next);
        } else if (after_[v] >= 0) {
          reach(in(after_[v]), next);
        }
        continue;
      }
      found = found || begins(v);
      if (used(v)) reach(out(v), next);
      for_each_beside(v, level_[state], [&](Point w) { reach(out(w), next); });
    }
    return found;
  }

  void reach(std::size_t state, std::int32_t level) {
    if (level_[state] != kUnseen) return;
    level_[state] = level;
    queue_.push_back(state);
  }

  // The state that the next arc out of `state` leads to, one level down; false where there is none left. What a hub has
  // been left by in this round is of no use to any other vertex that comes to it.
  bool advance(std::size_t state, std::size_t& to) {
    const auto v = static_cast<Point>(state / 2);
    const auto fits = [&](std::size_t other) { return level_[other] == level_[state] - 1; };
    Point& arc = arc_[state];
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
    for (Point e = band_.first_hub[v] + arc - 1; e < band_.first_hub[v + 1]; ++e, ++arc) {
      const Point hub = band_.hubs[e];
      if (hub_level_[hub] != level_[state] - 1) continue;
      while (hub_arc_[hub] < band_.first_vertex[hub + 1]) {
        to = in(band_.vertices[hub_arc_[hub]++]);
        if (fits(to)) return true;
      }
    }
    return false;
  }

  // A path from vertex `start` to the right along falling levels, if there is one; it changes who follows whom.
  void augment(Point start) {
    path_.assign(1, in(start));
    while (!path_.empty()) {
      poll();
      const std::size_t state = path_.back();
      const auto v = static_cast<Point>(state / 2);
      if (state == out(v) && ends(v)) return take();
      std::size_t to = 0;
      if (advance(state, to)) {
        path_.push_back(to);
      } else {
        level_[state] = kSpent;  // leads nowhere in this round
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
    for (const std::size_t state : path_) level_[state] = kSpent;  // one path a state and round
  }

  const Context& ctx_;
  const Band& band_;
  Point n_;
  std::int64_t steps_ = 0;
  std::vector<Point> before_;
  std::vector<Point> after_;
  std::vector<std::int32_t> level_;
  std::vector<std::int32_t> hub_level_;  // of what it leads to
  std::vector<Point> arc_;
  std::vector<Point> hub_arc_;
  std::vector<std::size_t> queue_;
  std::vector<std::size_t> path_;
};

}  // namespace

std::vector<Side> separate(const Context& ctx, const Band& band) {
  Flow flow(ctx, band);
  flow.fill();
  return flow.sides();
}

}  // namespace vicinal::solver
