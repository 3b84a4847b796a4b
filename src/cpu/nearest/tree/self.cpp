// The rows of a leaf go through the tree together. They are near each other, so the boxes that one of them has to look
// into are mostly those of the others, too: a node is left out for all of them if its box is farther from theirs than
// every list reaches (TreeKeys::boxes_of_box), and what is left of the leaves is compared with each row. A row's own
// leaf comes first, so that no list is without a limit afterwards. Points are read in the order of the tree, and those
// of the leaves around stay in the cache. Which boxes are looked into depends on the leaf, the tree and the task alone,
// so statistics do not depend on threads.
#include "cpu/nearest/tree/self.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/context_state.hpp"
#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/leaf.hpp"
#include "cpu/nearest/tree/list_sink.hpp"
#include "cpu/nearest/tree/tree.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kTogether = 32;  // rows of a leaf that go through the tree together, at most
constexpr std::int64_t kLeaves = 16;    // of a task
constexpr int kSelfStack = (Tree::kMaxDepth + 2) * static_cast<int>(kTreeWidth);

/// Rows that go through the tree together.
struct Group {
  /// With room for all: queries borrow their sinks.
  explicit Group(std::int64_t d)
      : x(static_cast<std::size_t>(kTogether * d)),
        low(static_cast<std::size_t>(d)),
        high(static_cast<std::size_t>(d)) {
    sinks.reserve(kTogether);
    queries.reserve(kTogether);
  }
  static std::uint64_t bytes(std::int64_t d) {
    return kTogether * (sizeof(ListSink) + sizeof(Visit<ListSink>)) +
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
  std::int64_t leaf = 0;  // child of the tree
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
        leaves_(leaves_in_order()),
        in_tree_order_(task.any_order && !task.index->grouped()) {}

  void run() {
    std::vector<Group> groups;
    groups.reserve(static_cast<std::size_t>(ctx_.threads()));
    for (int worker = 0; worker < ctx_.threads(); ++worker) groups.emplace_back(tree_.cols());
    std::vector<std::int64_t> ranked(static_cast<std::size_t>(ctx_.threads()), 0);
    const std::int64_t size = std::ssize(leaves_);
    std::atomic<std::int64_t> done{0};
    core::parallel_for(ctx_, (size + kLeaves - 1) / kLeaves, [&](std::int64_t task, int worker) {
      const std::int64_t end = std::min(size, (task + 1) * kLeaves);
      for (std::int64_t i = task * kLeaves; i < end; ++i) {
        ranked[static_cast<std::size_t>(worker)] +=
            search(leaves_[static_cast<std::size_t>(i)], groups[static_cast<std::size_t>(worker)]);
      }
      const std::int64_t now = done.fetch_add(end - task * kLeaves) + end - task * kLeaves;
      ctx_.report("search", static_cast<double>(now) / static_cast<double>(size));
    });
    result_.stats.survivors += std::accumulate(ranked.begin(), ranked.end(), std::int64_t{0});
    result_.stats.distinct_rows = task_.index->distinct_rows();
    result_.in_tree_order = in_tree_order_;
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> leaves_in_order() const {
    std::vector<std::int64_t> leaves;
    for (std::int64_t node = 0; node < tree_.nodes(); ++node) {
      for (std::uint32_t lanes = tree_.lanes(node); lanes != 0; lanes &= lanes - 1) {
        const std::int64_t child = Tree::child_of(node, std::countr_zero(lanes));
        if (tree_.child(child).size > 0) leaves.push_back(child);
      }
    }
    std::sort(leaves.begin(), leaves.end(),
              [&](std::int64_t a, std::int64_t b) { return tree_.child(a).first < tree_.child(b).first; });
    return leaves;
  }

  // Returns how many points were ranked.
  std::int64_t search(std::int64_t leaf, Group& group) {
    const Tree::Child& child = tree_.child(leaf);
    const std::int64_t* const rows = tree_.shape().order.data() + child.first;
    const std::int64_t d = tree_.cols();
    std::int64_t ranked = 0;
    group.leaf = leaf;
    for (std::int64_t i = 0; i < child.size; ++i) {
      for (const std::int64_t row : candidates_.members(rows[i])) {
        double* const x = group.x.data() + std::ssize(group.queries) * d;
        keys_.point(tree_.points(child.at), i, x);
        group.sinks.emplace_back(task_, candidates_, keys_.insert(), result_, row,
                                 in_tree_order_ ? child.first + i : row);
        ListSink& sink = group.sinks.back();
        group.queries.push_back({x, row, sink, false, sink.limit()});
        if (std::ssize(group.queries) == kTogether) ranked += search(group);
      }
    }
    if (!group.queries.empty()) ranked += search(group);
    return ranked;
  }

  std::int64_t search(Group& group) {
    ctx_.check_cancelled();
    bound(group);
    for (Visit<ListSink>& query : group.queries) ranks_.rank(tree_.child(group.leaf), query);
    walk(group);
    std::int64_t ranked = 0;
    for (Visit<ListSink>& query : group.queries) {
      query.sink.finish();
      ranked += query.ranked;
    }
    group.queries.clear();
    group.sinks.clear();
    return ranked;
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
    std::int64_t opened = 0;
    while (size > 0) {
      if (stack_keys[--size] > reach) continue;
      const std::int64_t node = tree_.child(stack[size]).at;
      if (++opened % 16 == 0) ctx_.check_cancelled();
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
      if (leaves == 0) continue;
      for (Visit<ListSink>& query : group.queries) rank_leaves(node, leaves, query);
      reach = group.reach();
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
  std::vector<std::int64_t> leaves_;  // children of the tree, in its order
  bool in_tree_order_;                // lists are written one after the other
};

}  // namespace

bool self_lists_serve(const Context& ctx, const kernels::NearestTask& task) {
  if (!task.self || task.collect != kernels::Collect::k_list || task.k > ListSink::kMaxSorted) return false;
  if (core::ContextAccess::ablation(ctx) == core::Ablation::tree_order) return false;
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
  return leaves * 2 * sizeof(std::int64_t) +
         static_cast<std::uint64_t>(ctx.threads()) * Group::bytes(task.index->table.cols());
}

}  // namespace vicinal::cpu
