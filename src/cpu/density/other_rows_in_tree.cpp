// Searches for rows of other components in a kd-tree. Rows that are near each other are searched for together: while
// all rows below a child of the tree are of one component, those that are searched for share a list of the nodes that
// may have an edge of use. From level to level this list becomes shorter; where it is empty, all rows below are done.
// So the rows inside of a large component are done after comparisons of a few large boxes, whatever their number, and
// only rows near other components are compared with rows. THE BOUND is that of other_rows.cpp, with the key of two
// boxes (cpu/nearest/tree/tree.hpp) and the least core keys in them (component_boxes.hpp).
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <utility>

#include "core/parallel.hpp"
#include "cpu/density/component_boxes.hpp"
#include "cpu/density/other_rows.hpp"
#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/tree.hpp"
#include "cpu/nearest/tree/walk.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kSearchedPerTask = 2048;  // at most
constexpr std::int64_t kBatchRows = 32;          // rows of a leaf that are searched for together, at most
constexpr std::size_t kMaxOpen = 256;            // nodes of a list
constexpr std::size_t kLevels = Tree::kMaxDepth + 2;
constexpr int kSearchStack = static_cast<int>(kLevels * kTreeWidth);

/// A child that is a node. No pair of a row that is searched for and a row of another component below the node has a
/// key below `key`.
struct Open {
  std::int64_t child;
  double key;
};

/// Rows of one component in one leaf that are searched for together.
struct RowBatch {
  explicit RowBatch(std::int64_t d)
      : x(static_cast<std::size_t>(kBatchRows * d)),
        low(static_cast<std::size_t>(d)),
        high(static_cast<std::size_t>(d)) {}

  std::vector<double> x;     // [rows][d]
  std::vector<double> low;   // [d] of the rows
  std::vector<double> high;  // [d]
  double core = kInfinity;   // the least core key
  std::vector<Pursuit> pursuits;
  std::int64_t pairs = 0;  // that were ranked and are not in InTree::pairs_ yet
};

/// What a thread needs.
struct Scratch {
  explicit Scratch(std::int64_t d)
      : batch(d), low(static_cast<std::size_t>(d)), high(static_cast<std::size_t>(d)), open(kLevels) {}
  static std::uint64_t bytes(const TableView& table) {
    const std::uint64_t nodes = child_count_bound(static_cast<std::uint64_t>(table.rows())) / kTreeWidth;
    return static_cast<std::uint64_t>((kBatchRows + 4) * table.cols()) * sizeof(double) +
           2 * kBatchRows * sizeof(Pursuit) +
           (kLevels + 1) * 2 * std::min<std::uint64_t>(nodes, kMaxOpen) * sizeof(Open);  // vectors that grow
  }

  RowBatch batch;
  std::vector<double> low;  // [d] of a box
  std::vector<double> high;
  std::vector<std::vector<Open>> open;  // of each level
  std::vector<Open> stack;
};

class InTree final : public OtherRowsInTree {
 public:
  InTree(const Context& ctx, Growth& growth)
      : ctx_(ctx),
        growth_(growth),
        tree_(static_cast<const Tree&>(*growth.task.search.tree)),
        keys_(ctx, growth.task.search, tree_),
        parts_(tree_parts(ctx, tree_)),
        inner_(ctx, growth, tree_, keys_, parts_),
        boxes_(ctx, growth, tree_, keys_, inner_, parts_) {
    scratch_.reserve(static_cast<std::size_t>(ctx.threads()));
    for (int worker = 0; worker < ctx.threads(); ++worker) scratch_.emplace_back(tree_.cols());
  }

  void relabel() override { leave_out(kInfinity); }

  void leave_out(double max_core) override {
    inner_.leave_out(max_core);
    boxes_.update();
  }

  std::int64_t pairs() const override { return pairs_; }

  void search(std::span<const std::int64_t> rows) override {
    const std::vector<Task> tasks = tasks_of(rows);
    core::parallel_for(ctx_, std::ssize(tasks), [&](std::int64_t i, int worker) {
      const Task& task = tasks[static_cast<std::size_t>(i)];
      Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
      scratch.open[0].clear();
      if (tree_.nodes() > 0) scratch.open[0].push_back({0, 0});
      search(task.below, task.rows, 0, scratch);
      pairs_ += std::exchange(scratch.batch.pairs, 0);
    });
  }

 private:
  struct Task {
    Below below;
    std::span<const std::int64_t> rows;
  };

  [[nodiscard]] std::vector<Task> tasks_of(std::span<const std::int64_t> rows) const {
    std::vector<Task> tasks;
    for (const Below& part : parts_) {
      if (rows.empty()) break;
      std::span<const std::int64_t> below = rows_below(rows, part);
      rows = rows.subspan(below.size());
      while (!below.empty()) {  // many where rows are equal
        const std::size_t size = std::min(below.size(), static_cast<std::size_t>(kSearchedPerTask));
        tasks.push_back({part, below.first(size)});
        below = below.subspan(size);
      }
    }
    return tasks;
  }
  /// Of ascending rows, none of which comes before a child, those that are below it.
  [[nodiscard]] std::span<const std::int64_t> rows_below(std::span<const std::int64_t> rows, const Below& below) const {
    const std::int64_t end = growth_.places.first_place(below.first_group + tree_.points_below(below.child));
    return {rows.begin(), std::lower_bound(rows.begin(), rows.end(), end)};
  }

  /// Searches for rows below a child, in the nodes that scratch.open[level] has.
  void search(const Below& below, std::span<const std::int64_t> rows, std::size_t level, Scratch& scratch) {
    if (rows.empty()) return;
    ctx_.check_cancelled();
    if (tree_.child(below.child).size > 0) return search_leaf(below, rows, scratch.open[level], scratch.batch);
    const std::int64_t label = boxes_.label(below.child);
    if (label >= 0) {
      if (!narrow(below.child, label, level, scratch)) return raise_floors(rows, label);
      ++level;
    }
    for_each_child(tree_, below, [&](const Below& child) {
      const std::span<const std::int64_t> part = rows_below(rows, child);
      rows = rows.subspan(part.size());
      search(child, part, level, scratch);
    });
  }

  /// Of rows that have no edge of use.
  void raise_floors(std::span<const std::int64_t> rows, std::int64_t label) {
    const double above = std::nextafter(growth_.edges.limit(label), kInfinity);
    for (const std::int64_t row : rows) {
      double& floor = growth_.bounds.floor[static_cast<std::size_t>(row)];
      floor = std::max(floor, above);
    }
  }

  /// Of the nodes of a level those that rows below a child, which are of one component, may have an edge of use into,
  /// become the nodes of the next level, or nodes below them. Returns whether there is any. Not for the root: below it
  /// are several components, whatever rows are left out (inner_boxes.hpp).
  bool narrow(std::int64_t at, std::int64_t label, std::size_t level, Scratch& scratch) const {
    inner_.box(at, scratch.low.data(), scratch.high.data());
    const std::int64_t most = tree_.points_below(at) * kTreeWidth;
    const double core = boxes_.core(at);
    std::vector<Open>& stack = scratch.stack;
    std::vector<Open>& next = scratch.open[level + 1];
    stack.assign(scratch.open[level].begin(), scratch.open[level].end());
    next.clear();
    while (!stack.empty()) {
      const Open open = stack.back();
      stack.pop_back();
      ctx_.check_cancelled();
      alignas(64) double keys[kTreeWidth];
      std::uint32_t leaves = 0;
      const std::uint32_t near = useful_children(open, scratch.low, scratch.high, label, core, keys, leaves);
      if (near == 0) continue;
      if (leaves != 0 || tree_.points_below(open.child) <= most || stack.size() + next.size() + kTreeWidth > kMaxOpen) {
        double least = kInfinity;
        for (std::uint32_t left = near; left != 0; left &= left - 1) {
          least = std::min(least, keys[std::countr_zero(left)]);
        }
        next.push_back({open.child, least});
        continue;
      }
      for (std::uint32_t left = near; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        stack.push_back({Tree::child_of(tree_.child(open.child).at, lane), keys[lane]});
      }
    }
    std::sort(next.begin(), next.end(), [](const Open& a, const Open& b) { return a.key < b.key; });
    return !next.empty();
  }

  /// A bit for each child of an open node that rows of a component may have an edge of use into, and which of these are
  /// leaves. The rows are between `low` and `high` and have core keys of at least `core`.
  std::uint32_t useful_children(const Open& open, const std::vector<double>& low, const std::vector<double>& high,
                                std::int64_t label, double core, double* keys, std::uint32_t& leaves) const {
    leaves = 0;
    if (!boxes_.may_have(open.child, label, core, open.key)) return 0;
    const std::int64_t node = tree_.child(open.child).at;
    const std::uint32_t near = boxes_.useful(node, low.data(), high.data(), label, core, kInfinity, keys);
    for (std::uint32_t left = near; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      leaves |= static_cast<std::uint32_t>(tree_.child(Tree::child_of(node, lane)).size > 0) << lane;
    }
    return near;
  }

  void search_leaf(const Below& below, std::span<const std::int64_t> rows, const std::vector<Open>& open,
                   RowBatch& batch) {
    const Tree::Child& leaf = tree_.child(below.child);
    std::int64_t group = below.first_group;
    for (const std::int64_t row : rows) {
      const std::int64_t label = growth_.components.label(row);
      if (std::ssize(batch.pursuits) == kBatchRows ||
          (!batch.pursuits.empty() && batch.pursuits.front().label() != label)) {
        search(batch, open);
      }
      if (growth_.bounds.floor[static_cast<std::size_t>(row)] > growth_.edges.limit(label)) continue;
      while (growth_.places.first_place(group + 1) <= row) ++group;
      add(row, tree_.points(leaf.at), group - below.first_group, batch);
    }
    search(batch, open);
  }

  void add(std::int64_t row, const std::byte* points, std::int64_t point, RowBatch& batch) const {
    const std::size_t d = batch.low.size();
    double* const x = batch.x.data() + batch.pursuits.size() * d;
    keys_.point(points, point, x);
    const bool first = batch.pursuits.empty();
    for (std::size_t j = 0; j < d; ++j) {
      batch.low[j] = first ? x[j] : std::min(batch.low[j], x[j]);
      batch.high[j] = first ? x[j] : std::max(batch.high[j], x[j]);
    }
    batch.core = first ? growth_.core(row) : std::min(batch.core, growth_.core(row));
    batch.pursuits.emplace_back(growth_, row);
  }

  void search(RowBatch& batch, const std::vector<Open>& open) {
    if (batch.pursuits.empty()) return;
    if (tree_.nodes() == 0) {
      for_each_row_of(batch, [&](const double* x, Pursuit& pursuit) { batch.pairs += rank(0, x, pursuit); });
    }
    for (const Open& one : open) walk(batch, one);
    for (const Pursuit& pursuit : batch.pursuits) pursuit.finish(growth_);
    batch.pursuits.clear();
  }
  template <class Visit>
  static void for_each_row_of(RowBatch& batch, const Visit& visit) {
    const double* x = batch.x.data();
    for (Pursuit& pursuit : batch.pursuits) {
      visit(x, pursuit);
      x += batch.low.size();
    }
  }

  /// Through a node and what is below it.
  void walk(RowBatch& batch, const Open& from) {
    const std::int64_t label = batch.pursuits.front().label();
    Open stack[kSearchStack];
    int size = 0;
    stack[size++] = from;
    while (size > 0) {
      const Open open = stack[--size];
      ctx_.check_cancelled();
      const std::int64_t node = tree_.child(open.child).at;
      alignas(64) double keys[kTreeWidth];
      std::uint32_t leaves = 0;
      const std::uint32_t near = useful_children(open, batch.low, batch.high, label, batch.core, keys, leaves);
      const int bottom = size;
      for (std::uint32_t left = near & ~leaves; left != 0; left &= left - 1) {  // the nearest on top
        const int lane = std::countr_zero(left);
        int place = size++;
        for (; place > bottom && stack[place - 1].key <= keys[lane]; --place) stack[place] = stack[place - 1];
        stack[place] = {Tree::child_of(node, lane), keys[lane]};
      }
      if (leaves == 0) continue;
      for_each_row_of(batch,
                      [&](const double* x, Pursuit& pursuit) { batch.pairs += rank_leaves(node, leaves, x, pursuit); });
    }
  }

  /// Those leaves of a node that a row may have an edge of use into, the nearest first. Returns how many points they
  /// have.
  std::int64_t rank_leaves(std::int64_t node, std::uint32_t leaves, const double* x, Pursuit& pursuit) {
    alignas(64) double keys[kTreeWidth];
    int order[kTreeWidth];
    int size = 0;
    const std::uint32_t near =
        boxes_.useful(node, x, x, pursuit.label(), pursuit.core(), pursuit.limit(growth_), keys) & leaves;
    for (std::uint32_t left = near; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      int place = size++;
      for (; place > 0 && keys[order[place - 1]] > keys[lane]; --place) order[place] = order[place - 1];
      order[place] = lane;
    }
    std::int64_t points = 0;
    for (int i = 0; i < size; ++i) {
      const std::int64_t leaf = Tree::child_of(node, order[i]);
      if (boxes_.may_have(leaf, pursuit.label(), pursuit.core(), keys[order[i]])) points += rank(leaf, x, pursuit);
    }
    return points;
  }

  /// Returns how many points the leaf has.
  std::int64_t rank(std::int64_t leaf, const double* x, Pursuit& pursuit) {
    constexpr std::int64_t kPoints = 256;  // of a leaf, ranked in one call
    const Tree::Child& child = tree_.child(leaf);
    for (std::int64_t first = 0; first < child.size; first += kPoints) {
      ctx_.check_cancelled();
      double keys[kPoints];
      std::int32_t at[kPoints];
      const std::int64_t found = keys_.points(x, tree_.points(child.at) + first * tree_.point_bytes(),
                                              std::min(kPoints, child.size - first), pursuit.limit(growth_), keys, at);
      for (std::int64_t f = 0; f < found; ++f) {
        if (keys[f] <= pursuit.limit(growth_)) pursuit.offer(growth_, keys[f], child.first + first + at[f]);
      }
    }
    return child.size;
  }

  const Context& ctx_;
  Growth& growth_;
  const Tree& tree_;
  TreeKeys keys_;
  std::vector<Below> parts_;
  InnerBoxes inner_;
  ComponentBoxes boxes_;
  std::vector<Scratch> scratch_;  // of each thread
  std::atomic<std::int64_t> pairs_{0};
};

}  // namespace

std::unique_ptr<OtherRowsInTree> other_rows_in_tree(const Context& ctx, Growth& growth) {
  return std::make_unique<InTree>(ctx, growth);
}

std::uint64_t other_rows_in_tree_bytes(const Context& ctx, const kernels::SpanningTask& task) {
  const TableView& table = task.search.queries;
  const auto threads = static_cast<std::uint64_t>(ctx.threads());
  const std::uint64_t parts = tree_parts_bytes(static_cast<std::uint64_t>(table.rows()));
  const std::uint64_t tasks = 2 * parts;  // those of a search, with rows
  return InnerBoxes::bytes(task, threads) + ComponentBoxes::bytes(table, threads) + parts + tasks +
         threads * Scratch::bytes(table);
}

}  // namespace vicinal::cpu
