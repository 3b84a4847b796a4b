// Outlier scores of graphs, thresholds, models, and what must be refused (contract clauses 5, 7, 10, 13).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "extremes.hpp"
#include "lof_check.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

const OutlierScore kScores[] = {
    OutlierScore::lof,  OutlierScore::simplified_lof, OutlierScore::knn, OutlierScore::knn_weighted, OutlierScore::loop,
    OutlierScore::ldof, OutlierScore::inflo,          OutlierScore::cof, OutlierScore::cof_pyod};

bool needs_table(OutlierScore score) {
  return score == OutlierScore::ldof || score == OutlierScore::cof || score == OutlierScore::cof_pyod;
}

// The first k of longer lists are the neighborhood, and a graph says what a search would have found.
TEST(LofOfGraph, LongerListsScoreAsTheTable) {
  for (const Family family : {Family::gaussian, Family::integer_ties, Family::mostly_duplicates}) {
    for (const Metric metric : {Metric::euclidean, Metric::manhattan}) {
      const Ranked data(make_rows(family, {223, 3, 1}, 4), 3, metric);
      const NeighborGraph graph = reference::knn(data.within, 30);
      NeighborGraph full = graph;
      full.table_rows = 223;
      full.metric = metric;
      for (const OutlierScore score : kScores) {
        for (const std::int64_t k : {2, 11, 30}) {
          LofOptions options{.k = k, .score = score, .duplicates = Duplicates::infinite, .contamination = 0.1};
          options.novelty = score != OutlierScore::inflo;
          options.metric = metric;
          const Lof expected = reference::lof(data.table.view(), data.within, options);
          for (const Context& ctx : contexts(static_cast<std::uint64_t>(k))) {
            const std::string what = "graph, " + text(options) + ", " + ctx.device();
            expect_same(lof(ctx, full, data.table.view(), options), expected, what);
            if (!needs_table(score)) expect_same(lof(ctx, full, options), expected, what + ", no table");
            if (HasFailure()) return;
          }
        }
      }
      for (const AcrossK across : {AcrossK::max, AcrossK::mean, AcrossK::min}) {
        const LofOptions options{.k = 5, .k_to = 30, .across = across, .novelty = true, .metric = metric};
        const Lof expected = reference::lof(data.table.view(), data.within, options);
        for (const Context& ctx : contexts(1)) expect_same(lof(ctx, full, options), expected, text(options));
      }
    }
  }
}

// Of a radius search every neighbor counts, whatever k says; lists are of all lengths.
TEST(LofOfGraph, ListsOfAllLengths) {
  for (const Family family : {Family::gaussian, Family::integer_ties, Family::clusters_1e2}) {
    const Ranked data(make_rows(family, {180, 2, 1}, 6), 2);
    double radius = 0;
    for (const auto& list : data.within) radius = std::max(radius, list[2].distance);
    NeighborGraph graph = reference::radius(data.within, radius);
    graph.table_rows = graph.rows;
    for (const OutlierScore score : kScores) {
      for (const Duplicates duplicates :
           {Duplicates::sklearn, Duplicates::infinite, Duplicates::one, Duplicates::cap}) {
        LofOptions options{.k = 1000000, .score = score, .duplicates = duplicates};
        const TableView table = data.table.view();
        const Lof expected = reference::lof(graph, &table, options);
        for (const Context& ctx : contexts(2)) {
          const std::string what = "radius, " + text(options) + ", " + ctx.device();
          expect_same(lof(ctx, graph, table, options), expected, what);
          if (!needs_table(score)) expect_same(lof(ctx, graph, options), expected, what + ", no table");
          if (HasFailure()) return;
        }
      }
    }
  }
}

// The graph that the library itself finds.
TEST(LofOfGraph, FoundByTheLibrary) {
  const Ranked data(make_rows(Family::clusters_1e3, {400, 4, 1}, 2), 4);
  for (const Context& ctx : contexts(0)) {
    const LofOptions options{.k = 15};
    const Lof expected = reference::lof(data.table.view(), data.within, options);
    expect_same(lof(ctx, knn(ctx, data.table.view(), {.k = 25}), options), expected, ctx.device());
    double radius = 0;
    for (const auto& list : data.within) radius = std::max(radius, list.front().distance);
    const NeighborGraph ball = vicinal::radius(ctx, data.table.view(), {.radius = radius});
    expect_same(lof(ctx, ball, {}), reference::lof(ball, nullptr, {}), ctx.device() + ", radius");
  }
}

TEST(LofThreshold, EveryShare) {
  const Ranked data(make_rows(Family::gaussian, {101, 3, 1}, 9), 3);
  const Ranked copied(make_rows(Family::mostly_duplicates, {90, 3, 1}, 9), 3);
  for (const double share : {5e-324, 1e-17, 0.001, 0.01, 0.02, 0.1, 1.0 / 3, 0.4999, 0.5}) {
    for (const Duplicates duplicates : {Duplicates::sklearn, Duplicates::infinite, Duplicates::one}) {
      const LofOptions options{.k = 7, .duplicates = duplicates, .contamination = share};
      check_lof(data, options, "gaussian", contexts(0));
      check_lof(copied, options, "copies", contexts(0));
    }
    if (HasFailure()) return;
  }
  const Context ctx = contexts(0).front();
  for (const OutlierScore score : kScores) {
    const Lof got = lof(ctx, data.table.view(), {.k = 7, .score = score});
    const bool is_distance = score == OutlierScore::knn || score == OutlierScore::knn_weighted;
    const double other = score == OutlierScore::ldof ? 1 : (score == OutlierScore::loop ? 0.5 : 1.5);
    EXPECT_EQ(got.threshold, is_distance ? kInfinity : other) << name_of(score);
  }
}

TEST(LofNames, ThereAndBack) {
  for (const OutlierScore score : kScores) EXPECT_EQ(outlier_score_from(name_of(score)), score);
  for (const Ties ties : {Ties::cut, Ties::all}) EXPECT_EQ(ties_from(name_of(ties)), ties);
  for (const AcrossK across : {AcrossK::max, AcrossK::mean, AcrossK::min})
    EXPECT_EQ(across_k_from(name_of(across)), across);
  EXPECT_EQ(name_of(duplicates_from("inf")), "inf");
}

// A table's own rows asked as others: each is a neighbor of its own, so that only the scores change.
TEST(LofNovelty, RowsOfTheTable) {
  const Ranked data(make_rows(Family::gaussian, {120, 3, 1}, 3), 3);
  for (const Context& ctx : contexts(0)) {
    const Index index(ctx, data.table.view());
    const Lof model = lof(ctx, index, {.k = 9, .novelty = true});
    const auto across = reference::rank(data.table.view(), data.table.view(), {});
    const Lof expected = reference::lof(data.table.view(), data.within, {.k = 9});
    expect_same_scores(novelty(ctx, index, model, data.table.view()),
                       reference::novelty(data.table.view(), expected, data.table.view(), across), OutlierScore::lof,
                       "own rows");
    EXPECT_TRUE(novelty(ctx, index, model, data.table.view().slice(0, 1)).size() == 1);
  }
}

// What is said of a graph's rows is true of queries by the graph's metric, whatever the options say.
TEST(LofNovelty, OfAGraph) {
  const Ranked data(make_rows(Family::gaussian, {90, 3, 12}, 7), 3, Metric::manhattan);
  for (const Context& ctx : contexts(0)) {
    const Index index(ctx, data.table.view());
    const NeighborGraph graph = knn(ctx, index, {.k = 12, .metric = Metric::manhattan});
    const Lof model = lof(ctx, graph, {.k = 8, .novelty = true});
    const Lof expected = reference::lof(data.table.view(), data.within, model.options);
    EXPECT_EQ(model.options.metric, Metric::manhattan);
    expect_same_scores(novelty(ctx, index, model, data.queries.view()),
                       reference::novelty(data.table.view(), expected, data.queries.view(), data.across),
                       OutlierScore::lof, "queries");
  }
}

// Policies for densities are nothing to scores that know none.
TEST(LofNovelty, PoliciesOfNoMatter) {
  const Ranked data(make_rows(Family::mostly_duplicates, {120, 3, 12}, 7), 3);
  for (const OutlierScore score : {OutlierScore::knn, OutlierScore::knn_weighted, OutlierScore::loop,
                                   OutlierScore::ldof, OutlierScore::cof, OutlierScore::cof_pyod}) {
    for (const Duplicates duplicates : {Duplicates::infinite, Duplicates::one, Duplicates::cap}) {
      check_lof(data, {.k = 5, .score = score, .duplicates = duplicates, .novelty = true}, "copies", contexts(0));
      if (HasFailure()) return;
    }
  }
}

class LofRefusal : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 40;
  [[nodiscard]] TableView table() const { return {rows_.table.data(), kRows, 3}; }
  [[nodiscard]] TableView queries() const { return {rows_.queries.data(), 5, 3}; }

  static void expect(ErrorCode code, const std::vector<std::string>& words,
                     const std::function<void(const Context&)>& call) {
    for (const Context& ctx : contexts(0)) {
      try {
        call(ctx);
        ADD_FAILURE() << "no error; expected one naming '" << words[0] << "'";
      } catch (const Error& error) {
        const std::string sentence = error.what();
        EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << sentence;
        for (const std::string& word : words)
          EXPECT_NE(sentence.find(word), std::string::npos) << "no '" << word << "' in: " << sentence;
      }
    }
  }
  void expect_options(const std::vector<std::string>& words, const LofOptions& options) const {
    expect(ErrorCode::invalid_argument, words, [&](const Context& ctx) { (void)lof(ctx, table(), options); });
    expect(ErrorCode::invalid_argument, words,
           [&](const Context& ctx) { (void)lof(ctx, Index(ctx, table()), options); });
    expect(ErrorCode::invalid_argument, words, [&](const Context& ctx) { (void)plan_lof(ctx, table(), options); });
  }
  void expect_graph(ErrorCode code, const std::vector<std::string>& words, const NeighborGraph& graph,
                    const LofOptions& options = {.k = 5}) const {
    expect(code, words, [&](const Context& ctx) { (void)lof(ctx, graph, options); });
    expect(code, words, [&](const Context& ctx) { (void)lof(ctx, graph, table(), options); });
  }

  Rows rows_ = make_rows(Family::gaussian, {kRows, 3, 5}, 1);
  NeighborGraph graph_ = knn(Context::cpu({.threads = 1}), table(), {.k = 10});
};

TEST_F(LofRefusal, OptionsOutsideTheirDomain) {
  expect_options({"k", "0"}, {.k = 0});
  expect_options({"k", "-4"}, {.k = -4});
  expect_options({"k", "40", "39"}, {.k = 40});
  expect_options({"k", "39"}, {.k = std::numeric_limits<std::int64_t>::max()});
  expect_options({"k_to", "5"}, {.k = 5, .k_to = 5});
  expect_options({"k_to", "3"}, {.k = 5, .k_to = 3});
  expect_options({"k_to", "-1"}, {.k = 5, .k_to = -1});
  expect_options({"k_to", "40", "39"}, {.k = 5, .k_to = 40});
  for (const OutlierScore score : kScores) {
    if (score == OutlierScore::lof) continue;
    expect_options({"k_to", std::string(name_of(score))}, {.k = 5, .k_to = 9, .score = score});
  }
  for (const double bad : {-0.1, 0.5000001, 1.0, kNaN, kInfinity})
    expect_options({"contamination"}, {.k = 5, .contamination = bad});
  for (const double bad : {-1.0, 0.0, kNaN, kInfinity})
    expect_options({"lambda"}, {.k = 5, .score = OutlierScore::loop, .lambda = bad});
  expect_options({"k", "ldof", "2"}, {.k = 1, .score = OutlierScore::ldof});
  for (const OutlierScore score :
       {OutlierScore::inflo, OutlierScore::ldof, OutlierScore::cof, OutlierScore::cof_pyod}) {
    expect_options({"ties", std::string(name_of(score))}, {.k = 5, .score = score, .ties = Ties::all});
    expect_options({"duplicates", std::string(name_of(score))},
                   {.k = 5, .score = score, .duplicates = Duplicates::distinct});
  }
  expect_options({"novelty", "inflo"}, {.k = 5, .score = OutlierScore::inflo, .novelty = true});
  expect_options({"metric", "inner_product"}, {.k = 5, .metric = Metric::inner_product});
  expect_options({"p"}, {.k = 5, .metric = Metric::minkowski, .p = 0.5});
}

TEST_F(LofRefusal, RangesOfPlaces) {
  for (const Duplicates duplicates : {Duplicates::sklearn, Duplicates::distinct}) {
    const Ties ties = duplicates == Duplicates::sklearn ? Ties::all : Ties::cut;
    expect_options({"k_to"}, {.k = 5, .k_to = 9, .duplicates = duplicates, .ties = ties});
  }
}

TEST_F(LofRefusal, DataThatCannotBeUsed) {
  rows_.table[3 * 17 + 1] = kNaN;
  expect(ErrorCode::bad_data, {"row 17", "column 1"}, [&](const Context& ctx) { (void)lof(ctx, table(), {.k = 5}); });
  rows_.table[3 * 17 + 1] = 1e300;
  expect(ErrorCode::bad_data, {"row 17"}, [&](const Context& ctx) { (void)lof(ctx, table(), {.k = 39}); });
}

// Sums of distances leave the range of float64, though every distance is in it.
TEST_F(LofRefusal, ScoresThatAreNoNumbers) {
  for (std::size_t i = 0; i < 3 * kRows; ++i) rows_.table[i] *= 1e307;
  for (const OutlierScore score : {OutlierScore::lof, OutlierScore::loop}) {
    expect(ErrorCode::bad_data, {"row 0"}, [&](const Context& ctx) {
      (void)lof(ctx, table(), {.k = 39, .score = score, .metric = Metric::chebyshev});
    });
  }
}

TEST_F(LofRefusal, TablesThatPlacesCannotBeFoundIn) {
  const Stored blocks(rows_.table, 3, DType::float64, Layout::blocks);
  for (const LofOptions& options :
       {LofOptions{.k = 5, .ties = Ties::all}, LofOptions{.k = 5, .duplicates = Duplicates::distinct},
        LofOptions{.k = 5, .score = OutlierScore::ldof}, LofOptions{.k = 5, .score = OutlierScore::cof}}) {
    expect(ErrorCode::invalid_argument, {"table", "memory"},
           [&](const Context& ctx) { (void)lof(ctx, blocks.view(), options); });
  }
}

TEST_F(LofRefusal, GraphsWithoutWhatIsNeeded) {
  for (const OutlierScore score : {OutlierScore::ldof, OutlierScore::cof, OutlierScore::cof_pyod}) {
    expect(ErrorCode::invalid_argument, {std::string(name_of(score)), "table"},
           [&](const Context& ctx) { (void)lof(ctx, graph_, {.k = 5, .score = score}); });
    expect(ErrorCode::invalid_argument, {"table", "39"},
           [&](const Context& ctx) { (void)lof(ctx, graph_, table().slice(0, 39), {.k = 5, .score = score}); });
  }
  expect_graph(ErrorCode::invalid_argument, {"ties"}, graph_, {.k = 5, .ties = Ties::all});
  expect_graph(ErrorCode::invalid_argument, {"distinct"}, graph_, {.k = 5, .duplicates = Duplicates::distinct});
  expect_graph(ErrorCode::invalid_argument, {"k", "11", "10"}, graph_, {.k = 11});
  expect_graph(ErrorCode::invalid_argument, {"k_to", "11", "10"}, graph_, {.k = 5, .k_to = 11});
  expect_graph(ErrorCode::invalid_argument, {"k", "0"}, graph_, {.k = 0});
}

TEST_F(LofRefusal, GraphsThatNoSearchMade) {
  const auto broken = [&](const std::function<void(NeighborGraph&)>& spoil) {
    NeighborGraph graph = graph_;
    spoil(graph);
    return graph;
  };
  for (const std::int64_t id : {std::int64_t{-1}, kRows, std::int64_t{7}, std::numeric_limits<std::int64_t>::min()}) {
    expect_graph(ErrorCode::bad_data, {"row 7"}, broken([&](NeighborGraph& g) { g.ids[7 * 10 + 4] = id; }));
  }
  for (const double distance : {-1.0, -5e-324, kNaN, kInfinity, 0.0}) {
    expect_graph(ErrorCode::bad_data, {"row 7"}, broken([&](NeighborGraph& g) { g.distances[7 * 10 + 4] = distance; }));
  }
  expect_graph(ErrorCode::invalid_argument, {"graph", "39", "40"},
               broken([&](NeighborGraph& g) { g.table_rows = 39; }));
  expect_graph(ErrorCode::invalid_argument, {"graph", "399"}, broken([&](NeighborGraph& g) {
                 g.ids.pop_back();
                 g.distances.pop_back();
               }));
  expect_graph(ErrorCode::invalid_argument, {"graph", "399"},
               broken([&](NeighborGraph& g) { g.distances.pop_back(); }));
  expect_graph(ErrorCode::invalid_argument, {"graph"}, broken([&](NeighborGraph& g) { g.k = 0; }));
  expect_graph(ErrorCode::invalid_argument, {"graph"}, broken([&](NeighborGraph& g) { g.k = -10; }));
  expect_graph(ErrorCode::invalid_argument, {"inner_product"},
               broken([&](NeighborGraph& g) { g.metric = Metric::inner_product; }));
  expect_graph(ErrorCode::invalid_argument, {"graph", "0 rows"}, NeighborGraph{}, {.k = 1});
}

TEST_F(LofRefusal, ListsThatNoSearchMade) {
  const NeighborGraph ball = radius(Context::cpu({.threads = 1}), table(), {.radius = 100});
  const auto broken = [&](const std::function<void(NeighborGraph&)>& spoil) {
    NeighborGraph graph = ball;
    spoil(graph);
    return graph;
  };
  expect_graph(ErrorCode::bad_data, {"row 3"}, broken([](NeighborGraph& g) {
                 g.ids.erase(g.ids.begin() + g.offsets[3], g.ids.begin() + g.offsets[4]);
                 g.distances.erase(g.distances.begin() + g.offsets[3], g.distances.begin() + g.offsets[4]);
                 const std::int64_t gone = g.offsets[4] - g.offsets[3];
                 for (std::size_t i = 4; i < g.offsets.size(); ++i) g.offsets[i] -= gone;
               }));
  expect_graph(ErrorCode::invalid_argument, {"offsets"}, broken([](NeighborGraph& g) { g.offsets[3] = g.offsets[5]; }));
  expect_graph(ErrorCode::invalid_argument, {"offsets"}, broken([](NeighborGraph& g) { g.offsets[0] = -1; }));
  expect_graph(ErrorCode::invalid_argument, {"offsets"}, broken([](NeighborGraph& g) { g.offsets.back() += 1; }));
  expect_graph(ErrorCode::invalid_argument, {"offsets"}, broken([](NeighborGraph& g) { g.offsets.pop_back(); }));
  expect_graph(ErrorCode::bad_data, {"row 0"}, broken([](NeighborGraph& g) { g.ids[2] = 0; }));
  expect_graph(ErrorCode::bad_data, {"row 0"},
               broken([](NeighborGraph& g) { std::swap(g.distances[1], g.distances[2]); }));
}

TEST_F(LofRefusal, ModelsOfSomethingElse) {
  expect(ErrorCode::invalid_argument, {"novelty"}, [&](const Context& ctx) {
    const Index index(ctx, table());
    (void)novelty(ctx, index, lof(ctx, index, {.k = 5}), queries());
  });
  expect(ErrorCode::invalid_argument, {"39", "40"}, [&](const Context& ctx) {
    const Lof model = lof(ctx, table().slice(0, 39), {.k = 5, .novelty = true});
    (void)novelty(ctx, Index(ctx, table()), model, queries());
  });
  expect(ErrorCode::invalid_argument, {"2", "3"}, [&](const Context& ctx) {
    const Index index(ctx, table());
    (void)novelty(ctx, index, lof(ctx, index, {.k = 5, .novelty = true}), TableView(rows_.queries.data(), 5, 2));
  });
  expect(ErrorCode::invalid_argument, {"densities"}, [&](const Context& ctx) {
    const Index index(ctx, table());
    Lof model = lof(ctx, index, {.k = 5, .novelty = true});
    model.densities.pop_back();
    (void)novelty(ctx, index, model, queries());
  });
  expect(ErrorCode::invalid_argument, {"0 caps"}, [&](const Context& ctx) {
    const Index index(ctx, table());
    Lof model = lof(ctx, index, {.k = 5, .duplicates = Duplicates::cap, .novelty = true});
    model.caps.clear();
    (void)novelty(ctx, index, model, queries());
  });
  rows_.queries[4] = kNaN;
  expect(ErrorCode::bad_data, {"row 1", "column 1"}, [&](const Context& ctx) {
    const Index index(ctx, table());
    (void)novelty(ctx, index, lof(ctx, index, {.k = 5, .novelty = true}), queries());
  });
}

TEST_F(LofRefusal, OverMemoryBeforeItStarts) {
  const Rows rows = make_rows(Family::gaussian, {5000, 4, 1}, 2);
  const Context ctx = Context::cpu({.threads = 1, .memory_limit = 200000});
  try {
    (void)lof(ctx, TableView(rows.table.data(), 5000, 4), {.k = 20});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory) << error.what();
  }
}

// By hamming distance all rows of one column are neighbors of each other: all ties are a list of n rows for each.
TEST_F(LofRefusal, TiesOfEverythingOverMemory) {
  std::vector<float> rows(2000);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  const TableView different(rows.data(), 2000, 1);
  const Context ctx = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{32} << 20});
  LofOptions options{.k = 5, .metric = Metric::hamming};
  EXPECT_NO_THROW((void)lof(ctx, different, options));
  options.ties = Ties::all;
  expect_refused(ErrorCode::over_memory, "lof", "all ties", [&] { (void)lof(ctx, different, options); });
}

TEST_F(LofRefusal, UnknownNamesListThoseThereAre) {
  expect(ErrorCode::invalid_argument, {"lofty", "simplified_lof"},
         [](const Context&) { (void)outlier_score_from("lofty"); });
  expect(ErrorCode::invalid_argument, {"none", "distinct"}, [](const Context&) { (void)duplicates_from("none"); });
  expect(ErrorCode::invalid_argument, {"some", "cut"}, [](const Context&) { (void)ties_from("some"); });
  expect(ErrorCode::invalid_argument, {"median", "mean"}, [](const Context&) { (void)across_k_from("median"); });
}

}  // namespace
}  // namespace vicinal::contract
