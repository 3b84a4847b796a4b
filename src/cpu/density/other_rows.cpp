// See other_rows.hpp. THE BOUND: an edge's key is at least the pair's key over the divisor and at least both core keys;
// division rounds monotonically, so a box whose key over the divisor is above the limit holds no edge that is lighter
// or as light. A quotient that rounds to the limit is below the next float after it, so that the pair's key is below
// that float times the divisor, and, being a float, not above the rounded product.
// Which rows are searched first, and what other threads have found by then, decides how much is looked at, and never
// what is found: a component's lightest edge is unique.
#include "cpu/density/other_rows.hpp"

#include <cmath>

#include "core/parallel.hpp"
#include "cpu/density/gathered.hpp"
#include "cpu/nearest/nearest.hpp"
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

std::unique_ptr<OtherRows> other_rows_by_screens(const Context& ctx, Growth& growth) {
  return std::make_unique<ByScreens>(ctx, growth);
}

std::uint64_t other_rows_by_screens_bytes(const Context& ctx, const kernels::SpanningTask& task) {
  const TableView& table = task.search.queries;
  const auto d = static_cast<std::uint64_t>(table.cols());
  const std::int64_t most = rows_gathered(table);
  const auto rows = static_cast<std::uint64_t>(most);
  const std::uint64_t sample = (kSampleRows + 1024) * d * 2 * sizeof(double);
  return rows * (d * static_cast<std::uint64_t>(size_of(table.dtype())) + sizeof(Pursuit) + 16) + sample +
         nearest_scratch(ctx, screened_task(task, table.slice(0, most)));
}

}  // namespace vicinal::cpu
