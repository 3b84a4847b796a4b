// See closed_classes.hpp. Points that have an arrow to each other are of one class: all threads join them to groups,
// which leaves few arrows between groups. Tarjan's algorithm then takes groups for points. A strongly connected
// component is complete before any that leads to it, so that what it reaches is known from its arrows when it is taken
// off the stack.
#include "solver/closed_classes.hpp"

#include <algorithm>
#include <utility>

#include "core/parallel.hpp"
#include "formulas/graph/forest.hpp"

namespace vicinal::solver {
namespace {

constexpr Point kNoClassYet = -2;
constexpr std::int64_t kPolledSteps = 1 << 16;
constexpr std::int64_t kColumns = 4;  // of arrows between two looks at who is of one group

// body(point), by all threads.
template <class Body>
void for_all(const Context& ctx, Point n, const Body& body) {
  core::parallel_for(ctx, (n + kTaskPoints - 1) / kTaskPoints, [&](std::int64_t task, int /*worker*/) {
    const std::int64_t end = std::min<std::int64_t>(n, (task + 1) * kTaskPoints);
    for (std::int64_t i = task * kTaskPoints; i < end; ++i) body(static_cast<Point>(i));
  });
}

struct Groups {
  Point count = 0;
  core::RawVector<Point> of;       // [n] of each point
  core::RawVector<Point> first;    // [count + 1] of a group's points in `leaving`
  core::RawVector<Point> leaving;  // points that have an arrow to another group
};

class Grouping {
 public:
  Grouping(const Context& ctx, const LocalRows& a) : ctx_(ctx), a_(a) {}

  Groups run() {
    join();
    number();
    list();
    return std::move(found_);
  }

 private:
  // body(point), by this thread.
  template <class Body>
  void in_order(const Body& body) const {
    for (Point i = 0; i < a_.points; ++i) {
      if (i % kPolledSteps == 0) ctx_.check_cancelled();
      body(i);
    }
  }
  [[nodiscard]] const Point* arrows(Point i) const { return a_.cols.data() + i * a_.width; }

  // Whether two points have each other is asked only where they are not known to be of one group.
  void join() {
    core::Forest<Point> forest(a_.points, ctx_.threads() == 1);
    found_.of.resize(static_cast<std::size_t>(a_.points));
    for_all(ctx_, a_.points, [&](Point i) {
      forest.reset(i, i + 1);
      found_.of[i] = i;
    });
    for (std::int64_t begin = 0; begin < a_.width; begin += kColumns) {
      const std::int64_t end = std::min(a_.width, begin + kColumns);
      for_all(ctx_, a_.points, [&](Point i) {
        for (std::int64_t c = begin; c < end; ++c) {
          const Point to = arrows(i)[c];
          if (to > i && found_.of[to] != found_.of[i] && has(to, i)) forest.unite(i, to);
        }
      });
      for_all(ctx_, a_.points, [&](Point i) { found_.of[i] = forest.flatten(i); });
    }
  }
  [[nodiscard]] bool has(Point i, Point other) const {
    return std::find(arrows(i), arrows(i) + a_.width, other) != arrows(i) + a_.width;
  }

  // From the smallest point of each to 0, 1, ..
  void number() {
    in_order([&](Point i) { found_.of[i] = found_.of[i] == i ? found_.count++ : found_.of[found_.of[i]]; });
  }

  void list() {
    core::RawVector<std::uint8_t> leaves(static_cast<std::size_t>(a_.points));
    for_all(ctx_, a_.points, [&](Point i) {
      const auto is_elsewhere = [&](Point to) { return found_.of[to] != found_.of[i]; };
      leaves[i] = std::any_of(arrows(i), arrows(i) + a_.width, is_elsewhere) ? 1 : 0;
    });
    found_.first.assign(static_cast<std::size_t>(found_.count) + 1, 0);
    in_order([&](Point i) { found_.first[found_.of[i] + 1] += leaves[i]; });
    for (Point g = 0; g < found_.count; ++g) found_.first[g + 1] += found_.first[g];
    found_.leaving.resize(static_cast<std::size_t>(found_.first.back()));
    core::RawVector<Point> next(found_.first.begin(), found_.first.end() - 1);
    in_order([&](Point i) {
      if (leaves[i] != 0) found_.leaving[next[found_.of[i]]++] = i;
    });
  }

  const Context& ctx_;
  const LocalRows& a_;
  Groups found_;
};

class Search {
 public:
  Search(const Context& ctx, const LocalRows& a, const Groups& groups) : ctx_(ctx), a_(a), groups_(groups) {
    const auto n = static_cast<std::size_t>(groups.count);
    index_.assign(n, 0);
    low_.resize(n);
    open_.reserve(n);  // pages come when they are written
    path_.reserve(n);
    found_.reached.assign(n, kNoClassYet);
  }

  /// `reached` is that of groups.
  ClosedClasses run() {
    for (Point root = 0; root < groups_.count; ++root) {
      if (index_[root] == 0) search(root);
    }
    return std::move(found_);
  }

 private:
  struct Step {
    Point group;
    Point at;             // in `leaving`: whose arrows are next,
    std::int32_t column;  // and which of them
  };

  void poll() {
    if (steps_++ % kPolledSteps == 0) ctx_.check_cancelled();
  }
  [[nodiscard]] Point target(Point at, std::int64_t column) const {
    return groups_.of[a_.cols[groups_.leaving[at] * a_.width + column]];
  }

  void enter(Point group) {
    index_[group] = low_[group] = ++visited_;
    open_.push_back(group);
    path_.push_back({group, groups_.first[group], 0});
  }

  void search(Point root) {
    enter(root);
    while (!path_.empty()) {
      poll();
      Step& step = path_.back();
      const Point from = step.group;
      if (step.at < groups_.first[from + 1]) {
        const Point to = target(step.at, step.column++);
        if (step.column == a_.width) {
          step.column = 0;
          ++step.at;
        }
        if (index_[to] == 0) {
          enter(to);  // `step` is gone
        } else if (found_.reached[to] == kNoClassYet) {
          low_[from] = std::min(low_[from], index_[to]);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) low_[path_.back().group] = std::min(low_[path_.back().group], low_[from]);
      if (low_[from] == index_[from]) close(from);
    }
  }

  // The component of the groups on the stack from `root` on.
  void close(Point root) {
    const auto begin = std::find(open_.rbegin(), open_.rend(), root).base() - 1;
    Point reached = kNoClassYet;
    for (auto group = begin; group != open_.end(); ++group) {
      for (Point at = groups_.first[*group]; at < groups_.first[*group + 1]; ++at) {
        poll();
        for (std::int64_t c = 0; c < a_.width; ++c) {
          const Point other = found_.reached[target(at, c)];
          if (other == kNoClassYet || other == reached) continue;
          reached = reached == kNoClassYet ? other : ClosedClasses::kSeveral;
        }
      }
    }
    if (reached == kNoClassYet) reached = found_.count++;
    for (auto group = begin; group != open_.end(); ++group) found_.reached[*group] = reached;
    open_.erase(begin, open_.end());
  }

  const Context& ctx_;
  const LocalRows& a_;
  const Groups& groups_;
  ClosedClasses found_;
  Point visited_ = 0;
  std::int64_t steps_ = 0;
  core::RawVector<Point> index_;  // [groups] 0: not visited
  core::RawVector<Point> low_;
  core::RawVector<Point> open_;
  core::RawVector<Step> path_;
};

}  // namespace

ClosedClasses closed_classes_of(const Context& ctx, const LocalRows& a) {
  Groups groups = Grouping(ctx, a).run();
  ClosedClasses found = Search(ctx, a, groups).run();
  for_all(ctx, a.points, [&](Point i) { groups.of[i] = found.reached[groups.of[i]]; });
  return {found.count, std::move(groups.of)};
}

}  // namespace vicinal::solver
