// The order of OPTICS (contract clause 30), which is Prim's algorithm on a directed graph: the row that is placed next
// is the open row with the least (reach key, row), where a placed row p reaches q at max(core of p, key of p and q).
//
// In a kd-tree. Each placed row that is a core row has one REACH in a heap: of all open rows, as they were when it was
// looked for, the one that it reaches first by (reach key, row). Open rows become fewer, so a reach is never before
// that one; when it comes to the top and its row has been placed meanwhile, the next one is looked for, in the row's
// list and beyond it in the tree, which passes over boxes without open rows. Of equal reaches the row that was placed
// first is on top, as predecessors need it. Of equal rows, which reach all others alike, the first that is placed has a
// reach.
//
// By all pairs. Each placed row lowers the reach keys of all open rows; one pass over them, which threads share.
// O(n) memory beside the lists.
#include "cpu/density/optics.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <queue>
#include <vector>

#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "core/table_access.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/tree/walk.hpp"
#include "cpu/nearest/wide_rows.hpp"

namespace vicinal::cpu {
namespace {

using kernels::OpticsResult;
using kernels::OpticsTask;

constexpr std::int64_t kRowsOfAPass = 2048;  // of a pass over all rows
constexpr std::int64_t kPlacesPerReport = 1024;

/// An open row as a placed one reaches it; no row: none is reached.
struct Reach {
  double key = kInfinity;
  std::int64_t row = -1;
  std::int64_t from = -1;  ///< the place of the row that reaches it
};
bool comes_before(const Reach& a, const Reach& b) {
  if (a.key != b.key) return a.key < b.key;
  return a.row != b.row ? a.row < b.row : a.from < b.from;
}

/// Places rows one after the other: `next_reach` says which one follows, and `placed` hears of it.
class Placing {
 public:
  Placing(const Context& ctx, const OpticsTask& task, OpticsResult& result)
      : ctx_(ctx), task_(task), n_(task.search.queries.rows()), result_(result), is_placed_(rows(), 0) {
    std::fill(result.reach_keys.begin(), result.reach_keys.end(), kInfinity);
    std::fill(result.predecessors.begin(), result.predecessors.end(), -1);
  }
  Placing(const Placing&) = delete;
  Placing& operator=(const Placing&) = delete;
  virtual ~Placing() = default;
  static std::uint64_t bytes(std::int64_t n) { return static_cast<std::uint64_t>(n); }

  void run() {
    core::Poll poll(ctx_);
    std::int64_t first_open = 0;
    for (std::int64_t place = 0; place < n_; ++place) {
      poll.step();
      Reach reach = next_reach();
      if (reach.row < 0) {
        while (is_placed(first_open)) ++first_open;
        reach.row = first_open;
      } else {
        result_.reach_keys[static_cast<std::size_t>(reach.row)] = reach.key;
        result_.predecessors[static_cast<std::size_t>(reach.row)] =
            result_.ordering[static_cast<std::size_t>(reach.from)];
      }
      result_.ordering[static_cast<std::size_t>(place)] = reach.row;
      is_placed_[static_cast<std::size_t>(reach.row)] = 1;
      placed(reach.row, place);
      if (place % kPlacesPerReport == 0) ctx_.report("order", static_cast<double>(place) / static_cast<double>(n_));
    }
  }

 protected:
  /// Of the open rows that placed rows reach the one that comes first; none: no row.
  virtual Reach next_reach() = 0;
  virtual void placed(std::int64_t row, std::int64_t place) = 0;

  [[nodiscard]] std::size_t rows() const { return static_cast<std::size_t>(n_); }
  [[nodiscard]] bool is_placed(std::int64_t row) const { return is_placed_[static_cast<std::size_t>(row)] != 0; }
  /// Not above the limit for core rows.
  [[nodiscard]] double core(std::int64_t row) const {
    return task_.keys[static_cast<std::size_t>(row * task_.search.k + task_.rank - 1)];
  }
  [[nodiscard]] bool is_core(std::int64_t row) const { return core(row) <= task_.limit; }

  const Context& ctx_;
  const OpticsTask& task_;
  std::int64_t n_;
  OpticsResult& result_;

 private:
  std::vector<std::uint8_t> is_placed_;  // [n]
};

class OrderInTree final : public Placing {
 public:
  OrderInTree(const Context& ctx, const OpticsTask& task, OpticsResult& result)
      : Placing(ctx, task, result),
        tree_(static_cast<const Tree&>(*task.search.tree)),
        keys_(ctx, task.search, tree_),
        candidates_(task.search),
        open_(children(), 0),
        parents_(children(), -1),
        groups_(static_cast<std::size_t>(task.search.index->distinct_rows())),
        groups_of_(task.search.index->grouped() ? rows() : 0),
        x_(static_cast<std::size_t>((tree_.cols() + 7) / 8 * 8)) {
    core::Poll poll(ctx);
    from_the_leaves(tree_, [&](std::int64_t at) {
      const Tree::Child& child = tree_.child(at);
      std::int64_t& open = open_[static_cast<std::size_t>(at)];
      open = child.size;
      for (std::int64_t i = 0; i < child.size; ++i) {
        poll.step();
        groups_[static_cast<std::size_t>(tree_.shape().order[static_cast<std::size_t>(child.first + i)])].leaf = at;
      }
      if (child.size > 0) return;
      for (std::uint32_t lanes = tree_.lanes(child.at); lanes != 0; lanes &= lanes - 1) {
        const auto below = static_cast<std::size_t>(Tree::child_of(child.at, std::countr_zero(lanes)));
        open += open_[below];
        parents_[below] = at;
      }
    });
    for (std::int64_t distinct = 0; distinct < task.search.index->distinct_rows() && !groups_of_.empty(); ++distinct) {
      for (const std::int64_t row : candidates_.members(distinct)) {
        poll.step();
        groups_of_[static_cast<std::size_t>(row)] = distinct;
      }
    }
    std::vector<Reach> room;
    room.reserve(rows());
    heap_ = Heap(After{}, std::move(room));
  }
  static std::uint64_t bytes(std::int64_t n) {
    const auto rows = static_cast<std::uint64_t>(n);
    return Placing::bytes(n) + child_count_bound(rows) * 2 * sizeof(std::int64_t) +
           rows * (sizeof(Group) + sizeof(std::int64_t) + sizeof(Reach));
  }

 private:
  struct After {
    bool operator()(const Reach& a, const Reach& b) const { return comes_before(b, a); }
  };
  using Heap = std::priority_queue<Reach, std::vector<Reach>, After>;

  /// Equal rows.
  struct Group {
    std::int64_t leaf = 0;       // the child that holds it
    std::int64_t next_open = 0;  // of its members; their number: all are placed
    bool reaches = false;        // one that is placed has a reach
  };

  /// The visitor of `walk` that finds the first row that `row` reaches.
  struct Reaching {
    OrderInTree& search;
    double core;
    Reach best;

    [[nodiscard]] double limit() const { return best.key; }
    [[nodiscard]] bool enters(std::int64_t child, double /*key*/) const {
      return search.open_[static_cast<std::size_t>(child)] > 0;
    }
    void offer(double key, std::int64_t distinct) {
      const std::int64_t row = search.first_open(distinct);
      if (row < 0) return;
      const Reach reach = {std::max(core, key), row, best.from};
      if (best.row < 0 || comes_before(reach, best)) best = reach;
    }
  };

  Reach next_reach() override {
    while (!heap_.empty()) {
      const Reach reach = heap_.top();
      if (!is_placed(reach.row)) return reach;
      heap_.pop();
      push_reach_of(reach.from);
    }
    return {};
  }

  void placed(std::int64_t row, std::int64_t place) override {
    const std::int64_t distinct = groups_of_.empty() ? row : groups_of_[static_cast<std::size_t>(row)];
    Group& group = groups_[static_cast<std::size_t>(distinct)];
    if (first_open(distinct) < 0) {
      for (std::int64_t at = group.leaf; at >= 0; at = parents_[static_cast<std::size_t>(at)]) {
        --open_[static_cast<std::size_t>(at)];
      }
    }
    if (group.reaches || !is_core(row)) return;
    group.reaches = true;
    push_reach_of(place);
  }

  /// The open member with the smallest number, or -1.
  std::int64_t first_open(std::int64_t distinct) {
    const auto members = candidates_.members(distinct);
    std::int64_t& next = groups_[static_cast<std::size_t>(distinct)].next_open;
    while (next < std::ssize(members) && is_placed(members[static_cast<std::size_t>(next)])) ++next;
    return next < std::ssize(members) ? members[static_cast<std::size_t>(next)] : -1;
  }

  void push_reach_of(std::int64_t place) {
    ctx_.check_cancelled();
    const std::int64_t row = result_.ordering[static_cast<std::size_t>(place)];
    Reach best{task_.limit, -1, place};
    if (!knows_from_list(row, best)) {
      core::widen_rows(task_.search.queries, row, row + 1, x_.data());
      Reaching reaching{*this, core(row), {task_.limit, -1, place}};
      walk(ctx_, tree_, keys_, x_.data(), reaching);
      best = reaching.best;
    }
    if (best.row >= 0) heap_.push(best);
  }

  /// Whether the list of a row says which open row it reaches first, or that it reaches none. Rows beyond the list come
  /// after it by (key, row); but those whose keys are not above the core key are all reached alike.
  [[nodiscard]] bool knows_from_list(std::int64_t row, Reach& best) const {
    const std::int64_t k = task_.search.k;
    const std::int64_t* const ids = task_.ids.data() + row * k;
    const double* const keys = task_.keys.data() + row * k;
    const double core = this->core(row);
    for (std::int64_t i = 0; i < k && keys[i] <= task_.limit; ++i) {
      if (is_placed(ids[i])) continue;
      const Reach reach = {std::max(core, keys[i]), ids[i], best.from};
      if (best.row < 0 || comes_before(reach, best)) best = reach;
      if (keys[i] > core) break;  // all others come later
    }
    if (k == n_ - 1) return true;
    return best.row >= 0 ? keys[k - 1] > core : keys[k - 1] > task_.limit;
  }

  [[nodiscard]] std::size_t children() const { return static_cast<std::size_t>(1 + tree_.nodes() * kTreeWidth); }

  const Tree& tree_;
  TreeKeys keys_;
  Candidates candidates_;
  std::vector<std::int64_t> open_;       // [children] groups below with open rows
  std::vector<std::int64_t> parents_;    // [children]
  std::vector<Group> groups_;            // [distinct rows]
  std::vector<std::int64_t> groups_of_;  // [n]; empty: each row is its own
  std::vector<double> x_;
  Heap heap_;
};

class OrderByAllPairs final : public Placing {
 public:
  OrderByAllPairs(const Context& ctx, const OpticsTask& task, OpticsResult& result)
      : Placing(ctx, task, result),
        wide_(ctx, task.search.queries, task.search.metric, task.search.p),
        firsts_(static_cast<std::size_t>(tasks(n_))),
        from_(rows(), -1) {}
  static std::uint64_t bytes(const OpticsTask& task) {
    const TableView& table = task.search.queries;
    return Placing::bytes(table.rows()) + WideRows::bytes(table, task.search.metric) +
           static_cast<std::uint64_t>(tasks(table.rows())) * sizeof(Reach) +
           static_cast<std::uint64_t>(table.rows()) * sizeof(std::int64_t);
  }

 private:
  static std::int64_t tasks(std::int64_t n) { return (n + kRowsOfAPass - 1) / kRowsOfAPass; }

  Reach next_reach() override {
    Reach first;
    for (const Reach& reach : firsts_) {
      if (reach.row >= 0 && (first.row < 0 || comes_before(reach, first))) first = reach;
    }
    return first;
  }

  /// Lowers the reach keys of open rows, and finds of each task's rows the one that is reached first.
  void placed(std::int64_t row, std::int64_t place) override {
    const bool reaches = is_core(row);
    const double core = this->core(row);
    core::parallel_for(ctx_, std::ssize(firsts_), [&](std::int64_t task, int /*worker*/) {
      Reach first;
      for (std::int64_t other = task * kRowsOfAPass; other < std::min(n_, (task + 1) * kRowsOfAPass); ++other) {
        if (is_placed(other)) continue;
        const auto at = static_cast<std::size_t>(other);
        double& reach_key = result_.reach_keys[at];
        if (reaches && core < reach_key) {
          if (is_costly()) ctx_.check_cancelled();
          const double key = std::max(core, wide_.key(row, other));
          if (key <= task_.limit && key < reach_key) {
            reach_key = key;
            from_[at] = place;
          }
        }
        if (from_[at] >= 0 && (first.row < 0 || reach_key < first.key)) first = {reach_key, other, from_[at]};
      }
      firsts_[static_cast<std::size_t>(task)] = first;
    });
  }
  [[nodiscard]] bool is_costly() const {
    return task_.search.metric == Metric::minkowski || task_.search.queries.cols() > 1024;
  }

  WideRows wide_;
  std::vector<Reach> firsts_;       // [tasks]
  std::vector<std::int64_t> from_;  // [n] the place of the row that reaches each, or -1
};

}  // namespace

void optics(const Context& ctx, const OpticsTask& task, OpticsResult& result) {
  if (task.search.method == Method::kdtree) {
    OrderInTree(ctx, task, result).run();
  } else {
    OrderByAllPairs(ctx, task, result).run();
  }
}

std::uint64_t optics_bytes(const Context& /*ctx*/, const OpticsTask& task) {
  return task.search.method == Method::kdtree ? OrderInTree::bytes(task.search.queries.rows())
                                              : OrderByAllPairs::bytes(task);
}

}  // namespace vicinal::cpu
