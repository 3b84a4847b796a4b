// See closed_classes.hpp. A strongly connected component is complete before any that leads to it, so that what it
// reaches is known from its members' arrows when it is taken off the stack.
#include "solver/closed_classes.hpp"

#include <algorithm>

namespace vicinal::solver {
namespace {

constexpr Point kNoClassYet = -2;
constexpr std::int64_t kPolledVisits = 1 << 16;

class Search {
 public:
  Search(const Context& ctx, const LocalRows& a) : ctx_(ctx), a_(a) {
    const auto n = static_cast<std::size_t>(a.points);
    index_.assign(n, 0);
    low_.resize(n);
    open_.reserve(n);  // pages come when they are written
    path_.reserve(n);
    found_.reached.assign(n, kNoClassYet);
  }

  ClosedClasses run() {
    for (Point root = 0; root < a_.points; ++root) {
      if (index_[root] == 0) search(root);
    }
    return std::move(found_);
  }

 private:
  struct Step {
    Point point;
    std::int32_t column;  // the next arrow
  };

  [[nodiscard]] Point target(Point point, std::int64_t column) const { return a_.cols[point * a_.width + column]; }

  void enter(Point point) {
    if (visited_ % kPolledVisits == 0) ctx_.check_cancelled();
    index_[point] = low_[point] = ++visited_;
    open_.push_back(point);
    path_.push_back({point, 0});
  }

  void search(Point root) {
    enter(root);
    while (!path_.empty()) {
      Step& step = path_.back();
      const Point from = step.point;
      if (step.column < a_.width) {
        const Point to = target(from, step.column++);
        if (index_[to] == 0) {
          enter(to);  // `step` is gone
        } else if (found_.reached[to] == kNoClassYet) {
          low_[from] = std::min(low_[from], index_[to]);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) low_[path_.back().point] = std::min(low_[path_.back().point], low_[from]);
      if (low_[from] == index_[from]) close(from);
    }
  }

  // The component of the points on the stack from `root` on.
  void close(Point root) {
    const auto begin = std::find(open_.rbegin(), open_.rend(), root).base() - 1;
    Point reached = kNoClassYet;
    for (auto at = begin; at != open_.end(); ++at) {
      for (std::int64_t c = 0; c < a_.width; ++c) {
        const Point other = found_.reached[target(*at, c)];
        if (other == kNoClassYet || other == reached) continue;
        reached = reached == kNoClassYet ? other : ClosedClasses::kSeveral;
      }
    }
    if (reached == kNoClassYet) reached = found_.count++;
    for (auto at = begin; at != open_.end(); ++at) found_.reached[*at] = reached;
    open_.erase(begin, open_.end());
  }

  const Context& ctx_;
  const LocalRows& a_;
  ClosedClasses found_;
  Point visited_ = 0;
  core::RawVector<Point> index_;  // [n] 0: not visited
  core::RawVector<Point> low_;
  core::RawVector<Point> open_;
  core::RawVector<Step> path_;
};

}  // namespace

ClosedClasses closed_classes_of(const Context& ctx, const LocalRows& a) {
  return Search(ctx, a).run();
}

}  // namespace vicinal::solver
