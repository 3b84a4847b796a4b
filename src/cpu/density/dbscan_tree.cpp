// The searches of DBSCAN in a kd-tree, each of which stops where the answer is known.
//   core    a row has enough neighbors: the nearest boxes come first, so that mostly few are entered. Where many are
//           needed, boxes within the radius are counted as wholes.
//   join    boxes whose points are all neighbors of each other (TreeKeys::width) are joined as they are; then core rows
//           search. A row that has seen all core rows around it is *searched*: its edges are done with, and others pass
//           over it, as over boxes in which all rows that are left are joined to them. When a 256th of the rows have
//           searched, most rows are in a few large components: from then on rows of those wait, and other rows wait as
//           soon as they are joined to one. At last the rows that wait search for each other: all but those of the
//           largest component, which the others find. What boxes hold and which components are large is looked up
//           when a 256th of the rows have searched, a 64th, and so on.
//   border  boxes are passed over whose smallest number is not below the one that is found already.
// Equal rows have equal neighborhoods, keys of differences being 0: one of them searches.
#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <span>
#include <vector>

#include "core/infinity.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "core/table_access.hpp"
#include "cpu/density/dbscan.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/tree/walk.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kQueriesPerTask = 64;
constexpr std::int64_t kTurns = 256;      // a power of four
constexpr std::int64_t kNoCore = -1;      // below a child
constexpr std::int64_t kSeveral = -2;     // components below a child
constexpr std::int64_t kLargeShare = 16;  // of the core rows one in so many: a large component
constexpr double kManySamples = 64;       // more than a leaf has: boxes are worth counting
constexpr std::int64_t kNoNumber = std::numeric_limits<std::int64_t>::max();

class DbscanTree final : public DbscanSearches {
 public:
  explicit DbscanTree(DbscanRun& run)
      : run_(run),
        tree_(static_cast<const Tree&>(*run.task.search.tree)),
        keys_(run.ctx, run.task.search, tree_),
        candidates_(run.task.search),
        below_(static_cast<std::size_t>(1 + tree_.nodes() * kTreeWidth)),
        is_searched_(static_cast<std::size_t>(run.task.search.index->distinct_rows()), 0),
        is_waiting_(is_searched_.size(), 0),
        queries_(static_cast<std::size_t>(run.ctx.threads()),
                 std::vector<double>(static_cast<std::size_t>((tree_.cols() + 7) / 8 * 8))) {}

  void find_core_rows() override {
    if (run_.rule.weights.empty() && run_.rule.min_weight > kManySamples) return count_core_rows();
    for_each_query("core rows", 0, kTurns, [&](const double* x, std::int64_t distinct) {
      const auto members = candidates_.members(distinct);
      Weighing weighing{*this, members.front(), {}};
      weighing.weight.start(run_.rule, members.front());
      walk(run_.ctx, tree_, keys_, x, weighing);
      const bool is_core = weighing.weight.is_enough(run_.rule);
      for (const std::int64_t row : members) run_.result.core[static_cast<std::size_t>(row)] = is_core ? 1 : 0;
    });
  }

  void join_core_rows() override {
    core::Poll poll(run_.ctx);
    for (std::int64_t distinct = 0; distinct < run_.task.search.index->distinct_rows(); ++distinct) {
      poll.step();
      const auto members = candidates_.members(distinct);
      if (!is_core(members.front()) || members.size() == 1) continue;
      for (const std::int64_t row : members) {
        poll.step();
        run_.forest.unite(members.front(), row);
      }
    }
    join_small_boxes();
    // Of every kTurns rows in the order of the tree one, three more, and so on; at last all that wait.
    join_around(0, 1);
    for (std::int64_t last = 4; last <= kTurns; last *= 4) {
      find_large_components(kLargeShare);
      join_around(last / 4, last);
    }
    find_large_components(0);
    join_around(0, kTurns);
  }

  void label_border_rows() override {
    find_smallest_numbers();
    for_each_query("border rows", 0, kTurns, [&](const double* x, std::int64_t distinct) {
      const auto members = candidates_.members(distinct);
      if (is_core(members.front())) return;
      Numbering numbering{*this, kNoNumber};
      walk(run_.ctx, tree_, keys_, x, numbering);
      if (numbering.number == kNoNumber) return;
      for (const std::int64_t row : members) run_.result.labels[static_cast<std::size_t>(row)] = numbering.number;
    });
  }

 private:
  // The visitors of `walk`.
  // Of rows of weight 1: boxes are counted as wholes. The row counts itself like the others, at distance 0.
  struct Counting {
    DbscanTree& search;
    std::int64_t rows = 0;

    [[nodiscard]] bool suffices() const { return static_cast<double>(rows) >= search.run_.rule.min_weight; }
    [[nodiscard]] double limit() const { return suffices() ? -kInfinity : search.run_.task.limit; }
    [[nodiscard]] bool enters(std::int64_t /*child*/, double /*key*/) const { return true; }
    void offer(double /*key*/, std::int64_t distinct) { rows += std::ssize(search.candidates_.members(distinct)); }
    void take(std::int64_t child) { rows += search.below_[static_cast<std::size_t>(child)]; }
  };
  struct Weighing {
    DbscanTree& search;
    std::int64_t row;
    NeighborhoodWeight weight;

    [[nodiscard]] double limit() const {
      return weight.suffices(search.run_.rule) ? -kInfinity : search.run_.task.limit;
    }
    [[nodiscard]] bool enters(std::int64_t /*child*/, double /*key*/) const { return true; }
    void offer(double /*key*/, std::int64_t distinct) {
      for (const std::int64_t other : search.candidates_.members(distinct)) {
        if (other == row) continue;
        weight.add(search.run_.rule, other);
        if (weight.suffices(search.run_.rule)) return;
      }
    }
  };
  struct Joining {
    DbscanTree& search;
    std::int64_t row;
    bool waits = false;

    [[nodiscard]] double limit() const { return waits ? -kInfinity : search.run_.task.limit; }
    [[nodiscard]] bool enters(std::int64_t child, double /*key*/) const {
      const std::int64_t below = search.below_[static_cast<std::size_t>(child)];
      return below != kNoCore && (below == kSeveral || !search.run_.forest.are_joined(below, row));
    }
    void offer(double /*key*/, std::int64_t distinct) {
      const std::int64_t other = search.candidates_.members(distinct).front();
      if (!search.is_core(other) || !search.run_.forest.unite(row, other)) return;
      waits = search.waits(row) || search.is_waiting_[static_cast<std::size_t>(distinct)] != 0;
    }
  };
  struct Numbering {
    DbscanTree& search;
    std::int64_t number;

    [[nodiscard]] double limit() const { return number == 0 ? -kInfinity : search.run_.task.limit; }
    [[nodiscard]] bool enters(std::int64_t child, double /*key*/) const {
      return search.below_[static_cast<std::size_t>(child)] < number;
    }
    void offer(double /*key*/, std::int64_t distinct) {
      const std::int64_t other = search.candidates_.members(distinct).front();
      if (search.is_core(other)) number = std::min(number, search.run_.result.labels[static_cast<std::size_t>(other)]);
    }
  };

  [[nodiscard]] bool is_core(std::int64_t row) const { return run_.result.core[static_cast<std::size_t>(row)] != 0; }

  void count_core_rows() {
    fold(
        0, [&](std::int64_t distinct) { return std::ssize(candidates_.members(distinct)); },
        [](std::int64_t a, std::int64_t b) { return a + b; });
    for_each_query("core rows", 0, kTurns, [&](const double* x, std::int64_t distinct) {
      Counting counting{*this};
      walk(run_.ctx, tree_, keys_, x, counting);
      const std::uint8_t is_core = counting.suffices() ? 1 : 0;
      for (const std::int64_t row : candidates_.members(distinct)) {
        run_.result.core[static_cast<std::size_t>(row)] = is_core;
      }
    });
  }

  /// Calls query(x, distinct row) for the distinct rows whose places in the tree's order, modulo kTurns, are from
  /// `first` to `last` - 1.
  template <class Query>
  void for_each_query(const char* stage, std::int64_t first, std::int64_t last, const Query& query) {
    const std::vector<std::int64_t>& order = tree_.shape().order;
    const auto rows = static_cast<std::int64_t>(order.size());
    const std::int64_t places = kQueriesPerTask * kTurns / (last - first);  // of a task
    std::atomic<std::int64_t> done{0};
    core::parallel_for(run_.ctx, (rows + places - 1) / places, [&](std::int64_t task, int worker) {
      double* const x = queries_[static_cast<std::size_t>(worker)].data();
      const std::int64_t end = std::min(rows, (task + 1) * places);
      for (std::int64_t place = task * places; place < end; ++place) {
        if (place % kTurns < first || place % kTurns >= last) continue;
        const std::int64_t distinct = order[static_cast<std::size_t>(place)];
        const std::int64_t row = candidates_.members(distinct).front();
        core::widen_rows(run_.task.search.queries, row, row + 1, x);
        query(x, distinct);
      }
      const std::int64_t now = done.fetch_add(end - task * places) + end - task * places;
      run_.ctx.report(stage, static_cast<double>(now) / static_cast<double>(rows));
    });
  }

  /// Joins core rows to all core rows around them that are not searched, or until they wait.
  void join_around(std::int64_t first, std::int64_t last) {
    find_joined();
    for_each_query("clusters", first, last, [&](const double* x, std::int64_t distinct) {
      const std::int64_t row = candidates_.members(distinct).front();
      const auto at = static_cast<std::size_t>(distinct);
      if (!is_core(row) || is_searched_[at] != 0 || is_waiting_[at] != 0 || waits(row)) return;
      Joining joining{*this, row};
      walk(run_.ctx, tree_, keys_, x, joining);
      is_searched_[at] = joining.waits ? 0 : 1;
    });
  }
  /// Whether a row is in the largest component by now.
  [[nodiscard]] bool waits(std::int64_t row) const { return largest_ >= 0 && run_.forest.are_joined(row, largest_); }
  /// Makes the rows of components wait that have one in `share` of the core rows; 0: of the largest alone.
  void find_large_components(std::int64_t share) {
    core::Poll poll(run_.ctx);
    const std::span<std::int64_t> sizes = run_.result.labels;  // nobody has given labels yet
    std::fill(sizes.begin(), sizes.end(), 0);
    std::int64_t core_rows = 0;
    largest_ = 0;
    for (std::size_t row = 0; row < sizes.size(); ++row) {
      poll.step();
      if (run_.result.core[row] == 0) continue;
      ++core_rows;
      const std::int64_t root = run_.forest.root_of(static_cast<std::int64_t>(row));
      const std::int64_t size = ++sizes[static_cast<std::size_t>(root)];
      if (size > sizes[static_cast<std::size_t>(largest_)]) largest_ = root;
    }
    for (std::int64_t distinct = 0; distinct < run_.task.search.index->distinct_rows(); ++distinct) {
      poll.step();
      const std::int64_t row = candidates_.members(distinct).front();
      const std::int64_t size = sizes[static_cast<std::size_t>(run_.forest.root_of(row))];
      is_waiting_[static_cast<std::size_t>(distinct)] = is_core(row) && size * share >= core_rows ? 1 : 0;
    }
  }

  /// Calls visit(distinct row) for all rows below a child.
  template <class Visit>
  void for_each_row_below(std::int64_t child, core::Poll& poll, const Visit& visit) const {
    std::vector<std::int64_t> stack = {child};
    while (!stack.empty()) {
      const Tree::Child& next = tree_.child(stack.back());
      stack.pop_back();
      for (std::int64_t i = 0; i < next.size; ++i) {
        poll.step();
        visit(tree_.shape().order[static_cast<std::size_t>(next.first + i)]);
      }
      if (next.size > 0) continue;
      for_each_lane(next.at, [&](std::int64_t lane) { stack.push_back(Tree::child_of(next.at, lane)); });
    }
  }
  template <class Visit>
  void for_each_lane(std::int64_t node, const Visit& visit) const {
    for (std::uint32_t lanes = tree_.lanes(node); lanes != 0; lanes &= lanes - 1) visit(std::countr_zero(lanes));
  }

  void join_small_boxes() {
    core::Poll poll(run_.ctx);
    const auto join = [&](std::int64_t child) {
      std::int64_t first = -1;
      for_each_row_below(child, poll, [&](std::int64_t distinct) {
        const std::int64_t row = candidates_.members(distinct).front();
        if (!is_core(row)) return;
        if (first < 0) first = row;
        run_.forest.unite(first, row);
      });
    };
    if (keys_.width(tree_.lowest(), tree_.highest()) <= run_.task.limit) return join(0);
    std::vector<std::int64_t> wide = {0};
    std::int64_t opened = 0;
    while (!wide.empty()) {
      if (++opened % 16 == 0) run_.ctx.check_cancelled();
      const Tree::Child& child = tree_.child(wide.back());
      wide.pop_back();
      if (child.size > 0) continue;
      for_each_lane(child.at, [&](std::int64_t lane) {
        const std::int64_t next = Tree::child_of(child.at, lane);
        keys_.width(tree_.boxes(child.at), lane) <= run_.task.limit ? join(next) : wide.push_back(next);
      });
    }
  }

  /// Folds what children hold into `below_`: value(distinct row), combined by `merge`, `none` where there is no row.
  template <class Value, class Merge>
  void fold(std::int64_t none, const Value& value, const Merge& merge) {
    core::Poll poll(run_.ctx);
    from_the_leaves(tree_, [&](std::int64_t at) {
      const Tree::Child& child = tree_.child(at);
      std::int64_t all = none;
      for (std::int64_t i = 0; i < child.size; ++i) {
        poll.step();
        const std::int64_t distinct = tree_.shape().order[static_cast<std::size_t>(child.first + i)];
        all = merge(all, value(distinct));
      }
      if (child.size == 0) {
        for_each_lane(child.at, [&](std::int64_t lane) {
          all = merge(all, below_[static_cast<std::size_t>(Tree::child_of(child.at, lane))]);
        });
      }
      below_[static_cast<std::size_t>(at)] = all;
    });
  }

  /// Of each child the root of all core rows below it that are not searched.
  void find_joined() {
    fold(
        kNoCore,
        [&](std::int64_t distinct) {
          const std::int64_t row = candidates_.members(distinct).front();
          return is_core(row) && is_searched_[static_cast<std::size_t>(distinct)] == 0 ? run_.forest.root_of(row)
                                                                                       : kNoCore;
        },
        [](std::int64_t a, std::int64_t b) {
          if (a == kNoCore || b == kNoCore) return a == kNoCore ? b : a;
          return a == b ? a : kSeveral;
        });
  }
  /// Of each child the smallest number of a core row below it.
  void find_smallest_numbers() {
    fold(
        kNoNumber,
        [&](std::int64_t distinct) {
          const std::int64_t row = candidates_.members(distinct).front();
          return is_core(row) ? run_.result.labels[static_cast<std::size_t>(row)] : kNoNumber;
        },
        [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
  }

  DbscanRun& run_;
  const Tree& tree_;
  TreeKeys keys_;
  Candidates candidates_;
  std::vector<std::int64_t> below_;        // [children]
  std::vector<std::uint8_t> is_searched_;  // [distinct rows]
  std::vector<std::uint8_t> is_waiting_;   // [distinct rows]
  std::int64_t largest_ = -1;              // the root that the largest component had when it was looked up
  std::vector<std::vector<double>> queries_;
};

}  // namespace

std::unique_ptr<DbscanSearches> dbscan_in_tree(DbscanRun& run) {
  return std::make_unique<DbscanTree>(run);
}

std::uint64_t dbscan_in_tree_bytes(const Context& ctx, const kernels::DbscanTask& task) {
  const auto n = static_cast<std::uint64_t>(task.search.queries.rows());
  const auto d = static_cast<std::uint64_t>(task.search.queries.cols());
  return child_count_bound(n) * sizeof(std::int64_t) + 2 * n + static_cast<std::uint64_t>(ctx.threads()) * (d + 8) * 8;
}

}  // namespace vicinal::cpu
