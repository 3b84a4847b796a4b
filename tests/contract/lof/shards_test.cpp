// lof of lists that are divided among ranks, against the reference and the single process (contract clauses 4 and 13).
#include "vicinal/shards.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "lof_check.hpp"
#include "ranks.hpp"
#include "vicinal/knn.hpp"

namespace vicinal::contract {
namespace {

/// The lists of rows [begin, end) of a graph of a table within itself.
NeighborGraph lists_of(const NeighborGraph& graph, std::int64_t begin, std::int64_t end) {
  NeighborGraph part = graph;
  const auto at = [&](std::int64_t row) {
    return graph.is_csr() ? graph.offsets[static_cast<std::size_t>(row)] : row * graph.k;
  };
  part.rows = end - begin;
  part.ids.assign(graph.ids.begin() + at(begin), graph.ids.begin() + at(end));
  part.distances.assign(graph.distances.begin() + at(begin), graph.distances.begin() + at(end));
  if (graph.is_csr()) {
    part.offsets.clear();
    for (std::int64_t row = begin; row <= end; ++row) part.offsets.push_back(at(row) - at(begin));
  }
  return part;
}

Lof lof_by_ranks(const NeighborGraph& graph, const LofOptions& options, int ranks, std::uint64_t turn,
                 const std::string& what) {
  const std::vector<std::int64_t> cuts = uneven_cuts(graph.rows, ranks, turn);
  std::vector<Lof> parts(static_cast<std::size_t>(ranks));
  expect_no_error(run_ranks(ranks,
                            [&](Communicator& own) {
                              const auto rank = static_cast<std::size_t>(own.rank());
                              parts[rank] = lof(context_of_rank(own.rank(), turn), own,
                                                lists_of(graph, cuts[rank], cuts[rank + 1]), cuts[rank], options);
                            }),
                  what);
  Lof all = parts.front();
  for (std::size_t rank = 1; rank < parts.size(); ++rank) {
    const Lof& part = parts[rank];
    all.scores.insert(all.scores.end(), part.scores.begin(), part.scores.end());
    all.k_distances.insert(all.k_distances.end(), part.k_distances.begin(), part.k_distances.end());
    all.densities.insert(all.densities.end(), part.densities.begin(), part.densities.end());
    EXPECT_EQ(part.threshold, all.threshold) << what;
    EXPECT_EQ(part.outliers, all.outliers) << what;
    EXPECT_EQ(part.copied, all.copied) << what;
    EXPECT_EQ(part.caps, all.caps) << what;
    EXPECT_EQ(part.spread, all.spread) << what;
  }
  return all;
}

void check_lof_shards(const NeighborGraph& graph, const LofOptions& options, const std::string& name,
                      std::uint64_t turn) {
  const Lof expected = lof(Context::cpu({.threads = 2}), graph, options);
  expect_same(expected, reference::lof(graph, nullptr, options), name);
  for (const int ranks : {1, 2, 3, 4, 7}) {
    const std::string what = name + " " + text(options) + ", ranks " + std::to_string(ranks);
    const Lof got = lof_by_ranks(graph, options, ranks, turn, what);
    EXPECT_TRUE(same_bits(got.scores, expected.scores)) << what;
    EXPECT_TRUE(same_bits({got.threshold, got.spread}, {expected.threshold, expected.spread}))
        << what << ": " << got.threshold << " " << expected.threshold;
    EXPECT_EQ(got.outliers, expected.outliers) << what;
    EXPECT_EQ(got.copied, expected.copied) << what;
    EXPECT_TRUE(same_bits(got.k_distances, expected.k_distances)) << what;
    EXPECT_TRUE(same_bits(got.densities, expected.densities)) << what;
    EXPECT_TRUE(same_bits(got.caps, expected.caps)) << what;
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(LofShards, TheSameBits) {
  constexpr std::int64_t n = 170;
  std::uint64_t turn = 0;
  for (const Family family : {Family::gaussian, Family::duplicates, Family::mostly_duplicates, Family::integer_ties,
                              Family::constant, Family::far_outlier}) {
    const Rows rows = make_rows(family, {n, 4, 1}, 3);
    const TableView table(rows.table.data(), n, 4);
    const NeighborGraph graph = knn(Context::cpu({.threads = 2}), table, {.k = 12});
    for (const OutlierScore score : {OutlierScore::lof, OutlierScore::simplified_lof, OutlierScore::knn,
                                     OutlierScore::knn_weighted, OutlierScore::loop}) {
      for (const Duplicates duplicates :
           {Duplicates::sklearn, Duplicates::infinite, Duplicates::one, Duplicates::cap}) {
        ++turn;
        if (is_left_out(turn)) continue;
        LofOptions options{.k = turn % 2 == 0 ? 12 : 5, .score = score, .duplicates = duplicates};
        options.contamination = turn % 3 == 0 ? 0.1 : (turn % 3 == 1 ? 0.37 : 0);
        options.novelty = turn % 4 != 0;
        check_lof_shards(graph, options, std::string(name_of(family)), turn);
        if (HasFailure()) return;
      }
    }
    for (const AcrossK across : {AcrossK::max, AcrossK::mean, AcrossK::min}) {
      LofOptions options{.k = 3, .k_to = 11, .across = across};
      options.duplicates = family == Family::gaussian ? Duplicates::sklearn : Duplicates::cap;
      options.contamination = 0.25;
      options.novelty = true;
      check_lof_shards(graph, options, std::string(name_of(family)) + " range", ++turn);
      if (HasFailure()) return;
    }
  }
}

TEST(LofShards, ListsWithinARadius) {
  constexpr std::int64_t n = 120;
  const Rows rows = make_rows(Family::grid, {n, 2, 1}, 3);
  const TableView table(rows.table.data(), n, 2);
  const NeighborGraph graph = radius(Context::cpu({.threads = 2}), table, {.radius = 2.5});
  ASSERT_TRUE(graph.is_csr());
  std::uint64_t turn = 0;
  for (const OutlierScore score : {OutlierScore::lof, OutlierScore::simplified_lof, OutlierScore::loop}) {
    check_lof_shards(graph, {.score = score, .contamination = 0.2, .novelty = true}, "radius", ++turn);
  }
}

// The threshold at every place of few scores, many of which are equal or infinite.
TEST(LofShards, EveryContamination) {
  constexpr std::int64_t n = 41;
  const Rows rows = make_rows(Family::mostly_duplicates, {n, 2, 1}, 5);
  const TableView table(rows.table.data(), n, 2);
  const NeighborGraph graph = knn(Context::cpu({.threads = 1}), table, {.k = 4});
  for (const Duplicates duplicates : {Duplicates::infinite, Duplicates::one}) {
    for (std::int64_t i = 1; i <= 20; i += sanitized(1, 7)) {
      LofOptions options{.k = 4, .duplicates = duplicates};
      options.contamination = static_cast<double>(i) / 40;
      const Lof expected = lof(Context::cpu({.threads = 1}), graph, options);
      const std::string what = text(options);
      const Lof got = lof_by_ranks(graph, options, 3, static_cast<std::uint64_t>(i), what);
      EXPECT_TRUE(same_bits({got.threshold}, {expected.threshold})) << what;
      EXPECT_EQ(got.outliers, expected.outliers) << what;
    }
  }
}

TEST(LofShards, SendAsManyBytesAsTheDocsSay) {
  constexpr std::int64_t n = 60;
  const Rows rows = make_rows(Family::gaussian, {n, 2, 1}, 5);
  const NeighborGraph graph = knn(Context::cpu({.threads = 1}), TableView(rows.table.data(), n, 2), {.k = 4});
  const std::vector<std::int64_t> cuts = {0, 7, 31, n};
  struct Case {
    OutlierScore score;
    double contamination;
    std::uint64_t for_each_row;
    std::uint64_t else_sent;
  };
  // 12 options, the rows, counts; 7 votes of the phases there are.
  constexpr std::uint64_t kBefore = 12 * 8 + 2 * 8 + 2 * 8;
  const Case cases[] = {{OutlierScore::knn, 0, 0, kBefore + 4 * 8},
                        {OutlierScore::lof, 0, 16, kBefore + 5 * 8},
                        {OutlierScore::simplified_lof, 0, 8, kBefore + 5 * 8},
                        {OutlierScore::loop, 0, 8, kBefore + 7 * 8 + 568},
                        {OutlierScore::lof, 0.1, 16, kBefore + 6 * 8 + 8 * (8 + 256 * 8) + 16}};
  for (const Case& c : cases) {
    LofOptions options{.k = 4, .score = c.score};
    options.contamination = c.contamination;
    expect_no_error(run_ranks(3,
                              [&](Communicator& own) {
                                const auto rank = static_cast<std::size_t>(own.rank());
                                (void)lof(Context::cpu({.threads = 1}), own,
                                          lists_of(graph, cuts[rank], cuts[rank + 1]), cuts[rank], options);
                                const auto mine = static_cast<std::uint64_t>(cuts[rank + 1] - cuts[rank]);
                                EXPECT_EQ(own.bytes_sent(), c.else_sent + c.for_each_row * mine) << text(options);
                              }),
                    "bytes");
  }
}

TEST(LofShards, FailTogether) {
  constexpr std::int64_t n = 60;
  const Rows rows = make_rows(Family::gaussian, {n, 2, 1}, 5);
  const NeighborGraph graph = knn(Context::cpu({.threads = 1}), TableView(rows.table.data(), n, 2), {.k = 4});
  const std::vector<std::int64_t> cuts = {0, 7, 31, n};
  struct Call {
    Context ctx = Context::cpu({.threads = 2});
    NeighborGraph graph;
    std::int64_t first_row = 0;
    LofOptions options{.k = 4};
  };
  const auto run = [&](const std::function<void(int rank, Call& call)>& change) {
    return run_ranks(3, [&](Communicator& own) {
      const auto rank = static_cast<std::size_t>(own.rank());
      Call call;
      call.graph = lists_of(graph, cuts[rank], cuts[rank + 1]);
      call.first_row = cuts[rank];
      change(own.rank(), call);
      (void)lof(call.ctx, own, call.graph, call.first_row, call.options);
    });
  };
  const auto bad = ErrorCode::invalid_argument;
  for (int failing = 0; failing < 3; ++failing) {
    const std::string rank = "rank " + std::to_string(failing) + ": ";
    const auto at = [&](const std::function<void(Call&)>& change) {
      return run([&](int r, Call& call) {
        if (r == failing) change(call);
      });
    };
    const std::string row = std::to_string(cuts[static_cast<std::size_t>(failing)] + 3);
    expect_same_error(at([](Call& call) { call.graph.ids[3 * 4 + 1] = n; }), ErrorCode::bad_data,
                      rank + "graph: row " + row + " has the neighbor 60, which is no row of the table");
    expect_same_error(at([&](Call& call) { call.graph.ids[3 * 4 + 1] = call.first_row + 3; }), ErrorCode::bad_data,
                      rank + "graph: row " + row + " has the neighbor " + row + ", which is itself");
    expect_same_error(at([](Call& call) { call.graph.distances[3 * 4] = std::numeric_limits<double>::quiet_NaN(); }),
                      ErrorCode::bad_data, rank + "graph: row " + row + " has a neighbor at distance nan");
    expect_same_error(at([](Call& call) { call.ctx = call.ctx.with_memory_limit(100); }), ErrorCode::over_memory,
                      rank + "lof");
    expect_same_error(at([](Call& call) {
                        const CancelToken token;
                        token.cancel();
                        call.ctx = Context::cpu({.threads = 1, .cancel = token});
                      }),
                      ErrorCode::cancelled, rank);
    expect_same_error(at([](Call& call) { call.options.k = 5; }), bad, "");
    if (failing > 0) {
      expect_same_error(at([](Call& call) { call.options.contamination = 0.2; }), bad,
                        "contamination: is not the same on ranks 0 and " + std::to_string(failing));
      expect_same_error(at([](Call& call) { --call.first_row; }), bad, "first_row: is ");
    }
  }
  const auto refused_of = [&](const LofOptions& options, const std::string& words) {
    expect_same_error(run([&](int, Call& call) { call.options = options; }), bad, words);
  };
  refused_of({.k = 4, .score = OutlierScore::ldof}, "score: ldof is made of distances between neighbors");
  refused_of({.k = 4, .score = OutlierScore::cof}, "score: cof is made of distances between neighbors");
  refused_of({.k = 4, .score = OutlierScore::cof_pyod}, "score: cof_pyod is made of distances between neighbors");
  refused_of({.k = 4, .score = OutlierScore::inflo}, "score: inflo looks at the rows that have a row as a neighbor");
  refused_of({.k = 4, .duplicates = Duplicates::distinct}, "duplicates: distinct needs the table");
  refused_of({.k = 4, .ties = Ties::all}, "ties: all needs the table");
  refused_of({.k = 5}, "k: is 5, but the graph has 4 neighbors a row");
  expect_same_error(run([](int, Call& call) { call.graph.table_rows = 61; }), bad,
                    "graph: joins rows with 61 table rows, but the ranks have 60");
}

}  // namespace
}  // namespace vicinal::contract
