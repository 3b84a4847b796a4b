// The minimum spanning tree by Boruvka's method over the engine (contract clause 27). In a round every component but
// the largest finds its lightest edge to another one, and these edges join them; so at least half of the others are
// gone after each round, and a component is searched only while it is not the largest. That is enough: the lightest
// edge that leaves a component belongs to the tree, which is unique.
//
// First the lists are asked. Of a row, all rows that are not in its list have a pair key of at least the list's last
// one, hence an edge key of at least max(core, last / divisor), the row's FLOOR. A component's lightest listed edge is
// the lightest of all unless the floor of some member is not above it; those members are searched (other_rows.hpp),
// which raises their floors. Without core keys and a divisor the first listed row of another component is the
// lightest edge of its row whatever the floor is, because lists have the same order as edges of one row: (key, id).
// Division can make keys equal that are not, and then the order is by id alone. The key of a pair is not below the core
// keys of nearest neighbors, so these are not looked at where keys are not divided.
// Floors stay true while components grow, because the rows of other components become fewer.
// Of many members some are searched first in the kd-tree of a table of eight columns or more. Where they are compared
// with many rows, outliers are left out of the boxes (inner_boxes.hpp: up to 32 columns, with core keys), and some are
// searched again. Where each is still compared with more than an eighth of all groups of equal rows, screens compare
// the others (other_rows.cpp: metrics that have screens), to which a pair costs about an eighth. O(n k) memory for the
// lists, O(n) beside them. Time: n k a round, of which there are at most log2 n, and the searches.
#include "cpu/density/spanning_tree.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/distance.hpp"
#include "core/in_steps.hpp"
#include "core/large_pages.hpp"
#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "cpu/density/inner_boxes.hpp"
#include "cpu/density/other_rows.hpp"
#include "cpu/density/sort_edges.hpp"
#include "cpu/nearest/wide_rows.hpp"

namespace vicinal::cpu {
namespace {

using kernels::SpanningTask;
using kernels::TreeEdge;

constexpr std::int64_t kLongList = 1024;  // entries, for which the cancel token is looked at

/// Of minkowski the lists' distances are roots: their keys are computed again.
void make_keys(const Context& ctx, const SpanningTask& task, const Places& listed) {
  const kernels::NearestTask& search = task.search;
  if (search.metric != Metric::minkowski) return;
  const WideRows rows(ctx, search.queries, search.metric, search.p);
  core::parallel_for(ctx, search.queries.rows(), [&](std::int64_t row, int /*worker*/) {
    for (std::int64_t at = row * search.k; at < (row + 1) * search.k; ++at) {
      if (search.queries.cols() > 64) ctx.check_cancelled();
      task.keys[static_cast<std::size_t>(at)] = rows.key(listed.row(row), task.ids[static_cast<std::size_t>(at)]);
    }
  });
}

/// Lists, which are those of rows, become those of places: each is moved once.
void move_lists(const Context& ctx, const SpanningTask& task, const Places& places) {
  const std::int64_t n = task.search.queries.rows();
  const std::int64_t k = task.search.k;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(k));
  std::vector<double> keys(static_cast<std::size_t>(k));
  std::vector<std::uint8_t> moved(static_cast<std::size_t>(n), 0);
  std::int64_t entries = 0;  // since the last look at the token
  const auto copy = [&](std::int64_t from, std::int64_t to) {
    std::copy_n(task.ids.begin() + from * k, k, task.ids.begin() + to * k);
    std::copy_n(task.keys.begin() + from * k, k, task.keys.begin() + to * k);
    moved[static_cast<std::size_t>(to)] = 1;
    if ((entries += k) < core::kElementsPerStep) return;
    ctx.check_cancelled();
    entries = 0;
  };
  core::Poll poll(ctx);
  for (std::int64_t first = 0; first < n; ++first) {
    poll.step();
    if (moved[static_cast<std::size_t>(first)] != 0) continue;
    std::copy_n(task.ids.begin() + first * k, k, ids.begin());
    std::copy_n(task.keys.begin() + first * k, k, keys.begin());
    std::int64_t to = first;
    for (; places.row(to) != first; to = places.row(to)) {
      copy(places.row(to), to);
    }
    std::copy_n(ids.begin(), k, task.ids.begin() + to * k);
    std::copy_n(keys.begin(), k, task.keys.begin() + to * k);
    moved[static_cast<std::size_t>(to)] = 1;
  }
}

constexpr std::int64_t kFewSearched = 1024;  // fewer rows are searched for in the tree, without a trial
constexpr std::int64_t kFewScreened = 8;     // columns
constexpr std::int64_t kShare = 32;          // a trial has at most that part of the rows
constexpr std::int64_t kMaxTried = 128;      // rows of a trial
constexpr double kManyPairs = 16;            // pairs per row of the table: leaving outliers out pays from there on
constexpr double kScreenGain = 8;            // a pair takes as many times as long in a tree as by screens, about

/// Whether rows in a tree may be compared by screens where the tree does not keep them apart.
bool may_screen(const Context& ctx, const SpanningTask& task) {
  return task.search.queries.cols() >= kFewScreened && has_screens(ctx, task);
}

/// Whether core keys make no edge heavier: no pair of a row is nearer than its nearest neighbor. Where rows may be left
/// out of boxes they are of use all the same.
bool are_pairs_enough(const SpanningTask& task) {
  return task.rank == 0 || (task.rank == 1 && task.divisor == 1 && !InnerBoxes::serve(task));
}

/// Writes the core keys, if there are any, to the result. Returns those that edges need, by place.
core::RawVector<double> core_keys_of(const Context& ctx, const SpanningTask& task, const Places& places,
                                     kernels::SpanningResult& result) {
  if (task.rank == 0) return {};
  const std::int64_t n = task.search.queries.rows();
  core::RawVector<double> core_keys(static_cast<std::size_t>(are_pairs_enough(task) ? 0 : n));
  result.core_keys.resize(static_cast<std::size_t>(n));
  for_each_row(ctx, n, [&](std::int64_t place) {
    const double key = task.keys[static_cast<std::size_t>(place * task.search.k + task.rank - 1)];
    result.core_keys[static_cast<std::size_t>(places.row(place))] = key;
    if (!core_keys.empty()) core_keys[static_cast<std::size_t>(place)] = key;
  });
  return core_keys;
}

/// Names rows by their places, except in edges.
class Boruvka {
 public:
  /// The lists are in the order of places and have ids of rows, which are replaced by places. `core_keys` by place, or
  /// empty: then the key of an edge is that of its pair.
  Boruvka(const Context& ctx, const SpanningTask& task, const Places& places, std::span<const double> core_keys)
      : ctx_(ctx),
        n_(task.search.queries.rows()),
        k_(task.search.k),
        growth_{task, places, core_keys, Components(ctx, n_), LightestEdges(n_), {}, {}},
        next_(static_cast<std::size_t>(n_)),
        listed_in_order_(core_keys.empty() && task.divisor == 1) {
    const auto rows = static_cast<std::size_t>(n_);
    growth_.bounds.floor.resize(rows);
    growth_.bounds.other.resize(rows);
    growth_.bounds.other_key.resize(rows);
    if (places.grouped()) growth_.group_labels.resize(static_cast<std::size_t>(places.groups()));
    for_each_row(ctx_, n_, [&](std::int64_t row) {
      if (k_ > kLongList) ctx_.check_cancelled();
      const auto at = static_cast<std::size_t>(row);
      const auto list = static_cast<std::size_t>(row * k_);
      const auto k = static_cast<std::size_t>(k_);
      for (std::int64_t& id : task.ids.subspan(list, k)) id = places.place(id);
      growth_.bounds.floor[at] =
          k_ == n_ - 1 ? kInfinity : growth_.key(growth_.core(row), -kInfinity, task.keys[list + k - 1]);
      growth_.bounds.other[at] = -1;
      next_[at] = 0;
    });
  }

  void run(std::vector<TreeEdge>& tree) {
    while (static_cast<std::int64_t>(tree.size()) < n_ - 1) {
      largest_ = growth_.components.largest();
      label_groups();
      const auto& labels = growth_.components.labels();
      OpenRows open(static_cast<std::size_t>((n_ + kTaskRows - 1) / kTaskRows));
      if (std::ssize(labels) == n_) {
        offer_nearest(open);
      } else {
        for_each_row(ctx_, std::ssize(labels),
                     [&](std::int64_t i) { growth_.edges.forget(labels[static_cast<std::size_t>(i)]); });
        offer_known(open);
      }
      search_uncertain(std::move(open));
      join(tree);
      ctx_.report("tree", static_cast<double>(tree.size()) / static_cast<double>(n_ - 1));
    }
  }

 private:
  static constexpr std::int64_t kTaskRows = 4096;
  /// Of each task the rows, ascending, of which no edge is known, and some may be of use.
  using OpenRows = std::vector<std::vector<std::int64_t>>;

  [[nodiscard]] std::int64_t label(std::int64_t row) const { return growth_.components.label(row); }

  /// Where there are equal rows.
  void label_groups() {
    if (growth_.group_labels.empty()) return;
    for_each_row(ctx_, growth_.places.groups(), [&](std::int64_t group) {
      const auto members = growth_.places.members(group);
      std::int64_t all = label(members.front());
      for (const std::int64_t place : members) {
        if (label(place) == all) continue;
        all = -1;
        break;
      }
      growth_.group_labels[static_cast<std::size_t>(group)] = all;
    });
  }

  /// The lightest edges that lists and former searches have. Rows of one component mostly follow each other: for a run
  /// of them one edge is offered. A row is asked only if its lightest edge, which can only become heavier, may be
  /// lighter than what is known of its component.
  void offer_known(OpenRows& open) {
    core::parallel_for(ctx_, std::ssize(open), [&](std::int64_t task, int /*worker*/) {
      LightestEdges& edges = growth_.edges;
      std::int64_t own = -1;
      double limit = kInfinity;
      TreeEdge best;
      const auto offer_best = [&] {
        if (best.a < 0) return;
        growth_.components.is_one_row(own) ? edges.offer_alone(own, best) : edges.offer(own, best);
      };
      for (std::int64_t row = task * kTaskRows; row < std::min(n_, (task + 1) * kTaskRows); ++row) {
        if (label(row) == largest_) continue;
        if (label(row) != own) {
          offer_best();
          own = label(row);
          limit = edges.limit(own);
          best = {};
        }
        const auto at = static_cast<std::size_t>(row);
        if (growth_.bounds.other[at] >= 0 && growth_.bounds.other_key[at] > limit) continue;
        const Known known = known_of(row, own);
        if (may_have_lighter(row, limit)) open[static_cast<std::size_t>(task)].push_back(row);
        if (known.other < 0 || known.key > limit) continue;
        const TreeEdge edge = growth_.edge(known.key, row, known.other);
        if (best.a >= 0 && !lighter(edge, best)) continue;
        best = edge;
        limit = known.key;
      }
      offer_best();
    });
  }

  /// The same in the first round, in which every row is a component.
  void offer_nearest(OpenRows& open) {
    core::parallel_for(ctx_, std::ssize(open), [&](std::int64_t task, int /*worker*/) {
      for (std::int64_t row = task * kTaskRows; row < std::min(n_, (task + 1) * kTaskRows); ++row) {
        if (k_ > kLongList) ctx_.check_cancelled();
        const Known known = row == largest_ ? Known{} : nearest_listed<true>(row, 0, row);
        growth_.edges.set(row,
                          known.other < 0 ? TreeEdge{kInfinity, -1, -1} : growth_.edge(known.key, row, known.other));
        if (row != largest_ && may_have_lighter(row, known.key)) open[static_cast<std::size_t>(task)].push_back(row);
      }
    });
  }

  struct Known {
    double key = kInfinity;
    std::int64_t other = -1;  // -1: none
  };
  /// The lightest edge of a row that its list or a former search has.
  Known known_of(std::int64_t row, std::int64_t own) {
    RowBounds& bounds = growth_.bounds;
    const auto at = static_cast<std::size_t>(row);
    if (bounds.other[at] >= 0) {
      if (label(bounds.other[at]) != own) return {bounds.other_key[at], bounds.other[at]};
      bounds.other[at] = -1;
    }
    const std::int64_t* const ids = growth_.task.ids.data() + row * k_;
    std::int64_t& next = next_[at];
    while (next < k_ && label(ids[next]) == own) ++next;
    return nearest_listed<false>(row, next, own);
  }
  /// The lightest edge of a row to one in its list, from an entry on, that is in another component.
  template <bool kAllAlone>
  Known nearest_listed(std::int64_t row, std::int64_t next, std::int64_t own) {
    const std::int64_t* const ids = growth_.task.ids.data() + row * k_;
    const double* const keys = growth_.task.keys.data() + row * k_;
    RowBounds& bounds = growth_.bounds;
    const auto at = static_cast<std::size_t>(row);
    const double core = growth_.core(row);
    Known best;
    for (std::int64_t i = next; i < k_; ++i) {
      if (best.other >= 0 && growth_.divided(keys[i]) > best.key) break;
      if (!kAllAlone && label(ids[i]) == own) continue;
      const double key = growth_.key(core, growth_.core(ids[i]), keys[i]);
      if (best.other < 0 || key < best.key || (key == best.key && comes_first(ids[i], best.other))) {
        best = {key, ids[i]};
      }
      if (listed_in_order_) break;
    }
    if (best.other >= 0 && (listed_in_order_ || best.key < bounds.floor[at])) {
      bounds.other[at] = best.other;
      bounds.other_key[at] = best.key;
    }
    return best;
  }
  /// Of edges of one row that have one key the one to the smaller row comes first.
  [[nodiscard]] bool comes_first(std::int64_t a, std::int64_t b) const {
    return growth_.places.row(a) < growth_.places.row(b);
  }

  /// Whether a row may have an edge that is not known and is lighter than the limit of its component, or as light.
  [[nodiscard]] bool may_have_lighter(std::int64_t row, double limit) const {
    const auto at = static_cast<std::size_t>(row);
    return growth_.bounds.other[at] < 0 && growth_.bounds.floor[at] <= limit;
  }
  [[nodiscard]] bool is_uncertain(std::int64_t row) const {
    const std::int64_t own = label(row);
    return own != largest_ && may_have_lighter(row, growth_.edges.limit(own));
  }

  /// Those of the open rows that are uncertain now that all edges were offered, in the order of groups.
  std::vector<std::int64_t> uncertain_rows(OpenRows open) {
    if (growth_.places.grouped()) {
      open = uncertain_of_groups();
    } else {
      core::parallel_for(ctx_, std::ssize(open), [&](std::int64_t task, int /*worker*/) {
        std::erase_if(open[static_cast<std::size_t>(task)], [&](std::int64_t row) { return !is_uncertain(row); });
      });
    }
    std::size_t size = 0;
    for (const std::vector<std::int64_t>& part : open) size += part.size();
    std::vector<std::int64_t> rows;
    rows.reserve(size);
    for (const std::vector<std::int64_t>& part : open) {
      ctx_.check_cancelled();
      rows.insert(rows.end(), part.begin(), part.end());
    }
    return rows;
  }

  /// Of equal rows in one component the first has the lightest edge.
  OpenRows uncertain_of_groups() const {
    const std::int64_t groups = growth_.places.groups();
    OpenRows found(static_cast<std::size_t>((groups + kTaskRows - 1) / kTaskRows));
    core::parallel_for(ctx_, std::ssize(found), [&](std::int64_t task, int /*worker*/) {
      for (std::int64_t group = task * kTaskRows; group < std::min(groups, (task + 1) * kTaskRows); ++group) {
        const bool is_whole = growth_.group_label(group) >= 0;
        for (const std::int64_t row : growth_.places.members(group)) {
          if (is_uncertain(row)) found[static_cast<std::size_t>(task)].push_back(row);
          if (is_whole) break;
        }
      }
    });
    return found;
  }

  /// Searches for the rows that are uncertain.
  void search_uncertain(OpenRows open) {
    std::vector<std::int64_t> rows = uncertain_rows(std::move(open));
    if (rows.empty()) return;
    core::Poll poll(ctx_);
    if (growth_.places.in_tree()) return search_in_tree(rows, poll);
    search_first(by_screens(), most_promising(rows, poll), rows, poll);
    by_screens().search(rows);
  }

  void search_in_tree(std::vector<std::int64_t>& rows, core::Poll& poll) {
    if (!in_tree_) in_tree_ = other_rows_in_tree(ctx_, growth_);
    in_tree_->relabel();
    search_first(*in_tree_, most_promising(rows, poll), rows, poll);
    const bool can_screen = may_screen(ctx_, growth_.task);
    const bool can_leave_out = InnerBoxes::serve(growth_.task);
    if (std::ssize(rows) < kFewSearched || !(can_screen || can_leave_out)) return in_tree_->search(rows);
    double pairs = try_tree(rows, poll);
    const bool pays = pairs * static_cast<double>(rows.size()) > kManyPairs * static_cast<double>(n_);
    if (can_leave_out && pays && leave_out(rows, poll)) pairs = try_tree(rows, poll);
    const bool is_apart = pairs <= static_cast<double>(growth_.places.groups()) / kScreenGain;
    (is_apart || !can_screen ? *in_tree_ : by_screens()).search(rows);
  }

  OtherRows& by_screens() {
    if (!by_screens_) by_screens_ = other_rows_by_screens(ctx_, growth_);
    return *by_screens_;
  }

  /// Searches for some of the rows; then those that are still uncertain are left.
  void search_first(OtherRows& others, const std::vector<std::int64_t>& some, std::vector<std::int64_t>& rows,
                    core::Poll& poll) const {
    others.search(some);
    std::erase_if(rows, [&](std::int64_t row) {
      poll.step();
      return !is_uncertain(row);
    });
  }

  /// Searches for some of the rows in the tree. Returns with how many rows each was compared.
  double try_tree(std::vector<std::int64_t>& rows, core::Poll& poll) {
    const std::vector<std::int64_t> some = spread(rows);
    const std::int64_t before = in_tree_->pairs();
    search_first(*in_tree_, some, rows, poll);
    return static_cast<double>(in_tree_->pairs() - before) / static_cast<double>(std::max<std::size_t>(some.size(), 1));
  }

  /// Leaves rows out of the tree that have no edge of use to most of the rows; the others are searched for before.
  /// Returns whether there are any.
  bool leave_out(std::vector<std::int64_t>& rows, core::Poll& poll) {
    if (rows.empty()) return false;
    const auto limit_of = [&](std::int64_t row) { return growth_.edges.limit(label(row)); };
    std::vector<double> limits;
    limits.reserve(rows.size());
    for (const std::int64_t row : rows) {
      poll.step();
      limits.push_back(limit_of(row));
    }
    const auto at = limits.end() - 1 - std::ssize(limits) / kShare;
    std::nth_element(limits.begin(), at, limits.end(), [&](double a, double b) {
      poll.step();
      return a < b;
    });
    const double max_core = *at;
    if (!(max_core < kInfinity)) return false;
    std::vector<std::int64_t> some;
    some.reserve(rows.size() / kShare);
    for (const std::int64_t row : rows) {
      poll.step();
      if (limit_of(row) > max_core) some.push_back(row);
    }
    search_first(*in_tree_, some, rows, poll);
    if (rows.empty()) return false;
    in_tree_->leave_out(max_core);
    return true;
  }

  /// Some of many rows, in their order.
  std::vector<std::int64_t> spread(const std::vector<std::int64_t>& rows) const {
    const std::int64_t step = std::max(kShare, std::ssize(rows) / kMaxTried);
    std::vector<std::int64_t> some;
    some.reserve(static_cast<std::size_t>(std::ssize(rows) / step + 1));
    for (std::int64_t i = 0; i < std::ssize(rows); i += step) some.push_back(rows[static_cast<std::size_t>(i)]);
    return some;
  }

  /// Of each component the row with the least floor: what it finds spares others their search.
  std::vector<std::int64_t> most_promising(const std::vector<std::int64_t>& rows, core::Poll& poll) {
    const core::RawVector<double>& floor = growth_.bounds.floor;
    promising_.resize(static_cast<std::size_t>(n_));
    for (const std::int64_t row : rows) {
      poll.step();
      promising_[static_cast<std::size_t>(label(row))] = -1;
    }
    for (const std::int64_t row : rows) {
      poll.step();
      std::int64_t& best = promising_[static_cast<std::size_t>(label(row))];
      if (best < 0 || floor[static_cast<std::size_t>(row)] < floor[static_cast<std::size_t>(best)]) best = row;
    }
    std::vector<std::int64_t> chosen;
    for (const std::int64_t row : rows) {
      poll.step();
      if (promising_[static_cast<std::size_t>(label(row))] == row) chosen.push_back(row);
    }
    return chosen;
  }

  void join(std::vector<TreeEdge>& tree) {
    const std::size_t before = tree.size();
    growth_.components.join(ctx_, growth_.edges, growth_.places, tree);
    if (tree.size() == before) throw Error(ErrorCode::internal, "spanning tree: a round joined no components");
  }

  const Context& ctx_;
  std::int64_t n_;
  std::int64_t k_;
  Growth growth_;
  core::RawVector<std::int64_t> next_;       // [n] the first entry of each list that may be in another component
  core::RawVector<std::int64_t> promising_;  // [n] of the component with that label
  bool listed_in_order_;                     // lists have the order of edges
  std::unique_ptr<OtherRowsInTree> in_tree_;
  std::unique_ptr<OtherRows> by_screens_;
  std::int64_t largest_ = -1;
};

}  // namespace

void spanning_tree(const Context& ctx, const SpanningTask& task, kernels::SpanningResult& result) {
  const std::int64_t n = task.search.queries.rows();
  const kernels::Prepared& index = *task.search.index;
  const bool in_tree = task.search.method == Method::kdtree;
  const auto shape = in_tree ? task.search.tree->shape_of(ctx, index) : nullptr;
  const Places as_they_are(index);
  std::optional<Places> in_order;
  if (in_tree) in_order.emplace(ctx, index, shape->order);
  const Places& places = in_tree ? *in_order : as_they_are;
  make_keys(ctx, task, task.in_tree_order ? places : as_they_are);
  if (in_tree && !task.in_tree_order) move_lists(ctx, task, places);
  const core::RawVector<double> core_keys = core_keys_of(ctx, task, places, result);
  result.edges.reserve(static_cast<std::size_t>(n - 1));
  core::prefer_large_pages(result.edges.data(), static_cast<std::size_t>(n - 1) * sizeof(TreeEdge));
  Boruvka(ctx, task, places, core_keys).run(result.edges);
  sort_edges(ctx, result.edges);
}

std::uint64_t spanning_tree_bytes(const Context& ctx, const SpanningTask& task) {
  const std::int64_t n = task.search.queries.rows();
  const auto rows = static_cast<std::uint64_t>(n);
  std::uint64_t bytes = Components::bytes(n) + LightestEdges::bytes(n) + RowBounds::bytes(n);
  bytes += rows * 6 * sizeof(std::int64_t);  // labels of groups, places in lists, rows that are searched (which grow)
  if (task.search.method == Method::kdtree && InnerBoxes::serve(task))
    bytes += rows * 2 * sizeof(double);  // limits of rows, and rows that come first
  bytes += rows * sizeof(double);        // core keys by place
  if (task.search.method == Method::kdtree) bytes += Places::bytes(n) + rows;
  const std::uint64_t wide =
      task.search.metric == Metric::minkowski ? WideRows::bytes(task.search.queries, task.search.metric) : 0;
  const bool in_tree = task.search.method == Method::kdtree;
  if (in_tree) bytes += other_rows_in_tree_bytes(ctx, task);
  if (!in_tree || may_screen(ctx, task)) bytes += other_rows_by_screens_bytes(ctx, task);
  return std::max(wide, bytes);
}

}  // namespace vicinal::cpu
