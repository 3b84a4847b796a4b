// See other_rows.hpp. THE BOUND: an edge's key is at least the pair's key over the divisor and at least both core keys;
// division rounds monotonically, so a box whose key over the divisor is above the limit holds no edge that is lighter
// or as light. A quotient that rounds to the limit is below the next float after it, so that the pair's key is below
// that float times the divisor, and, being a float, not above the rounded product.
// Which rows are searched first, and what other threads have found by then, decides how much is looked at, and never
// what is found: a component's lightest edge is unique.
#include "cpu/density/other_rows.hpp"

#include <cmath>

#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "core/table_access.hpp"
#include "cpu/density/gathered.hpp"
#include "cpu/nearest/nearest.hpp"
#include "cpu/nearest/tree/walk.hpp"
#include "cpu/nearest/wide_rows.hpp"

namespace vicinal::cpu {

void Pursuit::offer(Growth& growth, double pair_key, std::int64_t group) {
  if (growth.group_label(group) == label_) return;
  const std::span<const std::int64_t> members = growth.places.members(group);
  const double key = growth.key(core_, growth.core(members.front()), pair_key);
  if (key > growth.edges.limit(label_) || (other_ >= 0 && key > key_)) return;
  // Rows of members ascend.
  const auto comes_too_late = [&](std::int64_t place) {
    return other_ >= 0 && key == key_ && growth.places.row(place) >= growth.places.row(other_);
  };
  if (comes_too_late(members.front())) return;
  for (const std::int64_t place : members) {
    if (growth.components.label(place) == label_) continue;
    if (comes_too_late(place)) return;
    key_ = key;
    other_ = place;
    growth.edges.lower(label_, key);
    return;
  }
}

void Pursuit::finish(Growth& growth) const {
  const double limit = growth.edges.limit(label_);
  const auto row = static_cast<std::size_t>(row_);
  // What was passed over is above the limit of its time, which is not below the limit now.
  const bool is_lightest = other_ >= 0 && key_ <= limit;
  RowBounds& bounds = growth.bounds;
  bounds.floor[row] = std::max(bounds.floor[row], is_lightest ? key_ : std::nextafter(limit, kInfinity));
  bounds.other[row] = is_lightest ? other_ : -1;
  bounds.other_key[row] = key_;
  if (is_lightest) growth.edges.offer(label_, growth.edge(key_, row_, other_));
}

namespace {

constexpr std::int64_t kSearchesPerTask = 32;

class InTree final : public OtherRows {
 public:
  InTree(const Context& ctx, Growth& growth)
      : ctx_(ctx),
        growth_(growth),
        tree_(static_cast<const Tree&>(*growth.task.search.tree)),
        keys_(ctx, growth.task.search, tree_),
        labels_(children()),
        queries_(static_cast<std::size_t>(ctx.threads()), Query(padded())) {
    if (growth.core_keys.empty()) return;
    cores_.assign(children(), kInfinity);
    core::Poll poll(ctx_);
    from_the_leaves(tree_, [&](std::int64_t at) {
      double& least = cores_[static_cast<std::size_t>(at)];
      for_each_part(
          at, poll,
          [&](std::int64_t group) { least = std::min(least, growth_.core(growth_.places.members(group)[0])); },
          [&](std::int64_t child) { least = std::min(least, cores_[static_cast<std::size_t>(child)]); });
    });
  }

  void relabel() override {
    core::Poll poll(ctx_);
    from_the_leaves(tree_, [&](std::int64_t at) {
      constexpr std::int64_t kNone = -2;
      std::int64_t label = kNone;
      const auto add = [&](std::int64_t other) { label = label == kNone || label == other ? other : -1; };
      for_each_part(
          at, poll, [&](std::int64_t group) { add(growth_.group_label(group)); },
          [&](std::int64_t child) { add(labels_[static_cast<std::size_t>(child)]); });
      labels_[static_cast<std::size_t>(at)] = label;
    });
  }

  void search(std::span<const std::int64_t> rows) override {
    const auto size = static_cast<std::int64_t>(rows.size());
    core::parallel_for(ctx_, (size + kSearchesPerTask - 1) / kSearchesPerTask, [&](std::int64_t task, int worker) {
      Query& query = queries_[static_cast<std::size_t>(worker)];
      const auto first = static_cast<std::size_t>(task * kSearchesPerTask);
      const auto end = static_cast<std::size_t>(std::min(size, (task + 1) * kSearchesPerTask));
      if (pass_over(rows.subspan(first, end - first), query)) return;
      for (const std::int64_t row : rows.subspan(first, end - first)) {
        Visitor visitor{*this, Pursuit(growth_, row)};
        if (growth_.bounds.floor[static_cast<std::size_t>(row)] > growth_.edges.limit(visitor.pursuit.label()))
          continue;
        read(row, query.x);
        walk(ctx_, tree_, keys_, query.x.data(), visitor);
        visitor.pursuit.finish(growth_);
      }
    });
  }

 private:
  struct Query {
    explicit Query(std::int64_t d)
        : x(static_cast<std::size_t>(d)), low(static_cast<std::size_t>(d)), high(static_cast<std::size_t>(d)) {}

    std::vector<double> x;
    std::vector<double> low;  // of several rows
    std::vector<double> high;
  };

  void read(std::int64_t row, std::vector<double>& x) const {
    const std::int64_t of_table = growth_.places.row(row);
    core::widen_rows(growth_.task.search.queries, of_table, of_table + 1, x.data());
  }

  /// Passes over rows of one component that have no edge of use, if their box alone shows it. Rows that follow each
  /// other in the order of the tree are near each other, and most of a large component are inside of it.
  bool pass_over(std::span<const std::int64_t> rows, Query& query) {
    const std::int64_t label = growth_.components.label(rows.front());
    double core = kInfinity;
    std::fill(query.low.begin(), query.low.end(), kInfinity);
    std::fill(query.high.begin(), query.high.end(), -kInfinity);
    for (const std::int64_t row : rows) {
      if (growth_.components.label(row) != label) return false;
      core = std::min(core, growth_.core(row));
      read(row, query.x);
      for (std::size_t j = 0; j < query.x.size(); ++j) {
        query.low[j] = std::min(query.low[j], query.x[j]);
        query.high[j] = std::max(query.high[j], query.x[j]);
      }
    }
    const double limit = growth_.edges.limit(label);
    if (may_find(query, label, core, limit)) return false;
    for (const std::int64_t row : rows) {
      double& floor = growth_.bounds.floor[static_cast<std::size_t>(row)];
      floor = std::max(floor, std::nextafter(limit, kInfinity));
    }
    return true;
  }

  /// Whether a leaf may have an edge of use to a row between `low` and `high`, of a component and with a core key of at
  /// least `core`.
  bool may_find(const Query& query, std::int64_t label, double core, double limit) const {
    constexpr int kStack = (Tree::kMaxDepth + 2) * static_cast<int>(kTreeWidth);
    std::int64_t stack[kStack];
    int size = 0;
    stack[size++] = 0;
    for (std::int64_t opened = 1; size > 0; ++opened) {
      if (opened % 16 == 0) ctx_.check_cancelled();
      const Tree::Child& child = tree_.child(stack[--size]);
      if (child.size > 0) return true;
      alignas(64) double keys[kTreeWidth];
      keys_.boxes_of_box(query.low.data(), query.high.data(), tree_.boxes(child.at), kInfinity, keys);
      for (std::uint32_t lanes = tree_.lanes(child.at); lanes != 0; lanes &= lanes - 1) {
        const std::int64_t at = Tree::child_of(child.at, std::countr_zero(lanes));
        if (may_have(at, label, core, keys[std::countr_zero(lanes)], limit)) stack[size++] = at;
      }
    }
    return false;
  }

  /// Whether a child may have a row of another component whose edge is of use, by the key of its box.
  [[nodiscard]] bool may_have(std::int64_t child, std::int64_t label, double core, double key, double limit) const {
    const auto at = static_cast<std::size_t>(child);
    if (labels_[at] == label) return false;
    return growth_.key(core, cores_.empty() ? -kInfinity : cores_[at], key) <= limit;
  }

  struct Visitor {
    static constexpr bool kByPlace = true;
    InTree& search;
    Pursuit pursuit;

    [[nodiscard]] double limit() const { return pursuit.limit(search.growth_); }
    [[nodiscard]] bool enters(std::int64_t child, double key) const {
      return search.may_have(child, pursuit.label(), pursuit.core(), key, search.growth_.edges.limit(pursuit.label()));
    }
    void offer(double key, std::int64_t group) { pursuit.offer(search.growth_, key, group); }
  };

  [[nodiscard]] std::size_t children() const { return static_cast<std::size_t>(1 + tree_.nodes() * kTreeWidth); }
  [[nodiscard]] std::int64_t padded() const { return (tree_.cols() + 7) / 8 * 8; }
  /// Of a child the groups of a leaf, or the children of a node.
  template <class Group, class Child>
  void for_each_part(std::int64_t at, core::Poll& poll, const Group& group, const Child& child_of) const {
    const Tree::Child& child = tree_.child(at);
    for (std::int64_t i = 0; i < child.size; ++i) {
      poll.step();
      group(child.first + i);
    }
    if (child.size > 0) return;
    for (std::uint32_t lanes = tree_.lanes(child.at); lanes != 0; lanes &= lanes - 1) {
      child_of(Tree::child_of(child.at, std::countr_zero(lanes)));
    }
  }

  const Context& ctx_;
  Growth& growth_;
  const Tree& tree_;
  TreeKeys keys_;
  std::vector<std::int64_t> labels_;  // [children] the component of all their rows, or -1: several
  std::vector<double> cores_;         // [children] the least core key
  std::vector<Query> queries_;
};

constexpr std::int64_t kGatheredBytes = std::int64_t{32} << 20;
constexpr std::int64_t kSampleRows = 128;

std::int64_t rows_gathered(const TableView& table) {
  const std::int64_t row_bytes = table.cols() * size_of(table.dtype());
  return std::min(table.rows(), std::max<std::int64_t>(kGatheredBytes / row_bytes, 256));
}

kernels::NearestTask screened_task(const kernels::SpanningTask& task, const TableView& queries) {
  kernels::NearestTask search = task.search;
  search.queries = queries;
  search.self = false;
  search.collect = kernels::Collect::count;
  search.k = 0;
  return search;
}

class ByScreens final : public OtherRows {
 public:
  ByScreens(const Context& ctx, Growth& growth) : ctx_(ctx), growth_(growth) {}

  void relabel() override {}

  void search(std::span<const std::int64_t> rows) override {
    const TableView& table = growth_.task.search.queries;
    const auto most = static_cast<std::size_t>(rows_gathered(table));
    for (std::size_t begin = 0; begin < rows.size(); begin += most) {
      std::vector<std::int64_t> part;
      for (std::size_t i = begin; i < std::min(rows.size(), begin + most); ++i) {
        const double limit = growth_.edges.limit(growth_.components.label(rows[i]));
        if (!(growth_.bounds.floor[static_cast<std::size_t>(rows[i])] > limit)) part.push_back(rows[i]);
      }
      if (part.empty()) continue;
      bound_by_sample(part);
      gathered_.take(ctx_, table, part);
      Collecting collector(*this, part);
      SearchStats stats;
      nearest(ctx_, screened_task(growth_.task, gathered_.view()), collector, stats);
    }
  }

 private:
  class Collecting final : public Collector {
   public:
    Collecting(ByScreens& search, std::span<const std::int64_t> rows) : search_(search) {
      pursuits_.reserve(rows.size());
      for (const std::int64_t row : rows) pursuits_.emplace_back(search.growth_, row);
    }
    void begin(std::int64_t /*begin*/, std::int64_t /*end*/) override {}
    double limit(std::int64_t query) const override { return of(query).limit(search_.growth_); }
    bool is_selective() const override { return true; }
    bool wants(std::int64_t query, std::int64_t distinct) const override {
      return search_.growth_.group_label(distinct) != of(query).label();
    }
    void offer(std::int64_t query, double key, std::int64_t distinct) override {
      pursuits_[static_cast<std::size_t>(query)].offer(search_.growth_, key, distinct);
    }
    void finish(std::int64_t query) override { of(query).finish(search_.growth_); }
    void absorb(const Collector& /*other*/) override {}

   private:
    [[nodiscard]] const Pursuit& of(std::int64_t query) const { return pursuits_[static_cast<std::size_t>(query)]; }

    ByScreens& search_;
    std::vector<Pursuit> pursuits_;
  };

  // Without a limit every row would be ranked: components that have none get one from some rows spread over the table.
  void bound_by_sample(std::span<const std::int64_t> rows) {
    std::vector<std::int64_t> open;
    for (const std::int64_t row : rows) {
      const std::int64_t label = growth_.components.label(row);
      if (growth_.edges.limit(label) < kInfinity) continue;
      if (open.empty() || growth_.components.label(open.back()) != label) open.push_back(row);
    }
    const kernels::NearestTask& search = growth_.task.search;
    const std::int64_t n = growth_.components.rows();
    const std::int64_t size = std::min(n, kSampleRows);
    for (std::size_t begin = 0; begin < open.size(); begin += 1024) {
      std::vector<std::int64_t> both;
      for (std::int64_t i = 0; i < size; ++i) both.push_back(i * n / size);
      const std::size_t end = std::min(open.size(), begin + 1024);
      both.insert(both.end(), open.begin() + static_cast<std::ptrdiff_t>(begin),
                  open.begin() + static_cast<std::ptrdiff_t>(end));
      gathered_.take(ctx_, search.queries, both);
      const WideRows wide(ctx_, gathered_.view(), search.metric, search.p);
      core::parallel_for(ctx_, static_cast<std::int64_t>(end - begin), [&](std::int64_t at, int /*worker*/) {
        const std::int64_t row = both[static_cast<std::size_t>(size + at)];
        const std::int64_t label = growth_.components.label(row);
        for (std::int64_t i = 0; i < size; ++i) {
          const std::int64_t other = both[static_cast<std::size_t>(i)];
          if (growth_.components.label(other) == label) continue;
          const double key = growth_.key(growth_.core(row), growth_.core(other), wide.key(size + at, i));
          growth_.edges.offer(label, edge_of(key, row, other));
        }
      });
    }
  }

  const Context& ctx_;
  Growth& growth_;
  Gathered gathered_;
};

}  // namespace

std::unique_ptr<OtherRows> other_rows_in_tree(const Context& ctx, Growth& growth) {
  return std::make_unique<InTree>(ctx, growth);
}

std::unique_ptr<OtherRows> other_rows_by_screens(const Context& ctx, Growth& growth) {
  return std::make_unique<ByScreens>(ctx, growth);
}

std::uint64_t other_rows_bytes(const Context& ctx, const kernels::SpanningTask& task) {
  const TableView& table = task.search.queries;
  const auto n = static_cast<std::uint64_t>(table.rows());
  const auto d = static_cast<std::uint64_t>(table.cols());
  if (task.search.method == Method::kdtree) {
    // Children have a label and a core key.
    return child_count_bound(n) * 16 + static_cast<std::uint64_t>(ctx.threads()) * 3 * (d + 8) * sizeof(double);
  }
  const std::int64_t most = rows_gathered(table);
  const auto rows = static_cast<std::uint64_t>(most);
  const std::uint64_t sample = (kSampleRows + 1024) * d * 2 * sizeof(double);
  return rows * (d * static_cast<std::uint64_t>(size_of(table.dtype())) + sizeof(Pursuit) + 16) + sample +
         nearest_scratch(ctx, screened_task(task, table.slice(0, most)));
}

}  // namespace vicinal::cpu
