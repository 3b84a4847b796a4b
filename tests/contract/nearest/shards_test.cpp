// knn, radius and count of a table that is divided among ranks, against the single process, bit for bit (contract
// clauses 4 and 26): any number of ranks, cuts anywhere, ranks of different instruction sets and methods; the bytes
// that are sent, and how ranks fail together.
#include "vicinal/shards.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "data.hpp"
#include "device_check.hpp"
#include "parts_check.hpp"
#include "ranks.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

/// A whole search, and how it is divided.
struct Divided {
  TableView table;
  std::optional<TableView> queries;  ///< none: the table within itself
  std::vector<std::int64_t> cuts;
  std::vector<std::int64_t> query_cuts;  ///< those of the table, if it is searched within itself
  std::vector<std::uint64_t> filter;
  std::vector<std::int64_t> exclude;
  std::vector<double> radii;
  std::uint64_t turn = 0;
  bool one_at_a_time = false;   ///< shards that travel are searched one at a time
  int queries_that_travel = 0;  ///< searches whose plan says so
  int whole_tables = 0;         ///< and those of ranks that hold the whole table

  [[nodiscard]] int ranks() const { return static_cast<int>(cuts.size()) - 1; }
  [[nodiscard]] std::int64_t m() const { return queries ? queries->rows() : table.rows(); }

  /// The options of the whole search.
  template <class Options>
  [[nodiscard]] Options whole(Options options) const {
    options.filter = filter;
    options.exclude = exclude;
    if constexpr (std::is_same_v<Options, RadiusOptions>) options.radii = radii;
    return options;
  }

  /// Calls body(rank, context, communicator, shard, first row, queries or null, options) on each rank.
  template <class Options, class Body>
  void run(const Options& options, const std::string& what, const Body& body) const {
    const OneShardAtATime environment(one_at_a_time);
    const auto thrown = run_ranks(ranks(), [&](Communicator& own) {
      const auto rank = static_cast<std::size_t>(own.rank());
      Options mine = options;
      const auto first = static_cast<std::size_t>(query_cuts[rank]);
      const std::size_t count = static_cast<std::size_t>(query_cuts[rank + 1]) - first;
      const auto here = filter_from(filter, cuts[rank], cuts[rank + 1]);
      mine.filter = here;
      if (!exclude.empty()) mine.exclude = std::span(exclude).subspan(first, count);
      if constexpr (std::is_same_v<Options, RadiusOptions>) {
        if (!radii.empty()) mine.radii = std::span(radii).subspan(first, count);
      }
      constexpr Method kMethods[] = {Method::automatic, Method::direct, Method::kdtree, Method::fused};
      const Method method = kMethods[(rank + turn) % std::size(kMethods)];
      const TableView shard = table.slice(cuts[rank], cuts[rank + 1]);
      mine.method = serves(method, options.metric) && !shard.is_block_source() ? method : Method::automatic;
      const TableView asked = queries ? queries->slice(query_cuts[rank], query_cuts[rank + 1]) : TableView();
      body(rank, context_of_rank(own.rank(), turn), own, shard, cuts[rank], queries ? &asked : nullptr, mine);
    });
    expect_no_error(thrown, what);
  }

  /// What all ranks found, in their order. `search(ctx, communicator, shard, first_row, [queries,] options)`.
  template <class Options, class Search>
  [[nodiscard]] NeighborGraph found(const Options& options, const std::string& what, const Search& search) {
    std::vector<NeighborGraph> graphs(static_cast<std::size_t>(ranks()));
    run(options, what,
        [&](std::size_t rank, const Context& ctx, Communicator& own, const TableView& shard, std::int64_t first,
            const TableView* asked, const Options& mine) {
          graphs[rank] =
              asked != nullptr ? search(ctx, own, shard, first, *asked, mine) : search(ctx, own, shard, first, mine);
        });
    const auto says = [&](const char* words) { return graphs[0].plan.reason.find(words) != std::string::npos ? 1 : 0; };
    queries_that_travel += says("all queries are sent");
    whole_tables += says("each rank searches all of them at once");
    NeighborGraph all = graphs[0];
    for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
      const NeighborGraph& graph = graphs[rank];
      EXPECT_EQ(graph.rows, query_cuts[rank + 1] - query_cuts[rank]) << what;
      EXPECT_EQ(graph.table_rows, table.rows()) << what;
      EXPECT_EQ(graph.is_csr(), all.is_csr()) << what;
      if (rank == 0) continue;
      const std::int64_t before = std::ssize(all.ids);
      all.rows += graph.rows;
      all.ids.insert(all.ids.end(), graph.ids.begin(), graph.ids.end());
      all.distances.insert(all.distances.end(), graph.distances.begin(), graph.distances.end());
      for (std::size_t i = 1; i < graph.offsets.size(); ++i) all.offsets.push_back(before + graph.offsets[i]);
    }
    return all;
  }
  [[nodiscard]] std::vector<std::int64_t> counted(const RadiusOptions& options, const std::string& what) const {
    std::vector<std::vector<std::int64_t>> counts(static_cast<std::size_t>(ranks()));
    run(options, what,
        [&](std::size_t rank, const Context& ctx, Communicator& own, const TableView& shard, std::int64_t first,
            const TableView* asked, const RadiusOptions& mine) {
          counts[rank] = asked != nullptr ? count(ctx, own, shard, first, *asked, mine).counts
                                          : count(ctx, own, shard, first, mine).counts;
        });
    std::vector<std::int64_t> all;
    for (const auto& part : counts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  [[nodiscard]] NeighborGraph knn_of_whole(const Context& ctx, const KnnOptions& options) const {
    return queries ? knn(ctx, table, *queries, whole(options)) : knn(ctx, table, whole(options));
  }
  [[nodiscard]] NeighborGraph radius_of_whole(const Context& ctx, const RadiusOptions& options) const {
    return queries ? radius(ctx, table, *queries, whole(options)) : radius(ctx, table, whole(options));
  }
};

struct KnnOfRanks {
  template <class... Arguments>
  NeighborGraph operator()(const Context& ctx, Communicator& own, const Arguments&... arguments) const {
    return knn(ctx, own, arguments...);
  }
};
struct RadiusOfRanks {
  template <class... Arguments>
  NeighborGraph operator()(const Context& ctx, Communicator& own, const Arguments&... arguments) const {
    return radius(ctx, own, arguments...);
  }
};

/// Queries cut for so many ranks: the first and the last one may have none.
std::vector<std::int64_t> query_cuts_of(std::int64_t m, int ranks, std::uint64_t turn) {
  std::vector<std::int64_t> cuts = {0};
  for (int rank = 1; rank < ranks; ++rank) {
    const std::int64_t even = rank * m / ranks;
    cuts.push_back(turn % 3 == 0 ? even : std::max(cuts.back(), rank == 1 ? 0 : rank == ranks - 1 ? m : even));
  }
  cuts.push_back(m);
  return cuts;
}

constexpr Metric kShardMetrics[] = {Metric::euclidean, Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                                    Metric::manhattan, Metric::chebyshev,   Metric::minkowski,     Metric::hamming};
constexpr DType kShardDTypes[] = {DType::uint8, DType::float16, DType::bfloat16, DType::float32, DType::float64};

TEST(NearestShards, TheSameBits) {
  constexpr Family kFamilies[] = {Family::integer_ties, Family::duplicates, Family::gaussian, Family::permutations,
                                  Family::mostly_duplicates};
  constexpr int kRanks[] = {1, 2, 3, 4, 7};
  const Context& ctx = context_of(available_isas().back(), 2);
  std::uint64_t turn = 0;
  int travelling = 0;
  int others = 0;
  int whole = 0;
  int alone = 0;
  for (const Metric metric : kShardMetrics) {
    for (const DType dtype : kShardDTypes) {
      for (int i = 0; i < 3; ++i) {
        if (is_left_out(++turn)) continue;
        const bool slow = metric == Metric::minkowski;
        const std::int64_t few = turn % 5 == 0 ? 1 : 9;
        const Shape shape = {slow ? 41 : 90, slow ? 3 : 5, i % 2 == 0 ? few : 60};
        const Rows rows = make_rows(kFamilies[turn % std::size(kFamilies)], shape, turn);
        const Layout layout = turn % 4 == 0 ? Layout::padded : (turn % 7 == 0 ? Layout::blocks : Layout::contiguous);
        const Stored table(rows.table, shape.d, dtype, layout);
        const Stored queries(rows.queries, shape.d, turn % 6 == 0 ? DType::float64 : dtype);
        Divided search;
        search.turn = turn;
        search.one_at_a_time = turn % 8 < 5;
        search.table = table.view();
        if (turn % 3 != 0) search.queries = queries.view();
        const int ranks = kRanks[(turn + turn / 5) % std::size(kRanks)];
        search.cuts = uneven_cuts(shape.n, ranks, turn);
        search.query_cuts = search.queries ? query_cuts_of(shape.m, ranks, turn / 3) : search.cuts;
        if (turn % 4 >= 2) search.filter.assign(static_cast<std::size_t>((shape.n + 63) / 64), 0x5b6db6db6db6db6dU);
        if (turn % 5 >= 3) {
          for (std::int64_t q = 0; q < search.m(); ++q) search.exclude.push_back(q % 4 == 0 ? -1 : q * 7 % shape.n);
        }
        const double p = slow ? std::vector<double>{3, 1.5, 1}[turn % 3] : 2;
        const std::string what = std::string(name_of(metric)) + " of " + std::string(name_of(dtype)) + ", " +
                                 std::to_string(ranks) + " ranks, turn " + std::to_string(turn);
        for (const std::int64_t k : {std::int64_t{1}, std::int64_t{12}, shape.n - 2}) {
          if (k > 12 && (!search.filter.empty() || i > 0)) continue;
          const KnnOptions options = {.k = k, .metric = metric, .p = p};
          expect_same(search.found(options, what, KnnOfRanks()), search.knn_of_whole(ctx, options), what);
        }
        const NeighborGraph some = search.knn_of_whole(ctx, {.k = 9, .metric = metric, .p = p});
        const double near = some.distances_of(some.rows / 2)[8];
        if (metric != Metric::inner_product && near < 0) continue;  // -0 of no distance
        RadiusOptions options = {.radius = near, .metric = metric, .p = p};
        options.order = turn % 2 == 0 ? RadiusOrder::key : RadiusOrder::id;
        if (turn % 4 == 1) {
          for (std::int64_t q = 0; q < search.m(); ++q)
            search.radii.push_back(q % 3 == 0 ? near : some.distances_of(q)[2]);
        }
        const NeighborGraph expected = search.radius_of_whole(ctx, options);
        expect_same(search.found(options, what, RadiusOfRanks()), expected, what + ", radius");
        std::vector<std::int64_t> counts;
        for (std::int64_t q = 0; q < search.m(); ++q) counts.push_back(std::ssize(expected.ids_of(q)));
        EXPECT_EQ(search.counted(options, what), counts) << what;
        search.radii.clear();
        const KnnOptions limited = {.k = 7, .metric = metric, .p = p, .max_radius = near};
        expect_same(search.found(limited, what, KnnOfRanks()), search.knn_of_whole(ctx, limited),
                    what + ", max_radius");
        travelling += search.queries_that_travel;
        others += search.queries && ranks > 1 ? 1 : 0;
        whole += search.whole_tables;
        alone += search.one_at_a_time && ranks > 1 && !search.queries ? 1 : 0;
        EXPECT_FALSE(search.one_at_a_time && search.whole_tables > 0) << what;
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(travelling, 10 / kSparse);
  EXPECT_GT(others * 3, travelling);
  EXPECT_GT(whole, 10 / kSparse);
  EXPECT_GT(alone, 5 / kSparse);
}

// Shards are searched with the keys that the lists have so far as bounds. Keys equal to a bound come first where their
// ids are smaller: rank 2 searches the shards of ranks 2, 1 and 0 in this order.
TEST(NearestShards, EqualKeysBelowABoundAreFound) {
  constexpr std::int64_t n = 240;
  const std::vector<std::int64_t> cuts = {0, 80, 160, n};
  for (const Metric metric : kShardMetrics) {
    for (const std::int64_t cols : {1, 3}) {
      for (const std::int64_t k : {5, 40}) {  // lists on the stack, and heaps
        Rows rows = make_rows(Family::integer_ties, {n, cols, 9}, 3);
        for (double& value : rows.table) value = value > 0 ? 1 : 2;  // many equal keys, and no row of zeros
        const std::string what = std::string(name_of(metric)) + ", k " + std::to_string(k);
        const Context ctx = Context::cpu({.threads = 1});
        KnnOptions options = {.k = k, .metric = metric};
        const NeighborGraph whole = knn(ctx, TableView(rows.table.data(), n, cols), options);
        for (const Method method : {Method::direct, Method::kdtree, Method::fused}) {
          if (!serves(method, metric)) continue;
          options.method = method;
          const OneShardAtATime environment(true);
          expect_no_error(run_ranks(3,
                                    [&](Communicator& own) {
                                      const auto rank = static_cast<std::size_t>(own.rank());
                                      const std::int64_t begin = cuts[rank];
                                      const TableView shard(rows.table.data() + begin * cols, 80, cols);
                                      const NeighborGraph found =
                                          knn(Context::cpu({.threads = 2}), own, shard, begin, options);
                                      const std::vector<std::int64_t> ids(whole.ids.begin() + begin * k,
                                                                          whole.ids.begin() + (begin + 80) * k);
                                      EXPECT_EQ(found.ids, ids) << what << ", " << name_of(method);
                                    }),
                          what);
        }
      }
    }
  }
}

// Rows whose distances are the same but for rounding: many have different keys, and the same root.
TEST(NearestShards, AreMergedByKeys) {
  constexpr std::int64_t kCols = 24;
  constexpr std::int64_t kTableRows = 600;
  constexpr std::int64_t kQueries = 120;
  const std::vector<double> rows = permuted_decimals(kTableRows, kCols, 7);
  std::vector<double> asked;
  for (std::int64_t i = 0; i < kQueries; ++i) asked.insert(asked.end(), kCols, 0.01 * static_cast<double>(i) + 0.005);
  Divided search;
  search.table = TableView(rows.data(), kTableRows, kCols);
  search.queries = TableView(asked.data(), kQueries, kCols);
  for (const int ranks : {2, 3, 7}) {
    search.cuts = uneven_cuts(kTableRows, ranks, 1);
    search.query_cuts = query_cuts_of(kQueries, ranks, 0);
    const KnnOptions options = {.k = 10};
    const NeighborGraph expected = search.knn_of_whole(context_of(Isa::baseline, 2), options);
    expect_same(search.found(options, "queries", KnnOfRanks()), expected, "ranks " + std::to_string(ranks));
  }
}

// Parts of all ranks that have queries, in any order.
TEST(NearestShards, PartsMergeToTheWhole) {
  constexpr std::int64_t n = 90;
  constexpr std::int64_t m = 13;
  const Rows rows = make_rows(Family::integer_ties, {n, 3, m}, 5);
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.table.data(), n, 3);
  const TableView queries(rows.queries.data(), m, 3);
  const std::vector<std::int64_t> cuts = {0, 3, 50, n};
  const std::vector<std::int64_t> query_cuts = {0, 6, 6, m};
  for (const bool self : {true, false}) {
    std::vector<NeighborPart> parts(3);
    const KnnOptions options{.k = 7};
    expect_no_error(run_ranks(3,
                              [&](Communicator& own) {
                                const auto rank = static_cast<std::size_t>(own.rank());
                                const TableView shard = table.slice(cuts[rank], cuts[rank + 1]);
                                const TableView asked = queries.slice(query_cuts[rank], query_cuts[rank + 1]);
                                parts[2 - rank] = self ? knn_part(ctx, own, shard, cuts[rank], options)
                                                       : knn_part(ctx, own, shard, cuts[rank], asked, options);
                              }),
                    "parts");
    if (!self) parts.erase(parts.begin() + 1);
    expect_same(merge(ctx, parts), self ? knn(ctx, table, options) : knn(ctx, table, queries, options), "merged");
    parts.pop_back();
    EXPECT_THROW(merge(ctx, parts), Error);
  }
  expect_same_error(run_ranks(2,
                              [&](Communicator& own) {
                                const TableView shard = table.slice(45 * own.rank(), 45 * own.rank() + 45);
                                (void)knn_part(ctx, own, shard, 45 * own.rank(), {.k = 3, .max_radius = 1});
                              }),
                    ErrorCode::invalid_argument, "rank 0: max_radius: leaves lists shorter than k, which only knn");
}

TEST(NearestShards, PartsWithinARadiusMergeToTheWhole) {
  constexpr std::int64_t n = 90;
  constexpr std::int64_t m = 13;
  const Rows rows = make_rows(Family::integer_ties, {n, 3, m}, 5);
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.table.data(), n, 3);
  const TableView queries(rows.queries.data(), m, 3);
  const std::vector<std::int64_t> cuts = {0, 3, 50, n};
  const std::vector<std::int64_t> query_cuts = {0, 6, 6, m};
  std::vector<double> radii;
  for (std::int64_t i = 0; i < n; ++i) radii.push_back(static_cast<double>(1 + i % 3));
  for (int turn = 0; turn < 16; ++turn) {
    const bool self = turn % 2 == 0;
    const OneShardAtATime environment(turn / 2 % 2 == 0);
    RadiusOptions options{.radius = 2, .order = turn / 4 % 2 == 0 ? RadiusOrder::key : RadiusOrder::id};
    const std::vector<std::int64_t>& of = self ? cuts : query_cuts;
    const std::span<const double> all = turn / 8 == 0 ? std::span<const double>() : std::span(radii);
    std::vector<NeighborPart> lists(3);
    std::vector<NeighborPart> counts(3);
    const std::string what = "turn " + std::to_string(turn);
    expect_no_error(
        run_ranks(3,
                  [&](Communicator& own) {
                    const auto rank = static_cast<std::size_t>(own.rank());
                    const Context mine = Context::cpu({.threads = 1});
                    const TableView shard = table.slice(cuts[rank], cuts[rank + 1]);
                    const TableView asked = queries.slice(query_cuts[rank], query_cuts[rank + 1]);
                    RadiusOptions within = options;
                    if (!all.empty()) {
                      within.radii = all.subspan(static_cast<std::size_t>(of[rank]),
                                                 static_cast<std::size_t>(of[rank + 1] - of[rank]));
                    }
                    lists[2 - rank] = self ? radius_part(mine, own, shard, cuts[rank], within)
                                           : radius_part(mine, own, shard, cuts[rank], asked, within);
                    counts[2 - rank] = self ? count_part(mine, own, shard, cuts[rank], within)
                                            : count_part(mine, own, shard, cuts[rank], asked, within);
                    const Plan plan = plan_count(mine, own, shard, cuts[rank], self ? nullptr : &asked, within);
                    EXPECT_EQ(plan.reason.find("all queries are sent") == std::string::npos, self) << plan.reason;
                  }),
        what);
    if (!self) {
      EXPECT_EQ(lists[1].offsets, std::vector<std::int64_t>{0}) << what;
      lists.erase(lists.begin() + 1);
      counts.erase(counts.begin() + 1);
    }
    options.radii = all.subspan(0, all.empty() ? 0 : static_cast<std::size_t>(self ? n : m));
    const NeighborGraph whole = self ? radius(ctx, table, options) : radius(ctx, table, queries, options);
    expect_same(merge(ctx, lists), whole, what);
    const std::vector<std::int64_t> counted = merge_counts(ctx, counts).counts;
    ASSERT_EQ(std::ssize(counted), whole.rows) << what;
    for (std::int64_t i = 0; i < whole.rows; ++i) {
      EXPECT_EQ(counted[static_cast<std::size_t>(i)], std::ssize(whole.ids_of(i))) << what;
    }
  }
}

// The lists of the ranks serve votes and means as they are.
TEST(NearestShards, VotesOfTheirLists) {
  constexpr std::int64_t n = 80;
  const Rows rows = make_rows(Family::integer_ties, {n, 3, 1}, 5);
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(i % 3);
  const Labels labels = encode_labels(values);
  const Context ctx = Context::cpu({.threads = 1});
  const TableView table(rows.table.data(), n, 3);
  const Vote whole = vote(ctx, knn(ctx, table, {.k = 5}), labels);
  const std::vector<std::int64_t> cuts = {0, 3, 50, n};
  expect_no_error(run_ranks(3,
                            [&](Communicator& own) {
                              const auto rank = static_cast<std::size_t>(own.rank());
                              const NeighborGraph graph =
                                  knn(ctx, own, table.slice(cuts[rank], cuts[rank + 1]), cuts[rank], {.k = 5});
                              const std::vector<std::int32_t> mine(whole.codes.begin() + cuts[rank],
                                                                   whole.codes.begin() + cuts[rank + 1]);
                              EXPECT_EQ(vote(ctx, graph, labels).codes, mine);
                            }),
                  "votes");
}

/// Calls of three ranks, which have rows 0 to 6, 7 to 30 and the rest of 60, and 2, 0 and 5 queries.
class NearestOfThreeRanks : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 60;
  static constexpr std::int64_t kCols = 3;
  static constexpr std::int64_t kQueries = 7;
  const std::vector<std::int64_t> cuts_ = {0, 7, 31, kRows};
  const std::vector<std::int64_t> query_cuts_ = {0, 2, 2, kQueries};
  Rows rows_ = make_rows(Family::gaussian, {kRows, kCols, kQueries}, 5);

  struct Call {
    Context ctx = Context::cpu({.threads = 2});
    std::vector<double> table;
    std::vector<double> queries;
    std::int64_t cols = kCols;
    std::int64_t first_row = 0;
    std::vector<std::uint64_t> filter;
    std::vector<std::int64_t> exclude;
    bool self = true;
    KnnOptions options{.k = 4};

    [[nodiscard]] TableView shard() const { return {table.data(), std::ssize(table) / cols, cols}; }
    [[nodiscard]] TableView asked() const { return {queries.data(), std::ssize(queries) / cols, cols}; }
  };

  [[nodiscard]] Call call_of(int rank) const {
    const auto at = static_cast<std::size_t>(rank);
    Call call;
    call.table.assign(rows_.table.begin() + cuts_[at] * kCols, rows_.table.begin() + cuts_[at + 1] * kCols);
    call.queries.assign(rows_.queries.begin() + query_cuts_[at] * kCols,
                        rows_.queries.begin() + query_cuts_[at + 1] * kCols);
    call.first_row = cuts_[at];
    return call;
  }
  std::vector<Thrown> run(const std::function<void(int rank, Call& call)>& change) const {
    return run_ranks(3, [&](Communicator& own) {
      Call call = call_of(own.rank());
      change(own.rank(), call);
      call.options.filter = call.filter;
      call.options.exclude = call.exclude;
      if (call.self) {
        (void)knn(call.ctx, own, call.shard(), call.first_row, call.options);
      } else {
        (void)knn(call.ctx, own, call.shard(), call.first_row, call.asked(), call.options);
      }
    });
  }
};

TEST_F(NearestOfThreeRanks, FailTogether) {
  const auto bad = ErrorCode::invalid_argument;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int failing = 0; failing < 3; ++failing) {
    const std::string rank = "rank " + std::to_string(failing) + ": ";
    const std::string row = std::to_string(cuts_[static_cast<std::size_t>(failing)] + 3);
    for (const bool self : {true, false}) {
      const auto at = [&](const std::function<void(Call&)>& change) {
        return run([&](int r, Call& call) {
          call.self = self;
          if (r == failing) change(call);
        });
      };
      expect_same_error(at([&](Call& call) { call.table[3 * kCols + 1] = nan; }), ErrorCode::bad_data,
                        rank + "table: row " + row + ", column 1 is not a finite number");
      expect_same_error(at([](Call& call) { call.ctx = call.ctx.with_memory_limit(100); }), ErrorCode::over_memory,
                        rank + "knn");
      expect_same_error(at([](Call& call) {
                          const CancelToken token;
                          token.cancel();
                          call.ctx = Context::cpu({.threads = 1, .cancel = token});
                        }),
                        ErrorCode::cancelled, rank);
      expect_same_error(at([](Call& call) { call.options.k = 0; }), bad, rank + "k: is 0, must be at least 1");
      expect_same_error(
          at([](Call& call) { call.options.method = Method::kdtree, call.options.metric = Metric::cosine; }), bad,
          rank + "method: kdtree does not serve the metric cosine");
      expect_same_error(at([](Call& call) { call.options.max_radius = -1; }), bad, rank + "max_radius: is negative");
      expect_same_error(at([](Call& call) { call.exclude.assign(999, 0); }), bad, rank + "exclude: 999 ids for ");
      expect_same_error(at([](Call& call) { call.filter.assign(3, 1); }), bad, rank + "filter: 3 words");
      expect_same_error(at([](Call& call) { call.table.clear(); }), bad, rank + "table: is empty, it has no rows");
      if (failing == 0) continue;
      expect_same_error(at([](Call& call) { call.options.k = 5; }), bad,
                        "k: is not the same on ranks 0 and " + std::to_string(failing));
      expect_same_error(at([](Call& call) { call.options.metric = Metric::manhattan; }), bad,
                        "metric: is not the same on ranks 0 and " + std::to_string(failing));
      expect_same_error(at([](Call& call) { call.filter.assign(1, 1); }), bad,
                        "filter: whether there is one: is not the same on ranks 0 and ");
      expect_same_error(at([](Call& call) { --call.first_row; }), bad, "first_row: is ");
      expect_same_error(at([&](Call& call) { call.self = !self; }), bad,
                        "queries: whether they are the rows of the table: is not the same on ranks 0 and ");
    }
  }
  const auto of_all = [&](bool self, const std::function<void(int rank, Call&)>& change) {
    return run([&](int r, Call& call) {
      call.self = self;
      change(r, call);
    });
  };
  const auto with_nan = [&](int r, Call& call) {
    if (r == 2) call.queries[3 * kCols] = nan;
  };
  expect_same_error(of_all(false, with_nan), ErrorCode::bad_data,
                    "rank 2: queries: row 5, column 0 is not a finite number");
  expect_same_error(of_all(false, [&](int r, Call& call) { with_nan(r, call), call.options.k = 20; }),
                    ErrorCode::bad_data, "rank 2: queries: row 5, column 0 is not a finite number");
  const auto set_k = [](std::int64_t k) { return [k](int, Call& call) { call.options.k = k; }; };
  expect_same_error(of_all(true, set_k(60)), bad,
                    "k: is 60, but at most 59 of the 60 table rows can be neighbors; a row is not its own neighbor");
  expect_no_error(of_all(true, set_k(59)), "59 neighbors");
  expect_same_error(of_all(false, set_k(61)), bad, "k: is 61, but at most 60 of the 60 table rows can be neighbors");
  expect_no_error(of_all(false, set_k(60)), "60 neighbors");
  // Row 3, which query 1 leaves out, is one of 3 that the filter admits.
  const auto filtered = [&](std::int64_t k) {
    return [k](int r, Call& call) {
      call.filter.assign(1, r == 0 ? 0b1001 : (r == 2 ? 1 : 0));
      if (r == 0) call.exclude = {-1, 3};
      call.options.k = k;
    };
  };
  const std::string why =
      " of the 60 table rows can be neighbors; the filter leaves out the rest; excluded rows do not";
  expect_same_error(of_all(false, filtered(3)), bad, "k: is 3, but at most 2" + why);
  expect_same_error(of_all(false, filtered(4)), bad, "k: is 4, but at most 2" + why);
  expect_no_error(of_all(false, filtered(2)), "2 neighbors");
  expect_same_error(of_all(false, [](int, Call& call) { call.queries.clear(); }), bad, "queries: no rank has any");
  expect_same_error(of_all(false,
                           [](int r, Call& call) {
                             if (r == 2) call.exclude.assign(5, 60);
                           }),
                    bad, "rank 2: exclude: entry 0 is 60, not -1 or a row of the table");
  // Query 1 leaves itself out, and the excluded row that its filter admits.
  const auto filtered_self = [&](std::int64_t k) {
    return [k](int r, Call& call) {
      call.filter.assign(1, r == 0 ? 0b1011 : 0);
      if (r == 0) call.exclude = {-1, 3, -1, -1, -1, -1, 2};
      call.options.k = k;
    };
  };
  for (const std::int64_t k : {2, 3}) {
    expect_same_error(of_all(true, filtered_self(k)), bad, "k: is " + std::to_string(k) + ", but at most 1 of the 60");
  }
  expect_no_error(of_all(true, filtered_self(1)), "1 neighbor");
  // An id that is the row itself leaves out nothing more.
  expect_no_error(of_all(true,
                         [](int r, Call& call) {
                           if (r == 1) call.exclude.assign(24, -1), call.exclude[2] = 9;
                           call.options.k = 59;
                         }),
                  "59 neighbors");
  expect_same_error(of_all(false,
                           [](int r, Call& call) {
                             call.options.p = 2 + r;
                             call.options.metric = Metric::minkowski;
                           }),
                    bad, "p: is not the same on ranks 0 and 1");
  expect_same_error(of_all(true, [](int r, Call& call) { call.options.max_radius = 2 + r; }), bad,
                    "max_radius: is not the same on ranks 0 and 1");
  const std::vector<float> single(2 * kCols, 1);
  expect_same_error(run_ranks(3,
                              [&](Communicator& own) {
                                const Call call = call_of(own.rank());
                                const TableView asked =
                                    own.rank() == 0 ? TableView(single.data(), 2, kCols) : call.asked();
                                (void)knn(call.ctx, own, call.shard(), call.first_row, asked, {.k = 3});
                              }),
                    bad, "queries: their element type is not the same on ranks 0 and 2");
  expect_same_error(run_ranks(3,
                              [&](Communicator& own) {
                                const Call call = call_of(own.rank());
                                own.rank() == 2
                                    ? (void)count(call.ctx, own, call.shard(), call.first_row, {.radius = 1})
                                    : (void)radius(call.ctx, own, call.shard(), call.first_row, {.radius = 1});
                              }),
                    bad, "function that is called: is not the same on ranks 0 and 2");
  expect_same_error(run_ranks(3,
                              [&](Communicator& own) {
                                const Call call = call_of(own.rank());
                                own.rank() == 1
                                    ? (void)plan_knn(call.ctx, own, call.shard(), call.first_row, nullptr, {.k = 3})
                                    : (void)knn(call.ctx, own, call.shard(), call.first_row, {.k = 3});
                              }),
                    bad, "function that is called: is not the same on ranks 0 and 1");
  // More neighbors than any shard has rows: the method is looked at before anything is sent.
  expect_same_error(
      of_all(true,
             [](int, Call& call) { call.options = {.k = 50, .metric = Metric::cosine, .method = Method::kdtree}; }),
      bad, "rank 0: method: kdtree does not serve the metric cosine");
}

TEST_F(NearestOfThreeRanks, FailTogetherWithinARadius) {
  const auto of_all = [&](bool self, const std::function<void(int rank, Call&, RadiusOptions&)>& change) {
    return run_ranks(3, [&](Communicator& own) {
      Call call = call_of(own.rank());
      RadiusOptions options{.radius = 1};
      change(own.rank(), call, options);
      const TableView asked = call.asked();
      self ? (void)radius(call.ctx, own, call.shard(), call.first_row, options)
           : (void)radius(call.ctx, own, call.shard(), call.first_row, asked, options);
    });
  };
  const auto bad = ErrorCode::invalid_argument;
  for (const bool self : {true, false}) {
    expect_same_error(of_all(self, [](int r, Call&, RadiusOptions& o) { o.radius = r == 2 ? -1 : 1; }), bad,
                      "rank 2: radius: is negative");
    const std::vector<double> radii(1, 1);
    expect_same_error(of_all(self,
                             [&](int r, Call&, RadiusOptions& o) {
                               if (r == 1) o.radii = radii;
                             }),
                      bad, "rank 1: radii: 1 for ");
    expect_same_error(of_all(self,
                             [](int r, Call&, RadiusOptions& o) {
                               if (r == 2) o.order = RadiusOrder::id;
                             }),
                      bad, "order: is not the same on ranks 0 and 2");
    expect_same_error(of_all(self,
                             [](int r, Call& c, RadiusOptions&) {
                               if (r == 1) c.ctx = c.ctx.with_memory_limit(1);
                             }),
                      ErrorCode::over_memory, "rank 1: radius search");
  }
  // Lists that no plan knows of: rank 2 has room for the plan, and for little more. Where the queries travel, the lists
  // are sent to it.
  constexpr std::int64_t kMany = 3000;
  const std::vector<double> many(kMany * kCols, 0.5);
  for (const bool self : {true, false}) {
    const auto call_with = [&](int r, std::uint64_t limit) {
      Call call = call_of(r);
      if (r == 0) call.table = many;
      if (r > 0) call.first_row += kMany - 7;
      if (r == 2) call.ctx = Context::cpu({.threads = 1, .memory_limit = limit});
      return call;
    };
    std::uint64_t planned = 0;
    expect_no_error(run_ranks(3,
                              [&](Communicator& own) {
                                const Call call = call_with(own.rank(), 0);
                                const TableView asked = call.asked();
                                const Plan plan = plan_radius(call.ctx, own, call.shard(), call.first_row,
                                                              self ? nullptr : &asked, {.radius = 100});
                                EXPECT_EQ(plan.reason.find("all queries are sent") != std::string::npos, !self);
                                if (own.rank() == 2) planned = plan.memory;
                              }),
                    "plan");
    expect_same_error(of_all(self,
                             [&](int r, Call& c, RadiusOptions& o) {
                               o.radius = 100;
                               c = call_with(r, planned + (std::uint64_t{64} << 10));
                             }),
                      ErrorCode::over_memory, "rank 2: radius: the neighbors found so far needs ");
  }
}

TEST_F(NearestOfThreeRanks, WorkAgainAfterAnError) {
  expect_no_error(run_ranks(3,
                            [&](Communicator& own) {
                              Call call = call_of(own.rank());
                              for (int turn = 0; turn < 2; ++turn) {
                                EXPECT_THROW(knn(call.ctx, own, call.shard(), call.first_row, {.k = 60}), Error);
                                EXPECT_EQ(knn(call.ctx, own, call.shard(), call.first_row, {.k = 3}).k, 3);
                              }
                            }),
                  "after an error");
}

// docs/ranks.md, Bytes.
TEST_F(NearestOfThreeRanks, SendAsManyBytesAsTheDocsSay) {
  const std::uint64_t values = 8 * kCols;
  const auto rows_of = [&](std::size_t r) { return static_cast<std::uint64_t>(cuts_[r + 1] - cuts_[r]); };
  const auto queries_of = [&](std::size_t r) {
    return static_cast<std::uint64_t>(query_cuts_[r + 1] - query_cuts_[r]);
  };
  const auto check = [&](const std::string& what, const auto& body, const auto& expected) {
    expect_no_error(run_ranks(3,
                              [&](Communicator& own) {
                                const Call call = call_of(own.rank());
                                const std::uint64_t neighbors = body(own, call);
                                EXPECT_EQ(own.bytes_sent(), expected(static_cast<std::size_t>(own.rank()), neighbors))
                                    << what << ", rank " << own.rank();
                              }),
                    what);
  };
  const auto ring = [&](std::size_t r, std::uint64_t filter_bits) {
    std::uint64_t bytes = 0;
    for (std::size_t owner = 0; owner < 3; ++owner) {
      if (owner != (r + 1) % 3) bytes += rows_of(owner) * values + (filter_bits + 63) / 64 * 8;
    }
    return bytes;
  };
  const std::vector<std::uint64_t> filter(1, ~std::uint64_t{0});
  for (const bool one_at_a_time : {false, true}) {
    const OneShardAtATime environment(one_at_a_time);
    const std::uint64_t votes = one_at_a_time ? 8 * 3 : 8 * 2;
    check(
        "knn",
        [](Communicator& own, const Call& call) {
          (void)knn(call.ctx, own, call.shard(), call.first_row, {.k = 4});
          return 0;
        },
        [&](std::size_t r, std::uint64_t) { return 192 + votes + ring(r, 0); });
    check(
        "knn, filter",
        [&](Communicator& own, const Call& call) {
          (void)knn(call.ctx, own, call.shard(), call.first_row, {.k = 4, .filter = filter});
          return 0;
        },
        [&](std::size_t r, std::uint64_t) { return 192 + votes + ring(r, 1); });
    check(
        "radius",
        [](Communicator& own, const Call& call) {
          (void)radius(call.ctx, own, call.shard(), call.first_row, {.radius = 1});
          return 0;
        },
        [&](std::size_t r, std::uint64_t) { return 184 + votes + ring(r, 0); });
    check(
        "count",
        [](Communicator& own, const Call& call) {
          (void)count(call.ctx, own, call.shard(), call.first_row, {.radius = 1});
          return 0;
        },
        [&](std::size_t r, std::uint64_t) { return 176 + votes + ring(r, 0); });
    check(
        "parts",
        [](Communicator& own, const Call& call) {
          (void)knn_part(call.ctx, own, call.shard(), call.first_row, {.k = 4});
          (void)radius_part(call.ctx, own, call.shard(), call.first_row, {.radius = 1});
          (void)count_part(call.ctx, own, call.shard(), call.first_row, {.radius = 1});
          return 0;
        },
        [&](std::size_t r, std::uint64_t) { return 192 - 8 + 184 + 176 + 3 * (votes + ring(r, 0)); });
  }
  check(
      "knn, few queries",
      [](Communicator& own, const Call& call) {
        (void)knn(call.ctx, own, call.shard(), call.first_row, call.asked(), {.k = 9});
        return 0;
      },
      [&](std::size_t r, std::uint64_t) {
        return 200 + 8 * 3 + queries_of(r) * values +
               (kQueries - queries_of(r)) * 16 * std::min<std::uint64_t>(9, rows_of(r));
      });
  check(
      "count, few queries",
      [](Communicator& own, const Call& call) {
        (void)count(call.ctx, own, call.shard(), call.first_row, call.asked(), {.radius = 1});
        return 0;
      },
      [&](std::size_t r, std::uint64_t) {
        return 184 + 8 * 3 + queries_of(r) * (values + 8) + (kQueries - queries_of(r)) * 8;
      });
  check(
      "radius, few queries, exclude",
      [&](Communicator& own, const Call& call) {
        RadiusOptions options{.radius = 2};
        const std::vector<std::int64_t> exclude(static_cast<std::size_t>(call.asked().rows()), 3);
        options.exclude = exclude;
        (void)radius(call.ctx, own, call.shard(), call.first_row, call.asked(), options);
        // The neighbors among the rank's rows of the queries of others.
        const Index index(call.ctx, call.shard());
        std::vector<std::int64_t> left_out(kQueries, own.rank() == 0 ? 3 : -1);
        const NeighborCounts counts = count(call.ctx, index, TableView(rows_.queries.data(), kQueries, kCols),
                                            {.radius = 2, .exclude = left_out});
        std::uint64_t sum = 0;
        for (std::int64_t q = 0; q < kQueries; ++q) {
          const auto rank = static_cast<std::size_t>(own.rank());
          if (q < query_cuts_[rank] || q >= query_cuts_[rank + 1]) {
            sum += static_cast<std::uint64_t>(counts.counts[static_cast<std::size_t>(q)]);
          }
        }
        return sum;
      },
      [&](std::size_t r, std::uint64_t neighbors) {
        return 184 + 16 * 3 + queries_of(r) * (values + 16) + (kQueries - queries_of(r)) * 8 + 16 * neighbors;
      });
}

TEST_F(NearestOfThreeRanks, PlansSayWhatTravelsAndWhy) {
  const auto expect_plan = [&](bool self, const KnnOptions& options, std::uint64_t limit, const std::string& why,
                               bool travels) {
    expect_no_error(run_ranks(3,
                              [&](Communicator& own) {
                                const Call call = call_of(own.rank());
                                const Context ctx = own.rank() == 1 ? call.ctx.with_memory_limit(limit) : call.ctx;
                                const TableView asked = call.asked();
                                const Plan plan =
                                    plan_knn(ctx, own, call.shard(), call.first_row, self ? nullptr : &asked, options);
                                EXPECT_NE(plan.reason.find(why), std::string::npos) << plan.reason;
                                const NeighborGraph graph =
                                    self ? knn(ctx, own, call.shard(), call.first_row, options)
                                         : knn(ctx, own, call.shard(), call.first_row, asked, options);
                                EXPECT_NE(graph.plan.reason.find(why), std::string::npos) << graph.plan.reason;
                                EXPECT_EQ(graph.plan.memory, plan.memory);
                                EXPECT_EQ(plan.reason.find("all queries are sent") != std::string::npos, travels);
                              }),
                    why);
  };
  const std::uint64_t enough = std::uint64_t{1} << 32;
  expect_plan(true, {.k = 4}, enough,
              "each shard is sent from rank to rank, in all 2.9 kB, and each rank searches all of them at once", false);
  expect_plan(false, {.k = 4}, enough,
              "all queries are sent to every rank and their lists back, in all 1.2 kB; the shards would be 2.9 kB",
              true);
  expect_plan(
      false, {.k = 40}, enough,
      "each shard is sent from rank to rank, in all 2.9 kB, and each rank searches all of them at once; queries "
      "and lists would be ",
      false);
  // Rank 1, which has no queries, would need most for those of others.
  const auto memory_of_rank_1 = [&](bool self, const KnnOptions& options) {
    std::uint64_t memory = 0;
    expect_no_error(run_ranks(3,
                              [&](Communicator& own) {
                                const Call call = call_of(own.rank());
                                const TableView asked = call.asked();
                                const Plan plan = plan_knn(call.ctx, own, call.shard(), call.first_row,
                                                           self ? nullptr : &asked, options);
                                if (own.rank() == 1) memory = plan.memory;
                              }),
                    "plan");
    return memory;
  };
  const std::uint64_t least = memory_of_rank_1(false, {.k = 4});
  expect_plan(false, {.k = 4}, least, "all queries are sent to every rank", true);
  expect_plan(false, {.k = 4}, least - 1, "; a rank has too little memory for the queries of all", false);
  // And for the whole table.
  const std::uint64_t whole = memory_of_rank_1(true, {.k = 4});
  expect_plan(true, {.k = 4}, whole, "in all 2.9 kB, and each rank searches all of them at once", false);
  expect_plan(true, {.k = 4}, whole - 1,
              "in all 2.9 kB, and searched alone, because a rank has too little memory for all of them", false);
}

// Lists of all rows of a small shard take what memory there is, but not what is held beside them.
TEST(NearestShards, SmallShardsFitASmallLimit) {
  constexpr std::int64_t n = 12;
  constexpr std::int64_t m = 2000;
  const Rows rows = make_rows(Family::gaussian, {n, 3, m}, 5);
  const TableView table(rows.table.data(), n, 3);
  const TableView queries(rows.queries.data(), m, 3);
  expect_no_error(run_ranks(2,
                            [&](Communicator& own) {
                              const Context ctx = Context::cpu({.threads = 1, .memory_limit = 64'000'000});
                              const std::int64_t first = own.rank() * n / 2;
                              const std::int64_t asked = own.rank() * m / 2;
                              const NeighborGraph found = knn(ctx, own, table.slice(first, first + n / 2), first,
                                                              queries.slice(asked, asked + m / 2), {.k = 7});
                              EXPECT_EQ(found.rows, m / 2);
                            }),
                  "64 MB");
}

// A method is chosen when the values are known, which no plan reads.
TEST_F(NearestOfThreeRanks, SayWhichMethodRan) {
  std::vector<double> line;
  for (int i = 0; i < 90000; ++i) line.push_back(i);
  expect_no_error(run_ranks(2,
                            [&](Communicator& own) {
                              const Context ctx = Context::cpu({.threads = 1});
                              const TableView shard(line.data() + own.rank() * 45000, 45000, 1);
                              const TableView whole(line.data(), 90000, 1);
                              const NeighborGraph graph = knn(ctx, own, shard, own.rank() * 45000, {.k = 3});
                              EXPECT_EQ(graph.plan.method, knn_part(ctx, whole, shard, {.k = 3}, {}).plan.method);
                              EXPECT_NE(graph.plan.reason.find("each shard is sent"), std::string::npos);
                            }),
                  "method");
}

// The shards of others are counted, whether they come together or one at a time.
TEST_F(NearestOfThreeRanks, PlansCountTheShardsOfOthers) {
  constexpr std::int64_t n = 600;
  constexpr std::int64_t cols = 40;
  const std::vector<double> rows(n * cols, 1);
  for (const bool one_at_a_time : {false, true}) {
    const OneShardAtATime environment(one_at_a_time);
    expect_no_error(run_ranks(3,
                              [&](Communicator& own) {
                                const Context ctx = Context::cpu({.threads = 1});
                                const std::int64_t first = 200 * own.rank();
                                const TableView shard(rows.data() + first * cols, 200, cols);
                                const TableView searched(rows.data(), one_at_a_time ? 200 : n, cols);
                                const KnnOptions options{.k = 1};
                                const std::uint64_t search = plan_knn_part(ctx, searched, shard, options, {}).memory;
                                const std::uint64_t shards = (one_at_a_time ? 2 * 200 : n) * cols * 8;
                                EXPECT_GE(plan_knn(ctx, own, shard, first, nullptr, options).memory, search + shards);
                              }),
                    "plan");
  }
}

// What lists within a radius take while they grow is not planned.
TEST_F(NearestOfThreeRanks, LeaveMemoryToListsWithinARadius) {
  constexpr std::int64_t n = 6000;
  constexpr std::int64_t cols = 40;
  const std::vector<double> rows(n * cols, 1);
  std::uint64_t planned = 0;
  const auto expect_whole = [&](std::uint64_t limit, bool is_whole) {
    expect_no_error(run_ranks(3,
                              [&](Communicator& own) {
                                const Context ctx = Context::cpu({.threads = 1, .memory_limit = limit});
                                const std::int64_t first = n / 3 * own.rank();
                                const TableView shard(rows.data() + first * cols, n / 3, cols);
                                const Plan plan = plan_radius(ctx, own, shard, first, nullptr,
                                                              {.radius = 1, .method = Method::direct});
                                const bool says = plan.reason.find("searches all of them at once") != std::string::npos;
                                EXPECT_EQ(says, is_whole) << limit << ": " << plan.reason;
                                if (own.rank() == 0) planned = plan.memory;
                              }),
                    "plan");
  };
  expect_whole(std::uint64_t{1} << 30, true);
  const std::uint64_t whole = planned;
  expect_whole(3 * whole, false);
  expect_whole(5 * whole, true);
}

// What a plan says is enough, and a byte less is refused on all ranks.
TEST_F(NearestOfThreeRanks, TakeTheMemoryThatIsPlanned) {
  for (const auto& [self, one_at_a_time] : {std::pair(true, false), std::pair(true, true), std::pair(false, false)}) {
    const OneShardAtATime environment(one_at_a_time);
    const bool queries_travel = !self;
    const bool is_whole = self && !one_at_a_time;
    std::vector<std::uint64_t> bytes(3);
    const auto call_by = [&](Communicator& own, std::uint64_t less) {
      const Call call = call_of(own.rank());
      const Context ctx = call.ctx.with_memory_limit(bytes[static_cast<std::size_t>(own.rank())] - less);
      const NeighborGraph graph = self ? knn(ctx, own, call.shard(), call.first_row, {.k = 9})
                                       : knn(ctx, own, call.shard(), call.first_row, call.asked(), {.k = 9});
      EXPECT_EQ(graph.plan.reason.find("all queries are sent") != std::string::npos, queries_travel);
      EXPECT_EQ(graph.plan.reason.find("all of them at once") != std::string::npos, is_whole);
    };
    expect_no_error(run_ranks(3,
                              [&](Communicator& own) {
                                const Call call = call_of(own.rank());
                                const TableView asked = call.asked();
                                const Plan plan = plan_knn(call.ctx, own, call.shard(), call.first_row,
                                                           self ? nullptr : &asked, {.k = 9});
                                bytes[static_cast<std::size_t>(own.rank())] = plan.memory;
                                EXPECT_EQ(plan.reason.find("all queries are sent") != std::string::npos, !self);
                              }),
                    "plan");
    expect_no_error(run_ranks(3, [&](Communicator& own) { call_by(own, 0); }), "planned");
    if (!one_at_a_time) continue;  // else the shards travel instead, or are searched one at a time
    for (int failing = 0; failing < 3; ++failing) {
      expect_same_error(run_ranks(3, [&](Communicator& own) { call_by(own, own.rank() == failing ? 1 : 0); }),
                        ErrorCode::over_memory, "rank " + std::to_string(failing) + ": knn");
    }
  }
}

}  // namespace
}  // namespace vicinal::contract
