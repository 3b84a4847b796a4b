// See symbolic.hpp.
#include "solver/symbolic.hpp"

#include <algorithm>

#include "core/parallel.hpp"

namespace vicinal::solver {
namespace {

// Subtrees of at most this share of the work are one worker's; fixed, so that no sum depends on the thread count.
constexpr double kTreeShare = 1.0 / 64;

// Trees of so few points are one task's each; the nodes above them go wave by wave.
constexpr Point kRowsPoints = 8192;

template <class Body>
void for_each_of(const Context& ctx, Point n, const Body& body) {
  core::parallel_for(ctx, (n + kTaskPoints - 1) / kTaskPoints, [&](std::int64_t task, int /*worker*/) {
    const auto end = static_cast<Point>(std::min<std::int64_t>(n, (task + 1) * kTaskPoints));
    for (auto i = static_cast<Point>(task * kTaskPoints); i < end; ++i) body(i);
  });
}

// Rows of a node: those of its children, and what the blocks hold whose first point, in the new order, is its own.
void find_rows(const Context& ctx, const Pattern& pattern, const Dissection& from, Symbolic& to) {
  const LocalRows& a = pattern.a;
  const auto count = static_cast<std::int32_t>(to.nodes.size());
  core::RawVector<Point> now(from.order.size());
  for_each_of(ctx, a.points, [&](Point i) { now[from.order[i]] = i; });
  core::RawVector<Point> first_of(from.order.size());  // of each block
  for_each_of(ctx, a.points, [&](Point i) {
    const Point* cols = a.cols.data() + i * a.width;
    Point first = now[cols[0]];
    for (std::int64_t c = 1; c < a.width; ++c) first = std::min(first, now[cols[c]]);
    first_of[i] = first;
  });
  std::vector<std::vector<std::int32_t>> seen_by(static_cast<std::size_t>(ctx.threads()));
  const auto find = [&](std::int32_t t, int worker) {
    std::vector<std::int32_t>& seen = seen_by[worker];
    if (seen.empty()) seen.assign(now.size(), -1);
    const Dissection::Node& node = to.nodes[t];
    std::vector<Point>& rows = to.rows[t];
    const auto add = [&](Point row) {
      if (row < node.end || seen[row] == t) return;
      seen[row] = t;
      rows.push_back(row);
    };
    for (Point i = node.begin; i < node.end; ++i) {
      const Point old = from.order[i];
      for (std::int64_t e = pattern.in.first[old]; e < pattern.in.first[old + 1]; ++e) {
        const Point block = pattern.in.blocks[e];
        if (first_of[block] != i) continue;
        for (std::int64_t c = 0; c < a.width; ++c) add(now[a.cols[block * a.width + c]]);
      }
    }
    for (const std::int32_t child : to.children[t]) {
      for (const Point row : to.rows[child]) {
        if (row < node.begin) throw Error(ErrorCode::internal, "lle: a separator lets an edge through");
        add(row);
      }
    }
    std::sort(rows.begin(), rows.end());
  };

  std::vector<std::int32_t> first(to.nodes.size());  // of each node's tree
  std::vector<std::int32_t> height(to.nodes.size(), 0);
  std::vector<std::int32_t> trees;
  std::vector<std::vector<std::int32_t>> waves;
  const auto small = [&](std::int32_t t) { return to.nodes[t].end - to.nodes[first[t]].begin <= kRowsPoints; };
  for (std::int32_t t = 0; t < count; ++t) {
    first[t] = to.children[t].empty() ? t : first[to.children[t].front()];
    if (small(t)) {
      if (to.nodes[t].parent < 0) trees.push_back(t);
      continue;
    }
    for (const std::int32_t child : to.children[t]) {
      if (small(child)) trees.push_back(child);
      height[t] = std::max(height[t], small(child) ? 0 : height[child] + 1);
    }
    if (static_cast<std::size_t>(height[t]) >= waves.size()) waves.resize(static_cast<std::size_t>(height[t]) + 1);
    waves[height[t]].push_back(t);
  }
  core::parallel_for(ctx, std::ssize(trees), [&](std::int64_t task, int worker) {
    for (std::int32_t t = first[trees[task]]; t <= trees[task]; ++t) find(t, worker);
  });
  for (const std::vector<std::int32_t>& wave : waves) {
    core::parallel_for(ctx, std::ssize(wave), [&](std::int64_t task, int worker) { find(wave[task], worker); });
  }
}

// The most squares of the tree [begin, end), without its root's, that wait on the stacks of factor.cpp.
void stack_up(Symbolic& s, std::int32_t begin, std::int32_t end) {
  std::array<std::int64_t, 2> waiting{};
  for (std::int32_t t = begin; t + 1 < end; ++t) {
    const int parity = s.depth[t] % 2;
    waiting[parity] += square_room(s.below(t));
    s.most_stacked[parity] = std::max(s.most_stacked[parity], waiting[parity]);
    for (const std::int32_t child : s.children[t]) waiting[1 - parity] -= square_room(s.below(child));
  }
}

// The most that fronts take at a time in the nodes [begin, end) done one after the other; what is left waiting of
// children outside of the range is not looked at.
std::uint64_t most_waiting(const Symbolic& s, std::int32_t begin, std::int32_t end, const std::vector<char>& counted) {
  std::uint64_t waiting = 0;
  std::uint64_t most = 0;
  const auto front = [&](std::int32_t t) {
    return static_cast<std::uint64_t>(square_room(s.below(t))) * sizeof(double);
  };
  for (std::int32_t t = begin; t < end; ++t) {
    if (counted[t] == 0) continue;
    waiting += front(t);
    most = std::max(most, waiting);
    for (const std::int32_t child : s.children[t]) {
      if (counted[child] != 0) waiting -= front(child);
    }
  }
  return most;
}

void share_out(const Context& ctx, Symbolic& s) {
  const auto count = static_cast<std::int32_t>(s.nodes.size());
  std::vector<double> work(s.nodes.size(), 0);
  std::vector<std::int32_t> first(s.nodes.size());  // of the subtree
  for (std::int32_t t = 0; t < count; ++t) {
    const auto p = static_cast<double>(s.own(t));
    const auto b = static_cast<double>(s.below(t));
    const double own = p * p * p / 3 + p * p * b + p * b * b;
    s.flops += own;
    s.fill += s.own(t) * (s.own(t) + 1) / 2 + s.own(t) * s.below(t);
    s.panel.push_back(s.panel.back() + s.own(t) * (s.own(t) + s.below(t)));
    work[t] = own;
    first[t] = t;
    for (const std::int32_t child : s.children[t]) {
      work[t] += work[child];
      first[t] = std::min(first[t], first[child]);
    }
  }
  s.factor_bytes = static_cast<std::uint64_t>((s.panel.back() + cpu::kFiveBytesMore) * cpu::kFiveBytes);
  std::vector<char> in_top(s.nodes.size(), 0);
  for (std::int32_t t = 0; t < count; ++t) {
    const std::int32_t parent = s.nodes[t].parent;
    if (work[t] > kTreeShare * s.flops) {
      in_top[t] = 1;
      s.top.push_back(t);
    } else if (parent < 0 || work[parent] > kTreeShare * s.flops) {
      s.trees.emplace_back(first[t], t + 1);
    }
  }
  // Those with the most work first, so that no worker begins with one when the others have ended.
  std::stable_sort(s.trees.begin(), s.trees.end(),
                   [&](const auto& x, const auto& y) { return work[x.second - 1] > work[y.second - 1]; });
  s.depth.resize(s.nodes.size());
  for (std::int32_t t = count - 1; t >= 0; --t) {
    const std::int32_t parent = s.nodes[t].parent;
    s.depth[t] = parent < 0 ? 0 : s.depth[parent] + 1;
  }
  const auto largest_panel = [&s](std::int32_t begin, std::int32_t end) {
    std::int64_t largest = 0;
    for (std::int32_t t = begin; t < end; ++t) largest = std::max(largest, s.panel[t + 1] - s.panel[t]);
    return static_cast<std::uint64_t>(largest) * sizeof(double);
  };
  std::uint64_t roots = 0;
  std::uint64_t panel = 0;  // of a worker within a tree
  for (const auto& [begin, end] : s.trees) {
    panel = std::max(panel, largest_panel(begin, end));
    roots += static_cast<std::uint64_t>(square_room(s.below(end - 1))) * sizeof(double);
    stack_up(s, begin, end);
  }
  const auto stacks = static_cast<std::uint64_t>(s.most_stacked[0] + s.most_stacked[1]) * sizeof(double);
  s.front_bytes = roots + static_cast<std::uint64_t>(ctx.threads()) * (stacks + panel) + largest_panel(0, count) +
                  most_waiting(s, 0, count, in_top);
}

}  // namespace

Symbolic analyse(const Context& ctx, const Pattern& pattern, const Dissection& dissection) {
  Symbolic s;
  s.nodes = dissection.nodes;
  s.children.resize(s.nodes.size());
  s.rows.resize(s.nodes.size());
  s.panel.assign(1, 0);
  for (std::size_t t = 0; t < s.nodes.size(); ++t) {
    if (s.nodes[t].parent >= 0) s.children[s.nodes[t].parent].push_back(static_cast<std::int32_t>(t));
  }
  find_rows(ctx, pattern, dissection, s);
  share_out(ctx, s);
  return s;
}

}  // namespace vicinal::solver
