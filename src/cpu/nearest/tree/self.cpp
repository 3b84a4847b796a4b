// The rows of a leaf go through the tree together. They are near each other, so the boxes that one of them has to look
// into are mostly those of the others, too: a node is left out for all of them if its box is farther from theirs than
// any of their lists reaches (TreeKeys::boxes_of_box); the rows of the leaves that remain are compared with each of
// them. Their own leaf comes first, so that lists have a limit from then on, unless the leaf has no more than k rows.
// Points are read in the order of the tree, and those of the leaves around stay in the cache. Of a row that has been
// compared with some points those are counted that it may still have to be compared with, by boxes alone; if screens
// take less time, the row is left to them (LeftRows). Which boxes are looked into depends on the leaf, the tree, the
// task and the instruction set, so statistics do not depend on threads.
#include "cpu/nearest/tree/self.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "core/context_state.hpp"
#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/leaf.hpp"
#include "cpu/nearest/tree/left_rows.hpp"
#include "cpu/nearest/tree/list_sink.hpp"
#include "cpu/nearest/tree/tree.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kTogether = 32;  // rows of a leaf that go through the tree together, at most
constexpr std::int64_t kBatches = 32;   // of a task, at most
constexpr std::int64_t kTasks = 16;     // of a thread, at least
constexpr int kSelfStack = (Tree::kMaxDepth + 2) * static_cast<int>(kTreeWidth);

/// Rows of a leaf, at most kTogether: those from a point on, and of its equal rows from one on.
struct Batch {
  std::int64_t leaf;  // child of the tree
  std::int64_t point;
  std::int64_t member;
};

/// Rows that go through the tree together.
struct Group {
  /// With room for all: queries borrow their sinks.
  explicit Group(std::int64_t d)
      : x(static_cast<std::size_t>(kTogether * d)),
        low(static_cast<std::size_t>(d)),
        high(static_cast<std::size_t>(d)) {
    sinks.reserve(kTogether);
    queries.reserve(kTogether);
    points.reserve(kTogether);
    reaches.reserve(kTogether);
  }
  static std::uint64_t bytes(std::int64_t d) {
    return kTogether * (sizeof(ListSink) + sizeof(Visit<ListSink>) + sizeof(std::int64_t) + sizeof(Reach)) +
           static_cast<std::uint64_t>((kTogether + 2) * d) * sizeof(double);
  }

  /// How far the farthest list reaches.
  [[nodiscard]] double reach() const {
    double most = -kInfinity;
    for (const Visit<ListSink>& query : queries) most = std::max(most, query.limit);
    return most;
  }

  std::vector<double> x;     // [rows][d]
  std::vector<double> low;   // [d] of the rows
  std::vector<double> high;  // [d]
  std::vector<ListSink> sinks;
  std::vector<Visit<ListSink>> queries;
  std::vector<std::int64_t> points;  // in the order of the tree
  std::vector<Reach> reaches;        // of those that were looked at
  KnownReach known;
  std::int64_t leaf = 0;  // child of the tree
};

/// What the search of some batches has done.
struct BatchResult {
  std::int64_t lists = 0;  // that are final
  std::int64_t ranked = 0;
};

class SelfLists {
 public:
  SelfLists(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result)
      : ctx_(ctx),
        task_(task),
        result_(result),
        tree_(static_cast<const Tree&>(*task.tree)),
        keys_(ctx, task, tree_),
        candidates_(task),
        ranks_(ctx, task, tree_, keys_, candidates_),
        batches_(batches_in_order()),
        in_tree_order_(task.any_order && !task.index->grouped()) {
    if (LeftRows::serve(ctx, task)) left_.emplace(ctx, task, tree_, keys_, in_tree_order_);
  }

  void run() {
    std::vector<Group> groups;
    groups.reserve(static_cast<std::size_t>(ctx_.threads()));
    for (int worker = 0; worker < ctx_.threads(); ++worker) groups.emplace_back(tree_.cols());
    std::vector<std::int64_t> ranked(static_cast<std::size_t>(ctx_.threads()), 0);
    const std::int64_t size = std::ssize(batches_);
    const std::int64_t each = std::clamp(size / (kTasks * ctx_.threads()), std::int64_t{1}, kBatches);
    const auto rows = static_cast<double>(task_.index->table.rows());
    std::atomic<std::int64_t> done{0};  // lists
    const auto report = [&](std::int64_t lists) {
      const std::int64_t now = done.fetch_add(lists) + lists;
      ctx_.report("search", static_cast<double>(now) / rows);
    };
    if (left_) try_rows(groups[0]);
    core::parallel_for(ctx_, (size + each - 1) / each, [&](std::int64_t task, int worker) {
      const std::int64_t end = std::min(size, (task + 1) * each);
      BatchResult done_here;
      for (std::int64_t i = task * each; i < end; ++i) {
        search(batches_[static_cast<std::size_t>(i)], groups[static_cast<std::size_t>(worker)], done_here);
      }
      ranked[static_cast<std::size_t>(worker)] += done_here.ranked;
      report(done_here.lists);
    });
    if (left_) {
      const auto listed = static_cast<double>(done.load()) / rows;
      left_->search(result_, [&](double share) { ctx_.report("search", listed + (1 - listed) * share); });
    }
    result_.stats.survivors += std::accumulate(ranked.begin(), ranked.end(), std::int64_t{0});
    result_.stats.distinct_rows = task_.index->distinct_rows();
    result_.in_tree_order = in_tree_order_;
  }

 private:
  [[nodiscard]] std::vector<Batch> batches_in_order() const {
    core::Poll poll(ctx_);
    std::vector<std::int64_t> leaves;
    for (std::int64_t node = 0; node < tree_.nodes(); ++node) {
      for (std::uint32_t lanes = tree_.lanes(node); lanes != 0; lanes &= lanes - 1) {
        poll.step();
        const std::int64_t child = Tree::child_of(node, std::countr_zero(lanes));
        if (tree_.child(child).size > 0) leaves.push_back(child);
      }
    }
    std::sort(leaves.begin(), leaves.end(), [&](std::int64_t a, std::int64_t b) {
      poll.step();
      return tree_.child(a).first < tree_.child(b).first;
    });
    std::vector<Batch> batches;
    batches.reserve(leaves.size() * 2);
    for (const std::int64_t leaf : leaves) add_batches(leaf, poll, batches);
    return batches;
  }

  void add_batches(std::int64_t leaf, core::Poll& poll, std::vector<Batch>& batches) const {
    const Tree::Child& child = tree_.child(leaf);
    if (!task_.index->grouped()) {
      for (std::int64_t point = 0; point < child.size; point += kTogether) {
        poll.step();
        batches.push_back({leaf, point, 0});
      }
      return;
    }
    std::int64_t rows = kTogether;  // of the batch so far
    for (std::int64_t point = 0; point < child.size; ++point) {
      std::int64_t left = std::ssize(candidates_.members(point_row(child, point)));
      for (std::int64_t member = 0; left > 0;) {
        poll.step();
        if (rows == kTogether) {
          batches.push_back({leaf, point, member});
          rows = 0;
        }
        const std::int64_t taken = std::min(left, kTogether - rows);
        rows += taken;
        member += taken;
        left -= taken;
      }
    }
  }
  /// The distinct row of a leaf's point.
  [[nodiscard]] const std::int64_t& point_row(const Tree::Child& leaf, std::int64_t point) const {
    return tree_.shape().order[static_cast<std::size_t>(leaf.first + point)];
  }

  /// Whether near rows are left depends on some of them, from all parts of the tree.
  void try_rows(Group& group) {
    constexpr std::int64_t kTried = 16;
    for (std::int64_t i = 0; i < kTried; ++i) {
      visit(batches_[static_cast<std::size_t>(i * std::ssize(batches_) / kTried)], group);
      const auto near = std::find(group.reaches.begin(), group.reaches.end(), Reach::near);
      if (near != group.reaches.end()) {
        const auto at = static_cast<std::size_t>(near - group.reaches.begin());
        const Visit<ListSink>& query = group.queries[at];
        left_->try_near(group.points[at], query.x, query.sink.limit(), query.ranked);
      }
      clear(group);
    }
    left_->decide();
  }

  void visit(const Batch& batch, Group& group) {
    ctx_.check_cancelled();
    gather(batch, group);
    bound(group);
    for (Visit<ListSink>& query : group.queries) ranks_.rank(tree_.child(group.leaf), query);
    walk(group);
  }

  static void clear(Group& group) {
    group.queries.clear();
    group.sinks.clear();
    group.points.clear();
    group.reaches.clear();
    group.known = {};
  }

  void search(const Batch& batch, Group& group, BatchResult& done) {
    visit(batch, group);
    for (std::size_t i = 0; i < group.queries.size(); ++i) {
      done.ranked += group.queries[i].ranked;
      if (is_left(group.queries[i])) {
        left_->add(group.points[i], group.reaches[i], group.queries[i].sink.limit(), result_);
        continue;
      }
      group.queries[i].sink.finish();
      ++done.lists;
    }
    clear(group);
  }

  void gather(const Batch& batch, Group& group) {
    const Tree::Child& child = tree_.child(batch.leaf);
    group.leaf = batch.leaf;
    auto first = static_cast<std::size_t>(batch.member);
    for (std::int64_t point = batch.point; point < child.size && std::ssize(group.queries) < kTogether; ++point) {
      const std::span<const std::int64_t> members = candidates_.members(point_row(child, point)).subspan(first);
      first = 0;
      for (const std::int64_t row : members) {
        if (std::ssize(group.queries) == kTogether) break;
        double* const x = group.x.data() + std::ssize(group.queries) * tree_.cols();
        keys_.point(tree_.points(child.at), point, x);
        const std::int64_t place = in_tree_order_ ? child.first + point : row;
        group.sinks.emplace_back(task_, candidates_, keys_.insert(), result_, row, place);
        ListSink& sink = group.sinks.back();
        group.queries.push_back({x, row, sink, false, sink.limit()});
        group.points.push_back(child.first + point);
        group.reaches.push_back(Reach::unknown);
      }
    }
  }

  void bound(Group& group) const {
    const std::int64_t d = tree_.cols();
    for (std::int64_t j = 0; j < d; ++j) {
      double low = kInfinity;
      double high = -kInfinity;
      for (const Visit<ListSink>& query : group.queries) {
        low = std::min(low, query.x[j]);
        high = std::max(high, query.x[j]);
      }
      group.low[static_cast<std::size_t>(j)] = low;
      group.high[static_cast<std::size_t>(j)] = high;
    }
  }

  // All leaves but their own.
  void walk(Group& group) {
    double stack_keys[kSelfStack];
    std::int64_t stack[kSelfStack];
    int size = 0;
    stack_keys[size] = 0;
    stack[size++] = 0;
    double reach = group.reach();
    while (size > 0) {
      if (stack_keys[--size] > reach) continue;
      const std::int64_t node = tree_.child(stack[size]).at;
      alignas(64) double keys[kTreeWidth];
      const std::uint32_t near =
          keys_.boxes_of_box(group.low.data(), group.high.data(), tree_.boxes(node), reach, keys) & tree_.lanes(node);
      std::uint32_t leaves = 0;
      const int bottom = size;
      for (std::uint32_t left = near; left != 0; left &= left - 1) {  // the nearest on top, of equals the first
        const int lane = std::countr_zero(left);
        const std::int64_t child = Tree::child_of(node, lane);
        if (tree_.child(child).size > 0) {
          leaves |= static_cast<std::uint32_t>(child != group.leaf) << lane;
          continue;
        }
        int place = size++;
        for (; place > bottom && stack_keys[place - 1] <= keys[lane]; --place) {
          stack_keys[place] = stack_keys[place - 1];
          stack[place] = stack[place - 1];
        }
        stack_keys[place] = keys[lane];
        stack[place] = child;
      }
      ctx_.check_cancelled();
      if (leaves == 0) continue;
      for (Visit<ListSink>& query : group.queries) rank_leaves(node, leaves, query);
      if (left_) leave_rows(group);
      reach = group.reach();
    }
  }

  /// Whether a row was left: no box is within the limit that it then has.
  [[nodiscard]] static bool is_left(const Visit<ListSink>& query) { return query.limit == -kInfinity; }

  /// Leaves the rows that have many points within reach. A list that is not full has all points within reach.
  void leave_rows(Group& group) const {
    for (std::size_t i = 0; i < group.queries.size(); ++i) {
      Visit<ListSink>& query = group.queries[i];
      Reach& reach = group.reaches[i];
      if (reach != Reach::unknown || query.ranked < left_->points_before() || query.limit == kInfinity) continue;
      reach = group.known.of(query.limit);
      if (reach == Reach::unknown) {
        reach = left_->reach_of(query.x, query.limit, query.ranked);
        group.known.note(query.limit, reach);
      }
      if (reach != Reach::few) query.limit = -kInfinity;
    }
  }

  // Those leaves of a node that a row may have neighbors in, the nearest first.
  void rank_leaves(std::int64_t node, std::uint32_t leaves, Visit<ListSink>& query) const {
    alignas(64) double keys[kTreeWidth];
    int order[kTreeWidth];
    int size = 0;
    for (std::uint32_t near = keys_.boxes(query.x, tree_.boxes(node), query.limit, keys) & leaves; near != 0;
         near &= near - 1) {
      const int lane = std::countr_zero(near);
      int place = size++;
      for (; place > 0 && keys[order[place - 1]] > keys[lane]; --place) order[place] = order[place - 1];
      order[place] = lane;
    }
    for (int i = 0; i < size; ++i) {
      if (keys[order[i]] > query.limit) break;
      ranks_.rank(tree_.child(Tree::child_of(node, order[i])), query);
    }
  }

  const Context& ctx_;
  const kernels::NearestTask& task_;
  kernels::NearestResult& result_;
  const Tree& tree_;
  TreeKeys keys_;
  Candidates candidates_;
  LeafRanks ranks_;
  std::vector<Batch> batches_;    // in the order of the tree
  bool in_tree_order_;            // lists are written one after the other
  std::optional<LeftRows> left_;  // where screens serve
};

}  // namespace

bool self_lists_may_serve(const Context& ctx, const kernels::NearestTask& task) {
  return task.self && task.collect == kernels::Collect::k_list && task.k <= ListSink::kMaxSorted &&
         core::ContextAccess::ablation(ctx) != core::Ablation::tree_order;
}

bool self_lists_serve(const Context& ctx, const kernels::NearestTask& task) {
  if (!self_lists_may_serve(ctx, task)) return false;
  const auto& tree = static_cast<const Tree&>(*task.tree);
  if (tree.nodes() == 0) return false;
  // Where a key may overflow, every point is looked at.
  const TreeKeys keys(ctx, task, tree);
  return !keys.may_overflow(tree.lowest(), tree.lowest(), tree.highest());
}

void self_lists(const Context& ctx, const kernels::NearestTask& task, kernels::NearestResult& result) {
  SelfLists(ctx, task, result).run();
}

std::uint64_t self_lists_bytes(const Context& ctx, const kernels::NearestTask& task) {
  const auto leaves = static_cast<std::uint64_t>(task.index->distinct_rows()) / 8 + 1;
  const std::uint64_t batches = leaves + static_cast<std::uint64_t>(task.index->table.rows()) / kTogether;
  return leaves * sizeof(std::int64_t) + 2 * batches * sizeof(Batch) +
         static_cast<std::uint64_t>(ctx.threads()) * Group::bytes(task.index->table.cols()) +
         LeftRows::bytes(ctx, task);
}

}  // namespace vicinal::cpu
