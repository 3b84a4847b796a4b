// See other_rows.hpp. THE BOUND: an edge's key is at least the pair's key over the divisor and at least both core keys;
// division rounds monotonically, so a box whose key over the divisor is above the limit holds no edge that is lighter
// or as light. A quotient that rounds to the limit is below the next float after it, so that the pair's key is below
// that float times the divisor, and, being a float, not above the rounded product.
// Which rows are searched first, and what other threads have found by then, decides how much is looked at, and never
// what is found: a component's lightest edge is unique.
#include "cpu/density/other_rows.hpp"

#include <algorithm>
#include <cmath>

#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "core/sort_on_threads.hpp"
#include "cpu/nearest/gathered.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/nearest.hpp"
#include "cpu/nearest/wide_rows.hpp"
#include "simd/kernels.hpp"

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

constexpr std::int64_t kGatheredBytes = std::int64_t{32} << 20;
constexpr std::int64_t kSampleRows = 128;

std::int64_t rows_gathered(const TableView& table) {
  const std::int64_t row_bytes = table.cols() * size_of(table.dtype());
  return std::min(table.rows(), std::max<std::int64_t>(kGatheredBytes / row_bytes, 256));
}

/// Rows that are compared in a tree may be compared by screens, too.
kernels::NearestTask screened_task(const kernels::SpanningTask& task, const TableView& queries) {
  kernels::NearestTask search = task.search;
  search.queries = queries;
  search.self = false;
  search.collect = kernels::Collect::count;
  search.k = 0;
  if (search.method == Method::kdtree) {
    search.method = Method::fused;
    search.tree = nullptr;
    search.kept_screens = 0;
    search.pruned = false;
  }
  return search;
}

/// All groups of equal rows but those of one component, and those whose core key is above a limit, as an index of their
/// own: of the rows of a large component most are near each other, and a screen that meets them lets them through; and
/// an edge is at least as heavy as the core keys of its rows.
class GroupsOfOthers {
 public:
  static constexpr std::int64_t kNone = -2;  // no component is left out
  static std::uint64_t bytes(std::int64_t rows) { return static_cast<std::uint64_t>(rows) * 4 * sizeof(std::int64_t); }

  void take(const Context& ctx, const Growth& growth, std::int64_t label, double limit) {
    const kernels::Prepared& all = *growth.task.search.index;
    const Places& places = growth.places;
    index_.table = all.table;
    index_.centre = all.centre;
    index_.largest = all.largest;
    index_.distinct.clear();
    index_.members.clear();
    index_.member_offsets.clear();
    groups_.clear();
    const auto most = static_cast<std::size_t>(places.groups());
    index_.distinct.reserve(most);
    index_.members.reserve(static_cast<std::size_t>(all.table.rows()));
    index_.member_offsets.reserve(most + 1);
    groups_.reserve(most);
    index_.member_offsets.push_back(0);
    core::Poll poll(ctx);
    for (std::int64_t group = 0; group < places.groups(); ++group) {
      poll.step();
      if (growth.group_label(group) == label) continue;
      if (growth.core(places.members(group).front()) > limit) continue;
      groups_.push_back(group);
      for (const std::int64_t place : places.members(group)) {
        poll.step();
        index_.members.push_back(places.row(place));
      }
      index_.distinct.push_back(index_.members[static_cast<std::size_t>(index_.member_offsets.back())]);
      index_.member_offsets.push_back(std::ssize(index_.members));
    }
  }
  [[nodiscard]] const kernels::Prepared& index() const noexcept { return index_; }
  /// The number of one of the index's distinct rows among all groups.
  [[nodiscard]] std::int64_t group(std::int64_t distinct) const noexcept {
    return groups_[static_cast<std::size_t>(distinct)];
  }

 private:
  kernels::Prepared index_;
  std::vector<std::int64_t> groups_;
};

class ByScreens final : public OtherRows {
 public:
  ByScreens(const Context& ctx, Growth& growth) : ctx_(ctx), growth_(growth) {}

  void relabel() override {}

  void search(std::span<const std::int64_t> rows) override {
    std::vector<std::int64_t> by_label(rows.begin(), rows.end());
    const auto label = [&](std::int64_t row) { return growth_.components.label(row); };
    core::sort_on_threads(ctx_, by_label, [&](std::int64_t a, std::int64_t b) {
      return label(a) != label(b) ? label(a) < label(b) : a < b;
    });
    core::Poll poll(ctx_);
    std::vector<std::int64_t> of_several;
    for (auto begin = by_label.begin(); begin != by_label.end();) {
      const auto end = std::find_if(begin, by_label.end(), [&](std::int64_t row) {
        poll.step();
        return label(row) != label(*begin);
      });
      if (end - begin < kRowsAlone) {
        of_several.insert(of_several.end(), begin, end);
      } else {
        others_.take(ctx_, growth_, label(*begin), growth_.edges.limit(label(*begin)));
        search_parts({begin, end}, &others_);
      }
      begin = end;
    }
    if (of_several.empty()) return;
    // The index's own rows are those of the groups, in their order, unless that is a tree's.
    const bool in_tree = growth_.places.in_tree();
    if (in_tree) others_.take(ctx_, growth_, GroupsOfOthers::kNone, kInfinity);
    search_parts(of_several, in_tree ? &others_ : nullptr);
  }

 private:
  /// As many rows of a component are searched for among the others alone.
  static constexpr std::int64_t kRowsAlone = 1024;

  class Collecting final : public Collector {
   public:
    Collecting(ByScreens& search, std::span<const std::int64_t> rows, const GroupsOfOthers* others)
        : search_(search), others_(others) {
      pursuits_.reserve(rows.size());
      for (const std::int64_t row : rows) pursuits_.emplace_back(search.growth_, row);
    }
    void begin(std::int64_t /*begin*/, std::int64_t /*end*/) override {}
    double limit(std::int64_t query) const override { return of(query).limit(search_.growth_); }
    bool is_selective() const override { return true; }
    bool wants(std::int64_t query, std::int64_t distinct) const override {
      return search_.growth_.group_label(group(distinct)) != of(query).label();
    }
    void offer(std::int64_t query, double key, std::int64_t distinct) override {
      pursuits_[static_cast<std::size_t>(query)].offer(search_.growth_, key, group(distinct));
    }
    void finish(std::int64_t query) override { of(query).finish(search_.growth_); }
    void absorb(const Collector& /*other*/) override {}

   private:
    [[nodiscard]] const Pursuit& of(std::int64_t query) const { return pursuits_[static_cast<std::size_t>(query)]; }
    [[nodiscard]] std::int64_t group(std::int64_t distinct) const {
      return others_ != nullptr ? others_->group(distinct) : distinct;
    }

    ByScreens& search_;
    const GroupsOfOthers* others_;  // null: all rows of the index
    std::vector<Pursuit> pursuits_;
  };

  /// As many rows at a time as are gathered. `others`: where they are searched for, or null: in the task's index.
  void search_parts(std::span<const std::int64_t> rows, const GroupsOfOthers* others) {
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
      gather(part);
      Collecting collector(*this, part, others);
      kernels::NearestTask task = screened_task(growth_.task, gathered_.view());
      if (others != nullptr) {
        task.index = &others->index();
        task.kept_screens = 0;
        task.pruned = false;
      }
      SearchStats stats;
      nearest(ctx_, task, collector, stats);
    }
  }

  void gather(const std::vector<std::int64_t>& places) {
    std::vector<std::int64_t> rows;
    rows.reserve(places.size());
    for (const std::int64_t place : places) rows.push_back(growth_.places.row(place));
    gathered_.take(ctx_, growth_.task.search.queries, rows);
  }

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
      gather(both);
      const WideRows wide(ctx_, gathered_.view(), search.metric, search.p);
      core::parallel_for(ctx_, static_cast<std::int64_t>(end - begin), [&](std::int64_t at, int /*worker*/) {
        const std::int64_t row = both[static_cast<std::size_t>(size + at)];
        const std::int64_t label = growth_.components.label(row);
        for (std::int64_t i = 0; i < size; ++i) {
          const std::int64_t other = both[static_cast<std::size_t>(i)];
          if (growth_.components.label(other) == label) continue;
          const double key = growth_.key(growth_.core(row), growth_.core(other), wide.key(size + at, i));
          growth_.edges.offer(label, growth_.edge(key, row, other));
        }
      });
    }
  }

  const Context& ctx_;
  Growth& growth_;
  Gathered gathered_;
  GroupsOfOthers others_;
};

}  // namespace

bool has_screens(const Context& ctx, const kernels::SpanningTask& task) {
  return !screen_types(screened_task(task, task.search.queries), simd_kernels(ctx.isa())).empty();
}

std::unique_ptr<OtherRows> other_rows_by_screens(const Context& ctx, Growth& growth) {
  return std::make_unique<ByScreens>(ctx, growth);
}

std::uint64_t other_rows_by_screens_bytes(const Context& ctx, const kernels::SpanningTask& task) {
  const TableView& table = task.search.queries;
  const auto d = static_cast<std::uint64_t>(table.cols());
  const std::int64_t most = rows_gathered(table);
  const auto rows = static_cast<std::uint64_t>(most);
  const std::uint64_t sample = (kSampleRows + 1024) * d * 2 * sizeof(double);
  return GroupsOfOthers::bytes(table.rows()) + static_cast<std::uint64_t>(table.rows()) * sizeof(std::int64_t) * 2 +
         rows * (d * static_cast<std::uint64_t>(size_of(table.dtype())) + sizeof(Pursuit) + 24) + sample +
         nearest_scratch(ctx, screened_task(task, table.slice(0, most)));
}

}  // namespace vicinal::cpu
