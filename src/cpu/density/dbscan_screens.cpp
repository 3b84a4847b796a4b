// The searches of DBSCAN by brute force: the fused search with collectors that need no more of a row than they have to.
//   core    a query is done when its neighbors weigh enough.
//   join    a query is done if it is no core row, and all are when one component is left. A row that is joined to the
//           query already is passed over before its key is computed. Some rows search before all do.
//   border  a row is passed over unless its number is below the one that is found already.
// Equal rows are joined first where their key is 0, as of every metric but cosine (rows of zeros) and inner_product;
// of those each member is looked at.
#include <atomic>
#include <limits>
#include <span>
#include <vector>

#include "core/infinity.hpp"
#include "core/poll.hpp"
#include "cpu/density/dbscan.hpp"
#include "cpu/nearest/collector.hpp"
#include "cpu/nearest/gathered.hpp"
#include "cpu/nearest/nearest.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kUnnumbered = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kFirstRows = 64;
constexpr std::int64_t kMostQueriesOfARound = 4096;  // of a search that collects no lists (cpu/nearest/sizes.cpp)

kernels::NearestTask counting_task(const kernels::DbscanTask& task) {
  kernels::NearestTask search = task.search;
  search.self = false;  // collectors know their rows
  search.collect = kernels::Collect::count;
  search.k = 0;
  return search;
}

class SelectiveCollector : public Collector {
 public:
  SelectiveCollector(DbscanRun& run, const Candidates& candidates) : run_(run), candidates_(candidates) {}
  void begin(std::int64_t /*begin*/, std::int64_t /*end*/) override {}
  bool is_selective() const override { return true; }
  void finish(std::int64_t /*query*/) override {}
  void absorb(const Collector& /*other*/) override {}  // parts are not searched apart

 protected:
  [[nodiscard]] bool is_core(std::int64_t row) const { return run_.result.core[static_cast<std::size_t>(row)] != 0; }

  DbscanRun& run_;
  const Candidates& candidates_;
};

class Weights final : public SelectiveCollector {
 public:
  using SelectiveCollector::SelectiveCollector;

  void begin(std::int64_t begin, std::int64_t end) override {
    begin_ = begin;
    weights_.resize(static_cast<std::size_t>(end - begin));
    for (std::int64_t row = begin; row < end; ++row) of(row).start(run_.rule, row);
  }
  double limit(std::int64_t query) const override {
    return weights_[static_cast<std::size_t>(query - begin_)].suffices(run_.rule) ? -kInfinity : run_.task.limit;
  }
  void offer(std::int64_t query, double /*key*/, std::int64_t distinct) override {
    for (const std::int64_t row : candidates_.members(distinct)) {
      if (row == query) continue;
      of(query).add(run_.rule, row);
      if (of(query).suffices(run_.rule)) return;
    }
  }
  void finish(std::int64_t query) override {
    run_.result.core[static_cast<std::size_t>(query)] = of(query).is_enough(run_.rule) ? 1 : 0;
  }

 private:
  NeighborhoodWeight& of(std::int64_t query) { return weights_[static_cast<std::size_t>(query - begin_)]; }

  std::int64_t begin_ = 0;
  std::vector<NeighborhoodWeight> weights_;
};

class Unions final : public SelectiveCollector {
 public:
  Unions(DbscanRun& run, const Candidates& candidates, bool joined_groups, std::int64_t components)
      : SelectiveCollector(run, candidates), joined_groups_(joined_groups), components_(components) {}

  /// The rows that queries are from now on; none: the table's.
  void ask(std::span<const std::int64_t> rows) { rows_ = rows; }
  [[nodiscard]] std::int64_t components() const { return components_.load(std::memory_order_relaxed); }

  double limit(std::int64_t query) const override {
    const bool is_done = !is_core(row_of(query)) || components() <= 1;
    return is_done ? -kInfinity : run_.task.limit;
  }
  bool wants(std::int64_t query, std::int64_t distinct) const override {
    for (const std::int64_t row : candidates_.members(distinct)) {
      if (is_core(row) && !run_.forest.are_joined(row, row_of(query))) return true;
      if (joined_groups_) return false;
    }
    return false;
  }
  void offer(std::int64_t query, double /*key*/, std::int64_t distinct) override {
    for (const std::int64_t row : candidates_.members(distinct)) {
      if (is_core(row) && run_.forest.unite(row, row_of(query))) {
        components_.fetch_sub(1, std::memory_order_relaxed);
      }
      if (joined_groups_) return;
    }
  }

 private:
  [[nodiscard]] std::int64_t row_of(std::int64_t query) const {
    return rows_.empty() ? query : rows_[static_cast<std::size_t>(query)];
  }

  bool joined_groups_;
  std::atomic<std::int64_t> components_;
  std::span<const std::int64_t> rows_;
};

class Numbers final : public SelectiveCollector {
 public:
  Numbers(DbscanRun& run, const Candidates& candidates, const std::vector<std::int64_t>& group_numbers)
      : SelectiveCollector(run, candidates), group_numbers_(group_numbers) {}

  double limit(std::int64_t query) const override {
    return is_core(query) || label(query) == 0 ? -kInfinity : run_.task.limit;
  }
  bool wants(std::int64_t query, std::int64_t distinct) const override {
    const std::int64_t number = group_numbers_[static_cast<std::size_t>(distinct)];
    return number != kUnnumbered && (label(query) < 0 || number < label(query));
  }
  void offer(std::int64_t query, double /*key*/, std::int64_t distinct) override {
    if (wants(query, distinct)) {
      run_.result.labels[static_cast<std::size_t>(query)] = group_numbers_[static_cast<std::size_t>(distinct)];
    }
  }

 private:
  [[nodiscard]] std::int64_t label(std::int64_t row) const { return run_.result.labels[static_cast<std::size_t>(row)]; }

  const std::vector<std::int64_t>& group_numbers_;
};

class DbscanScreens final : public DbscanSearches {
 public:
  explicit DbscanScreens(DbscanRun& run)
      : run_(run), search_(counting_task(run.task)), candidates_(search_), groups_(search_.index->distinct_rows()) {}

  void find_core_rows() override {
    Weights weights(run_, candidates_);
    find(weights);
  }

  void join_core_rows() override {
    const bool joins_groups = search_.metric != Metric::cosine && search_.metric != Metric::inner_product;
    core::Poll poll(run_.ctx);
    std::int64_t components = 0;
    for (const std::uint8_t core : run_.result.core) components += core;
    for (std::int64_t distinct = 0; distinct < groups_ && joins_groups; ++distinct) {
      const auto members = candidates_.members(distinct);
      if (run_.result.core[static_cast<std::size_t>(members.front())] == 0) continue;
      for (const std::int64_t row : members) {
        poll.step();
        components -= run_.forest.unite(members.front(), row) ? 1 : 0;
      }
    }
    if (components <= 1) return;
    Unions unions(run_, candidates_, joins_groups, components);
    join_some(unions);
    if (unions.components() > 1) find(unions);
  }

  void label_border_rows() override {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(groups_), kUnnumbered);
    core::Poll poll(run_.ctx);
    for (std::int64_t distinct = 0; distinct < groups_; ++distinct) {
      std::int64_t& least = numbers[static_cast<std::size_t>(distinct)];
      for (const std::int64_t row : candidates_.members(distinct)) {
        poll.step();
        if (run_.result.core[static_cast<std::size_t>(row)] == 0) continue;
        least = std::min(least, run_.result.labels[static_cast<std::size_t>(row)]);
      }
    }
    Numbers found(run_, candidates_, numbers);
    find(found);
  }

 private:
  /// A few core rows first: what they join with a large limit is passed over by all others.
  void join_some(Unions& unions) {
    std::vector<std::int64_t> rows;
    const auto n = static_cast<std::int64_t>(run_.result.core.size());
    for (std::int64_t i = 0; i < kFirstRows; ++i) {
      const std::int64_t row = i * n / kFirstRows;
      if (run_.result.core[static_cast<std::size_t>(row)] != 0 && (rows.empty() || rows.back() != row)) {
        rows.push_back(row);
      }
    }
    if (rows.empty()) return;
    Gathered gathered;
    gathered.take(run_.ctx, search_.queries, rows);
    kernels::NearestTask search = search_;
    search.queries = gathered.view();
    SearchStats stats;
    unions.ask(rows);
    nearest(run_.ctx, search, unions, stats);
    unions.ask({});
  }

  void find(Collector& collector) {
    SearchStats stats;
    nearest(run_.ctx, search_, collector, stats);
  }

  DbscanRun& run_;
  kernels::NearestTask search_;
  Candidates candidates_;
  std::int64_t groups_;
};

}  // namespace

std::unique_ptr<DbscanSearches> dbscan_by_screens(DbscanRun& run) {
  return std::make_unique<DbscanScreens>(run);
}

std::uint64_t dbscan_by_screens_bytes(const Context& ctx, const kernels::DbscanTask& task) {
  const std::int64_t n = task.search.queries.rows();
  return nearest_scratch(ctx, counting_task(task)) + static_cast<std::uint64_t>(n) * sizeof(std::int64_t) +
         static_cast<std::uint64_t>(std::min(n, kMostQueriesOfARound)) * sizeof(NeighborhoodWeight) +
         static_cast<std::uint64_t>(kFirstRows * task.search.queries.cols()) * sizeof(double);
}

}  // namespace vicinal::cpu
